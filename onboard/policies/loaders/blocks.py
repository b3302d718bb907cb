"""What the loaders of Isaac Lab's descendants share: their terms as ours, histories as blocks."""

from collections.abc import Sequence

from onboard.configs.errors import PolicyError
from onboard.policies.loaders.draft import Data

Parts = tuple[tuple[str, int], ...]
"""One term of a family as ours with their widths; width 0: an equal share of what its scale covers."""

Scale = float | Sequence[float]


def scaled_terms(
    where: str, parts: Parts, scale: Scale, clip: Sequence[float] | None, clip_first: bool
) -> list[Data]:
    """Our terms for one term of the family, its scale cut to their widths.

    Args:
        where: names the term in messages.
        parts: what it consists of.
        scale: one factor, or one per element.
        clip: bounds, None for none.
        clip_first: the clip comes before the scale.

    Raises:
        PolicyError: the scale has another length than the term.
    """
    if not isinstance(scale, float):
        scale = list(scale)
        fixed = sum(width for _, width in parts)
        share = (len(scale) - fixed) // max(1, sum(width == 0 for _, width in parts))
        total = sum(width or share for _, width in parts)
        if total != len(scale):
            raise PolicyError(f"{where}.scale has {len(scale)} numbers, expected {total}")
    terms = []
    start = 0
    for term, width in parts:
        factors: float | list[float] = scale
        if not isinstance(scale, float):
            stop = start + (width or share)
            factors, start = scale[start:stop], stop
        terms.append(_term(term, factors, clip, clip_first))
    return terms


def history_block(terms: list[Data], frames: int, frame_major: bool | None = None) -> Data:
    """A block as Isaac Lab keeps it: present frame included, oldest first, filled with the first frame.

    Several of our terms that are one of the family's stay together within each frame, unless `frame_major`
    says otherwise.
    """
    if frames == 1:
        return {"terms": terms}
    if frame_major is None:
        frame_major = len(terms) > 1
    return {
        "terms": terms,
        "frames": frames,
        "layout": "frame_major" if frame_major else "term_major",
        "order": "oldest_first",
        "current": True,
        "fill": "first_frame",
    }


def _term(term: str, scale: float | list[float], clip: Sequence[float] | None, clip_first: bool) -> Data:
    data: Data = {"term": term}
    if scale != 1.0:
        data["scale"] = scale
    if clip is not None:
        data |= {"clip": list(clip), "clip_first": clip_first}
    return data
