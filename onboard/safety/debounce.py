"""How long a condition has held: joint by joint for the joint events, one count for every other event."""

import numpy as np
from numpy.typing import NDArray

from onboard.configs.events import bits
from onboard.configs.robot import N_JOINTS
from onboard.safety.conditions import JOINT_EVENTS, Hits, Rules

Ticks = tuple[tuple[int, int], ...]
"""(event, ticks) of the conditions that hold."""

JointTicks = NDArray[np.int16]
"""(13, 29) ticks that each joint has met each joint event's condition; never written to."""

NO_JOINT_TICKS: JointTicks = np.zeros((len(JOINT_EVENTS), N_JOINTS), np.int16)
_MOST = np.int16(30000)


def debounce(active: int, scope: int, before: Ticks, rules: Rules) -> tuple[int, Ticks]:
    """Count the conditions in `scope`; those outside it keep their count.

    Returns:
        The events that fire, and the counts.
    """
    kept = drop(scope, before)
    waiting = active & scope
    if not waiting:
        return 0, kept
    past, fired, grown = dict(before), 0, []
    while waiting:
        event = (waiting & -waiting).bit_length() - 1
        waiting &= waiting - 1
        ticks = past.get(event, 0) + 1
        grown.append((event, ticks))
        fired |= (ticks >= rules.need[event]) << event
    return fired, (*kept, *grown)


def drop(scope: int, before: Ticks) -> Ticks:
    """The counts less those of the events in `scope`."""
    return tuple(pair for pair in before if not scope >> pair[0] & 1) if before else before


def count_joints(hits: Hits, before: JointTicks, rules: Rules) -> tuple[JointTicks, int, int, int | None]:
    """Count the joint events.

    Returns:
        The counts, the conditions that hold, the events that fire, and a joint of the most severe
        event that does.
    """
    if not hits.any():
        return NO_JOINT_TICKS, 0, 0, None
    ticks: JointTicks = np.minimum(before + np.int16(1), _MOST) * hits
    done = ticks >= rules.joint_need
    active = bits(*(JOINT_EVENTS[row] for row in np.flatnonzero(hits.any(axis=1))))
    rows = np.flatnonzero(done.any(axis=1)).tolist()
    if not rows:
        return ticks, active, 0, None
    worst = max(rows, key=lambda row: rules.highest(1 << JOINT_EVENTS[row]))
    return ticks, active, bits(*(JOINT_EVENTS[row] for row in rows)), int(done[worst].argmax())
