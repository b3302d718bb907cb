"""How long from a command to the motion that it causes.

Time zero is the gateway's publication of a target; the end is the joint's torque as its motion shows it,
on the robot's clock laid on ours (`recording`). The joint's own lag under its gains, tens of milliseconds
that a cross-correlation of target and position would count, is part of the model (`response`), not of
the figure. The chirp is measured piece by piece: the scatter of the pieces is the uncertainty.

A sample holds until the next one: whoever looks at an arbitrary instant sees it half a period old on
average. That is part of the way from a command to a motion that control sees, so it is added.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from onboard.runtime.preflight.report import Finding, Verdict, judged
from onboard.runtime.preflight.response import Fit

EXPLAINED = 0.9
"""A piece that the model explains less well says nothing about a delay."""
STRENGTH = 0.15
MIN_PIECES = 4
HELD_S = 0.001
"""Half a LowState period."""
CLOCK_S = 0.001
"""So well is the instant known that a sample shows: somewhere in its period."""
WARN_S, FAIL_S = 0.03, 0.06
"""Policies are trained with up to about one control period of delay; three of them make walking unstable."""
WARN_SIGMA_S = 0.003


class CommandLatency(NamedTuple):
    """From command to motion.

    Attributes:
        delay_s: median of the pieces; one that took half a swing for a delay does not count in it.
        sigma_s: standard uncertainty: of the median, and what is not known of the clocks.
        pieces: how many were used.
    """

    delay_s: float
    sigma_s: float
    pieces: int


def command_latency(chirp: Sequence[Fit]) -> CommandLatency | None:
    """The figure of a chirp; None where too few pieces tell it."""
    good = [piece.delay_s for piece in chirp if piece.explained > EXPLAINED and piece.strength > STRENGTH]
    if len(good) < MIN_PIECES:
        return None
    middle_s = float(np.median(good))
    spread_s = 1.4826 * float(np.median(np.abs(np.array(good) - middle_s)))
    # A median of n numbers scatters 1.2533 times as much as their mean.
    scatter_s = 1.2533 * spread_s / len(good) ** 0.5
    return CommandLatency(middle_s + HELD_S, float(np.hypot(scatter_s, CLOCK_S / 3**0.5)), len(good))


def judge_latency(chirp: Sequence[Fit], joint: str) -> Finding:
    """The latency of a run on this machine with this robot."""
    found = command_latency(chirp)
    if found is None:
        return Finding(
            Verdict.FAIL,
            f"{joint} did not follow the chirp well enough",
            "mend robot.wiring and robot.strength first, or choose another joint with --latency-joint",
        )
    return judged(
        f"{1000 * found.delay_s:.1f} ± {1000 * found.sigma_s:.1f} ms from command to motion "
        f"({joint}, {found.pieces} pieces)",
        warn=found.delay_s > WARN_S or found.sigma_s > WARN_SIGMA_S,
        fail=found.delay_s > FAIL_S,
        advice="use a cable and the robot's own computer; a policy must be trained with this delay",
        values={"latency_ms": 1000 * found.delay_s, "sigma_ms": 1000 * found.sigma_s},
    )
