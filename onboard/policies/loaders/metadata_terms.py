"""Observation terms in the metadata of BeyondMimic, mjlab and legged_control2 as blocks of a contract."""

import math
from collections.abc import Mapping

from onboard.configs.errors import PolicyError
from onboard.policies.loaders.blocks import Parts, history_block, scaled_terms
from onboard.policies.loaders.csv_values import CsvMetadata, Entry
from onboard.policies.loaders.draft import Data

TERMS: dict[str, Parts] = {
    "base_ang_vel": (("gyro", 3),),
    "projected_gravity": (("gravity", 3),),
    "joint_pos": (("joint_pos", 0),),
    "joint_pos_rel": (("joint_pos", 0),),
    "joint_vel": (("joint_vel", 0),),
    "joint_vel_rel": (("joint_vel", 0),),
    "actions": (("last_action", 0),),
    "last_action": (("last_action", 0),),
    "motion_anchor_pos_b": (("anchor_position", 3),),
    "motion_anchor_ori_b": (("anchor_orientation", 6),),
    "phase": (("gait_cos", 2), ("gait_sin", 2)),
}
"""What means the same in every exporter; `command` and `base_lin_vel` do not."""

HISTORY = (
    "observation_terms_history_length",
    "observation_term_history_length",
    "observation_history_lengths",
)
SCALE = ("observation_terms_scale", "observation_term_scale")
CLIP = ("observation_terms_clip", "observation_term_clip")
FLATTEN = ("observation_terms_flatten_history_dim", "observation_term_flatten_history_dim")
"""Names of the per-term keys: mjlab's releases, its builds in between, BeyondMimic."""


def blocks_of(metadata: CsvMetadata, own: Mapping[str, Parts]) -> list[Data]:
    """Blocks of the one observation input, in the order of `observation_names`.

    Args:
        metadata: of the file.
        own: terms whose meaning depends on the exporter, beside `TERMS`.

    Raises:
        PolicyError: an unknown term, a list of another length, or histories that do not fit together.
    """
    names = metadata.names("observation_names")
    known = TERMS | dict(own)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PolicyError(
            f"{metadata.where}: unknown observation '{unknown[0]}'; there are: {', '.join(known)}; for "
            "others write a contract.yaml"
        )
    scales = _per_term(metadata, SCALE, names, 1.0)
    clips = [_bounds(metadata, clip) for clip in _per_term(metadata, CLIP, names, None)]
    terms = {
        name: scaled_terms(
            f"{metadata.where}: observation '{name}'",
            known[name],
            1.0 if scale is None else scale,
            clip,
            clip_first=True,
        )
        for name, scale, clip in zip(names, scales, clips, strict=True)
    }
    return _with_history(metadata, names, terms)


def _with_history(metadata: CsvMetadata, names: list[str], terms: Mapping[str, list[Data]]) -> list[Data]:
    """A length of 0 means no history. Where the history axis was kept, frames lie one after the other."""
    frames = [max(1, _integer(metadata, n)) for n in _per_term(metadata, HISTORY, names, 1.0)]
    flat = [bool(flag) for flag in _per_term(metadata, FLATTEN, names, 1.0)]
    if all(flat) or max(frames) == 1:
        return [history_block(terms[name], count) for name, count in zip(names, frames, strict=True)]
    if any(flat) or len(set(frames)) > 1:
        raise PolicyError(
            f"{metadata.where}: history lengths {frames} with history axes kept in some terms only: their "
            "order can't be told; write a contract.yaml"
        )
    return [history_block([term for name in names for term in terms[name]], frames[0], frame_major=True)]


def _per_term(
    metadata: CsvMetadata, keys: tuple[str, ...], names: list[str], absent: Entry | None
) -> list[Entry | None]:
    entries = metadata.entries(keys)
    if entries is None:
        return [absent] * len(names)
    if len(entries) != len(names):
        raise PolicyError(
            f"{metadata.where}: metadata '{metadata.first(keys)}' has {len(entries)} entries for "
            f"{len(names)} observation_names"
        )
    return entries


def _bounds(metadata: CsvMetadata, clip: Entry | None) -> list[float] | None:
    if clip is None:
        return None
    if isinstance(clip, float) or len(clip) != 2:
        raise PolicyError(
            f"{metadata.where}: metadata '{metadata.first(CLIP)}': expected lower;upper for every term"
        )
    return None if all(map(math.isinf, clip)) else clip


def _integer(metadata: CsvMetadata, number: Entry | None) -> int:
    if not isinstance(number, float) or number != int(number):
        raise PolicyError(f"{metadata.where}: metadata '{metadata.first(HISTORY)}': expected whole numbers")
    return int(number)
