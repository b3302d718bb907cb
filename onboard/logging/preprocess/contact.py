"""Contact phases of the feet from contact flags or forces."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from onboard.logging.preprocess.pipeline import Facts, Track

THRESHOLD_N = 10.0
"""A foot that carries more than this is in contact; a G1 weighs about 340 N."""

BUFFER_TICKS = 2
"""Ticks around a touchdown or lift-off that belong to it: 40 ms, about an impact with its estimator lag."""

_FAR = 1 << 40
"""More rows than any rollout has."""

Labels = NDArray[np.int8]


class Phase(IntEnum):
    """Contact phase of one foot, or of the robot."""

    UNKNOWN = -1
    FLIGHT = 0
    STANCE = 1
    TOUCHDOWN = 2
    LIFT_OFF = 3


class Support(IntEnum):
    """Which feet carry the robot."""

    UNKNOWN = -1
    NONE = 0
    LEFT = 1
    RIGHT = 2
    BOTH = 3


def contact_from_force(force_n: np.ndarray, threshold_n: float = THRESHOLD_N) -> Labels:
    """1 where a foot carries more than the threshold, 0 where it does not, -1 where the force is NaN."""
    return np.where(np.isnan(force_n), -1, force_n > threshold_n).astype(np.int8)


def foot_phases(
    contact: np.ndarray, buffer_ticks: int = BUFFER_TICKS, linked: np.ndarray | None = None
) -> Labels:
    """Phase of every foot at every row.

    A touchdown is the first row of contact after a row without, a lift-off the first row without after
    one with; rows within `buffer_ticks` of one belong to it, to the nearer of two.

    Args:
        contact: (n, feet) 1, 0, or -1 for unknown.
        buffer_ticks: rows before and after the change.
        linked: (n-1,) whether row k+1 follows row k in time; a change across a break is no touchdown.

    Returns:
        (n, feet) values of `Phase`.
    """
    steady = np.where(contact == 1, Phase.STANCE, np.where(contact == 0, Phase.FLIGHT, Phase.UNKNOWN))
    phases: Labels = steady.astype(np.int8)
    if len(contact) < 2:
        return phases
    follows = np.ones(len(contact) - 1, bool) if linked is None else linked
    block = np.concatenate([[0], np.cumsum(~follows)])
    for foot in range(contact.shape[1]):
        flags = contact[:, foot]
        nearest = np.full(len(flags), buffer_ticks + 1)
        for before, after, phase in ((0, 1, Phase.TOUCHDOWN), (1, 0, Phase.LIFT_OFF)):
            events = np.flatnonzero((flags[:-1] == before) & (flags[1:] == after) & follows) + 1
            distance = _distance(events, block)
            taken = (distance < nearest) & (flags >= 0)
            phases[taken, foot] = phase
            nearest[taken] = distance[taken]
    return phases


def robot_phase(feet: Labels) -> Labels:
    """Phase of the robot (n,) from those of its feet (n, feet).

    Touchdown while any foot touches down, else lift-off while any lifts off, else stance while any
    stands, else flight; unknown where any foot is.
    """
    phase = np.full(len(feet), Phase.FLIGHT, np.int8)
    for label in (Phase.STANCE, Phase.LIFT_OFF, Phase.TOUCHDOWN, Phase.UNKNOWN):
        phase[(feet == label).any(1)] = label
    return phase


def support(contact: np.ndarray) -> Labels:
    """Which feet carry the robot (n,), from left and right contact (n, 2)."""
    sides = contact[:, 0] * Support.LEFT + contact[:, 1] * Support.RIGHT
    return np.where((contact < 0).any(1), Support.UNKNOWN, sides).astype(np.int8)


def label_contact(
    track: Track, threshold_n: float = THRESHOLD_N, buffer_ticks: int = BUFFER_TICKS
) -> tuple[Track, Facts]:
    """Step: contact by force where there is one, by the recorded estimate where there is none, and phases.

    Returns:
        The track with `contact` renewed, `foot_phase` (n, 2) and `phase` (n,), and the share of rows in
        each phase and of feet whose contact came from a force.
    """
    by_force = contact_from_force(track["contact_force"], threshold_n)
    contact = np.where(by_force >= 0, by_force, track["contact"]).astype(np.int8)
    feet = foot_phases(contact, buffer_ticks)
    phases = robot_phase(feet)
    shares = {
        phase.name.lower(): float(np.mean(phases == phase)) for phase in Phase if (phases == phase).any()
    }
    labelled = {**track, "contact": contact, "foot_phase": feet, "phase": phases}
    return labelled, {"phases": shares, "from_force": float(np.mean(by_force >= 0))}


def _distance(events: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Rows from every row to the nearest event in its own unbroken block; `_FAR` without one."""
    rows = np.arange(len(block))
    if not len(events):
        return np.full(len(rows), _FAR)
    right = np.searchsorted(events, rows)
    candidates = [events[np.clip(right + side, 0, len(events) - 1)] for side in (-1, 0)]
    distances = [np.where(block[e] == block, np.abs(rows - e), _FAR) for e in candidates]
    nearest: np.ndarray = np.minimum(*distances)
    return nearest
