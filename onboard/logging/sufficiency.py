"""Whether a set of rollouts is enough to fit a residual of a given size.

Rule of thumb: `10 · d_out · d_hidden / (1 - p_contact)` samples at least, three to five times that for a
fit that generalises. `d_out` counts the joints that the residual corrects, `d_hidden` the width of its
hidden layers, and `p_contact` is the share of the time in which a foot is on the ground: what happens
in the air must be learned from the rest alone.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from onboard.logging.summary import Summary

SAMPLES_PER_WEIGHT = 10
RECOMMENDED = (3, 5)
"""Multiples of the least number."""


class Sufficiency(Struct, frozen=True):
    """An answer.

    Attributes:
        d_out, d_hidden: size of the residual.
        samples: valid transitions in the set.
        p_contact: share of foot-samples in contact; given, or measured over the valid transitions.
        p_contact_from: where it comes from. Without any recorded contact it counts as 0, which makes
            `needed` a lower bound.
        needed: samples at least; None where no foot ever left the ground.
        recommended: from and to; None as above.
        verdict: `none` (fewer than needed), `least`, or `recommended`.
        missing_s: seconds of further recording until `needed`; 0 when reached, None as above.
    """

    d_out: int
    d_hidden: int
    samples: int
    p_contact: float
    p_contact_from: Literal["given", "recorded", "unknown"]
    needed: int | None
    recommended: tuple[int, int] | None
    verdict: Literal["none", "least", "recommended"]
    missing_s: float | None


def is_enough(
    summaries: Sequence[Summary], d_out: int, d_hidden: int, p_contact: float | None = None
) -> Sufficiency:
    """Judge a set.

    Args:
        summaries: of its files.
        d_out: outputs of the residual.
        d_hidden: width of its hidden layers.
        p_contact: instead of the recorded share, 0 to 1.
    """
    samples = sum(summary.valid_transitions for summary in summaries)
    known = sum(summary.feet_known for summary in summaries)
    share, source = _share(p_contact, known, sum(summary.feet_down for summary in summaries))
    if share >= 1.0:
        return Sufficiency(d_out, d_hidden, samples, share, source, None, None, "none", None)
    needed = round(SAMPLES_PER_WEIGHT * d_out * d_hidden / (1.0 - share))
    low, high = (factor * needed for factor in RECOMMENDED)
    verdict: Literal["none", "least", "recommended"] = "none"
    if samples >= needed:
        verdict = "recommended" if samples >= low else "least"
    period_s = max((summary.period_s for summary in summaries), default=0.0)
    missing_s = max(0, needed - samples) * period_s
    return Sufficiency(d_out, d_hidden, samples, share, source, needed, (low, high), verdict, missing_s)


def _share(
    given: float | None, known: int, down: int
) -> tuple[float, Literal["given", "recorded", "unknown"]]:
    if given is not None:
        return given, "given"
    return (down / known, "recorded") if known else (0.0, "unknown")
