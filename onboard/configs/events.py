"""The vocabulary that every room shares: events, tiers, modes, arms. Names and numbers only.

Numbers are stored in rollouts (`safety_events` is a mask of `1 << event`), so they never change
and are never reused; a new event takes the next free number.
"""

from enum import IntEnum


class Tier(IntEnum):
    """What the runtime does about an event, in order of severity; the highest one asked for wins."""

    NONE = 0
    """Recorded, nothing else."""
    WARN = 1
    """Go on, log and show; clears by itself."""
    SETTLE = 2
    """Velocity command to zero, no new motion; hold once the robot stands still, damp if it does not."""
    HOLD = 3
    """Hold the measured pose, where that is allowed; else damp."""
    DAMP = 4
    """kp 0 and a little kd: the robot sinks."""
    LIMP = 5
    """kp 0, kd 0; by the operator alone, no event asks for it."""


class Mode(IntEnum):
    """What the loop is doing; stored as `mode` in every record."""

    DAMP = 0
    RAMP = 1
    HOLD = 2
    POLICY = 3
    LIMP = 4


class Arm(IntEnum):
    """Side of the A/B comparison that a tick belongs to; SHADOW computes the residual, unapplied."""

    NONE = 0
    KEEP = 1
    DROP = 2
    SHADOW = 3


class Event(IntEnum):
    """A named safety condition; the value is its bit number. Thresholds and tiers: configs/safety/*.yaml."""

    ROLL = 0
    PITCH = 1
    TILT = 2
    FALL = 3
    FALL_NO_RECOVERY = 4
    ANGULAR_RATE = 5
    JOINT_SPEED = 6
    JOINT_NEAR_LIMIT = 7
    JOINT_PAST_LIMIT = 8
    TORQUE_HIGH = 9
    TORQUE_OVER = 10
    CASING_HOT = 11
    CASING_OVERHEATED = 12
    WINDING_HOT = 13
    WINDING_OVERHEATED = 14
    MOTOR_FAULT = 15
    MOTOR_FAULT_SEVERE = 16
    RAMP_TRACKING = 17
    RAMP_TORQUE = 18
    STATE_OLD = 19
    STATE_STALE = 20
    CRC_BAD = 21
    CRC_RATE = 22
    TICK_NOT_ADVANCING = 23
    STATE_NOT_FINITE = 24
    QUATERNION_NORM = 25
    MODE_MACHINE_CHANGED = 26
    REMOTE_LOST = 27
    POLICY_BAD_ONCE = 28
    POLICY_BAD_TWICE = 29
    RESIDUAL_DROPPED = 30
    OVERRUN = 31
    OVERRUN_REPEATED = 32
    PROVIDER_OLD = 33
    RECORDER_BEHIND = 34
    RECORDER_DEAD = 35
    DISK_LOW = 36
    GATEWAY_LOST = 37
    GATEWAY_LATCHED = 38
    SECOND_PUBLISHER = 39
    OPERATOR_STOP = 40
    EMERGENCY_STOP = 41
    TERMINAL_LOST = 42
    PARENT_LOST = 43
    MOTION_FINISHED = 44


def bits(*events: Event) -> int:
    """Mask of the given events."""
    mask = 0
    for event in events:
        mask |= 1 << event
    return mask


def names(mask: int) -> list[str]:
    """Names of the events in a mask, by rising bit number; an unknown bit n reads `BIT_n`.

    A mask from a newer version's rollout may hold bits that this version does not know.
    """
    known = {int(event): event.name for event in Event}
    return [known.get(bit, f"BIT_{bit}") for bit in range(int(mask).bit_length()) if int(mask) >> bit & 1]
