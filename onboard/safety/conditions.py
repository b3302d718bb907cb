"""What one sample of the state shows: conditions without memory, and the table resolved for one robot.

Joint conditions form a matrix, one row an event and one column a joint, so that each joint is
debounced for itself and all of them cost one comparison.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.events import Event, Tier, bits
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.configs.safety import SafetyConfig, Standing, to_ticks
from onboard.runtime.link import Float32Array, State
from onboard.runtime.remote import REMOTE_BYTES
from onboard.safety.events import ATTITUDE, FALLS

JOINT_EVENTS = (
    Event.JOINT_SPEED,
    Event.JOINT_NEAR_LIMIT,
    Event.JOINT_PAST_LIMIT,
    Event.TORQUE_HIGH,
    Event.TORQUE_OVER,
    Event.CASING_HOT,
    Event.CASING_OVERHEATED,
    Event.WINDING_HOT,
    Event.WINDING_OVERHEATED,
    Event.MOTOR_FAULT,
    Event.MOTOR_FAULT_SEVERE,
    Event.RAMP_TRACKING,
    Event.RAMP_TORQUE,
)
"""Rows of the matrix; the last `RAMP_ROWS` apply while ramping alone."""

RAMP_ROWS = 2

_VALUE = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 2])
"""Which value a row compares: |dq|, q beyond range, |tau|, casing, winding, fault, severe, tracking."""

Hits = NDArray[np.bool_]
"""(13, 29): this joint meets this row's condition."""


class Rules(NamedTuple):
    """The table resolved for one robot and one control period."""

    need: tuple[int, ...]
    """Ticks of debounce by event number."""
    by_tier: tuple[tuple[Tier, int], ...]
    """Masks of the events that ask for each tier, highest first."""
    latching: int
    """Mask of the events that stay until the operator re-arms."""
    stopping: int
    """Mask of the events above warn."""
    roll_rad: float
    pitch_rad: float
    tilt_rad: float
    fall_rad: float
    gyro_rad_s: float
    quaternion: float
    old_s: float
    stale_s: float
    crc_window: int
    """Ticks the CRC rate looks back, and how many bad ones are too many."""
    crc_count: float
    overrun_window: int
    overrun_count: float
    lower: Float32Array
    upper: Float32Array
    joint_limits: Float32Array
    """(13, 29), infinite where the slot does not exist."""
    joint_need: NDArray[np.int16]
    """(13, 1), ticks."""
    severe: np.uint32
    standing: Standing
    still: Float32Array
    """(29,) rad/s, joint speeds of a robot that stands; infinite where the slot does not exist."""

    def highest(self, mask: int) -> Tier:
        """The highest tier that an event of the mask asks for."""
        for tier, events in self.by_tier:
            if mask & events:
                return tier
        return Tier.NONE


def make_rules(config: SafetyConfig, robot: RobotConfig, period_s: float) -> Rules:
    """Resolve the configured table."""
    rows = {event: config.events[event.name] for event in Event}
    need = tuple(
        to_ticks(row.seconds, period_s) if row.seconds is not None else row.ticks or 1
        for row in rows.values()
    )
    masks = {tier: sum(1 << event for event, row in rows.items() if row.severity is tier) for tier in Tier}
    stopping = masks[Tier.SETTLE] | masks[Tier.HOLD] | masks[Tier.DAMP]
    crc_window, overrun_window = (
        to_ticks(rows[event].window_s or 1.0, period_s) for event in (Event.CRC_RATE, Event.OVERRUN_REPEATED)
    )
    severe = 0
    for bit in config.severe_fault_bits:
        severe |= bit
    return Rules(
        need=need,
        by_tier=tuple((tier, masks[tier]) for tier in sorted(Tier, reverse=True) if masks[tier]),
        latching=stopping & ~sum(1 << event for event, row in rows.items() if not row.latches),
        stopping=stopping,
        roll_rad=config.limit(Event.ROLL),
        pitch_rad=config.limit(Event.PITCH),
        tilt_rad=config.limit(Event.TILT),
        fall_rad=config.limit(Event.FALL),
        gyro_rad_s=config.limit(Event.ANGULAR_RATE),
        quaternion=config.limit(Event.QUATERNION_NORM),
        old_s=config.limit(Event.STATE_OLD),
        stale_s=config.limit(Event.STATE_STALE),
        crc_window=crc_window,
        crc_count=config.limit(Event.CRC_RATE) * crc_window,
        overrun_window=overrun_window,
        overrun_count=config.limit(Event.OVERRUN_REPEATED),
        lower=robot.lower,
        upper=robot.upper,
        joint_limits=_joint_limits(config, robot),
        joint_need=np.array([[need[event]] for event in JOINT_EVENTS], np.int16),
        severe=np.uint32(severe),
        standing=config.standing,
        still=np.where(robot.valid, np.float32(config.standing.dq_rad_s), np.float32(np.inf)),
    )


def _joint_limits(config: SafetyConfig, robot: RobotConfig) -> Float32Array:
    scale = {
        Event.JOINT_SPEED: robot.speed,
        Event.TORQUE_HIGH: robot.effort,
        Event.TORQUE_OVER: robot.effort,
        Event.RAMP_TORQUE: robot.effort,
    }
    limits = np.full((len(JOINT_EVENTS), N_JOINTS), 0.5, np.float32)  # a fault is 1, none is 0
    for row, event in enumerate(JOINT_EVENTS):
        if config.events[event.name].limit is not None:
            limits[row] = config.limit(event) * scale.get(event, np.ones(N_JOINTS, np.float32))
    limits[:, ~robot.valid] = np.inf
    return limits


def is_finite(state: State) -> bool:
    """True when every number that the loop uses is one; the torso IMU may be absent (NaN)."""
    values = (state.q, state.dq, state.tau_est, state.quat_wxyz, state.gyro_body, state.accel_body)
    return bool(np.isfinite(np.concatenate(values)).all())


class Look(NamedTuple):
    """What one sample shows."""

    faults: int
    """Why the sample can't be used; nothing else was looked at then."""
    active: int = 0
    """Conditions of body and attitude that hold."""
    hits: Hits | None = None
    calm: bool = False
    """Hardly any motion, upright."""


def look_at(state: State, sent: Float32Array | None, ramping: bool, rules: Rules) -> Look:
    """Every condition that needs this one sample alone.

    Args:
        state: the sample, never seen before.
        sent: (29,) rad, the target in force, None where there is none.
        ramping: the loop is in mode ramp.
        rules: the resolved table.
    """
    if not is_finite(state):
        return Look(bits(Event.STATE_NOT_FINITE))
    w, x, y, z = state.quat_wxyz.tolist()
    length = math.sqrt(w * w + x * x + y * y + z * z)
    if abs(length - 1.0) > rules.quaternion:
        return Look(bits(Event.QUATERNION_NORM))
    roll, pitch, tilt = attitude(w / length, x / length, y / length, z / length)
    gyro = max(map(abs, state.gyro_body.tolist()))
    active = (
        (abs(roll) > rules.roll_rad) << Event.ROLL
        | (abs(pitch) > rules.pitch_rad) << Event.PITCH
        | (tilt > rules.tilt_rad) << Event.TILT
        | (tilt > rules.fall_rad) << Event.FALL
        | (gyro > rules.gyro_rad_s) << Event.ANGULAR_RATE
    )
    if active & (ATTITUDE | FALLS):
        active |= bits(Event.FALL_NO_RECOVERY)
    calm = tilt <= rules.standing.tilt_rad and gyro <= rules.standing.gyro_rad_s and _is_still(state, rules)
    return Look(0, active, joint_hits(state, sent, ramping, rules), calm)


def attitude(w: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Roll, pitch, and the angle between the z axis and up of a unit quaternion, all in rad."""
    up_z = 1.0 - 2.0 * (x * x + y * y)
    roll = math.atan2(2.0 * (w * x + y * z), up_z)
    return roll, math.asin(_unit(2.0 * (w * y - z * x))), math.acos(_unit(up_z))


def joint_hits(state: State, sent: Float32Array | None, ramping: bool, rules: Rules) -> Hits:
    """Every joint condition of one finite sample; arguments as for `look_at`."""
    values = np.zeros((8, N_JOINTS), np.float32)
    np.abs(state.dq, out=values[0])
    np.maximum(state.q - rules.upper, rules.lower - state.q, out=values[1])
    np.abs(state.tau_est, out=values[2])
    values[3:5] = state.temperature.T
    if state.motor_fault.any():
        values[5] = state.motor_fault != 0
        values[6] = state.motor_fault & rules.severe != 0
    if ramping and sent is not None:
        np.abs(sent - state.q, out=values[7])
    hits: Hits = values[_VALUE] > rules.joint_limits
    if not ramping:
        hits[-RAMP_ROWS:] = False
    return hits


def _is_still(state: State, rules: Rules) -> bool:
    return bool((np.abs(state.dq) <= rules.still).all())


def remote_silent(state: State) -> bool:
    """The remote's bytes are all zero: it is off, out of range, or there is none."""
    return state.remote.tobytes() == _SILENCE


_SILENCE = bytes(REMOTE_BYTES)


def _unit(value: float) -> float:
    """Clamp to [-1, 1]; beyond it, by rounding, the arc functions would raise."""
    return min(1.0, max(-1.0, value))
