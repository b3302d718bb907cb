"""The gate's view of the events: which belong together, and what a stop is called in the rollout.

Names, bit numbers and tiers are shared vocabulary (`onboard.configs.events`), handed on from here.
"""

from enum import IntEnum

from onboard.configs.events import Event, Mode, Tier, bits, names

__all__ = [
    "ATTITUDE",
    "DAMPED_IS_NORMAL",
    "FALLS",
    "FROM_STATE",
    "POLICY",
    "SAMPLE_FAULTS",
    "Event",
    "Flag",
    "Mode",
    "Tier",
    "bits",
    "names",
    "next_flag",
]


class Flag(IntEnum):
    """`safety_flag` of a record."""

    NORMAL = 0
    EMERGENCY_STOP = 1
    FALL = 2
    OTHER_STOP = 3


ATTITUDE = bits(Event.ROLL, Event.PITCH, Event.TILT)
FALLS = bits(Event.FALL, Event.FALL_NO_RECOVERY)
SAMPLE_FAULTS = bits(Event.STATE_NOT_FINITE, Event.QUATERNION_NORM)
"""A sample with one of these is not used; nothing else is read from it."""
POLICY = bits(Event.POLICY_BAD_ONCE, Event.POLICY_BAD_TWICE)
"""Decided by `Gate.limit`, all others by `Gate.check_state`."""

_MOTION = bits(
    Event.ANGULAR_RATE,
    Event.JOINT_SPEED,
    Event.JOINT_NEAR_LIMIT,
    Event.JOINT_PAST_LIMIT,
    Event.TORQUE_HIGH,
    Event.TORQUE_OVER,
)
_BODY = bits(
    Event.CASING_HOT,
    Event.CASING_OVERHEATED,
    Event.WINDING_HOT,
    Event.WINDING_OVERHEATED,
    Event.MOTOR_FAULT,
    Event.MOTOR_FAULT_SEVERE,
    Event.RAMP_TRACKING,
    Event.RAMP_TORQUE,
    Event.MODE_MACHINE_CHANGED,
    Event.REMOTE_LOST,
)

FROM_STATE = ATTITUDE | FALLS | _MOTION | _BODY | SAMPLE_FAULTS
"""Conditions on a sample; their debounce advances only with a newer robot tick."""

DAMPED_IS_NORMAL = ATTITUDE | FALLS | _MOTION | bits(Event.GATEWAY_LATCHED)
"""What a damped or limp robot does anyway: sink, lie, hang. In these modes it is no news."""


def next_flag(flag: int, fired: int, latched: int, tier: Tier) -> int:
    """The record's flag after this tick: the first cause stays, save that a tilt may become a fall.

    Args:
        flag: of the tick before.
        fired: events that fire now.
        latched: every event latched so far, those of now included.
        tier: the highest tier latched.
    """
    if flag == Flag.NORMAL:
        if fired & bits(Event.EMERGENCY_STOP):
            return Flag.EMERGENCY_STOP
        if fired & FALLS:
            return Flag.FALL
        return Flag.OTHER_STOP if tier >= Tier.SETTLE else Flag.NORMAL
    tilted_then_fell = flag == Flag.OTHER_STOP and latched & ATTITUDE and fired & FALLS
    return Flag.FALL if tilted_then_fell else flag
