"""What one tick's record holds: the row type that control fills, as a table with units.

Control fills one preallocated record of `record_dtype(...)` a tick and pushes it into shared memory.
The recorder adds what only the gateway knows (`JOINED`) before the row reaches the journal.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from onboard.configs.robot import N_JOINTS

STAGES = ("state", "gate", "operator", "observe", "infer", "limit", "send", "record")
"""Columns of `stage_ns`, in the order of the tick."""

COMMAND_FIELDS = ("vx", "vy", "wz", "height", "stand", "waist_yaw", "waist_roll", "waist_pitch")
"""Columns of `command`."""

LIMITS = {"resent": 1, "range": 2, "rate": 4, "torque": 8, "physical": 16}
"""Bits of `limit_mask`: the limits of `onboard.safety`, by name."""

NOT_PUBLISHED = -1
"""`send_ns` and `gateway_state` of a row whose command never reached the wire."""


class SafetyFlag(IntEnum):
    """Why a tick is not a nominal one."""

    NORMAL = 0
    EMERGENCY_STOP = 1
    FALL = 2
    OTHER_STOP = 3


class Field(NamedTuple):
    """One dataset: numpy type code, shape of one row, unit ('' for counts and flags), meaning."""

    name: str
    code: str
    shape: tuple[int, ...]
    unit: str
    about: str


class PolicyShape(NamedTuple):
    """Widths of one policy of a run.

    Attributes:
        name: the bundle's name.
        obs: length of the observation vector, all ONNX inputs one after the other.
        action: length of the raw action.
        extras: named further outputs with their widths, in the order in which they are logged.
    """

    name: str
    obs: int
    action: int
    extras: tuple[tuple[str, int], ...] = ()

    @property
    def extras_width(self) -> int:
        """Length of all extras one after the other."""
        return sum(width for _, width in self.extras)


_J = (N_JOINTS,)

ROW = (
    Field("tick", "<u8", (), "", "ticks of this run since the loop started, skipped ones included"),
    Field("number", "<u8", (), "", "number of the command made in this tick, 0 for none"),
    Field(
        "source_time_ns",
        "<i8",
        (),
        "ns",
        "sender's DDS time stamp of the state, its CLOCK_REALTIME; 0 for none",
    ),
    Field("recv_ns", "<i8", (), "ns", "CLOCK_MONOTONIC when the state was taken"),
    Field("made_ns", "<i8", (), "ns", "CLOCK_MONOTONIC when the command was handed over; 0 for none"),
    Field("external_pose_ns", "<i8", (), "ns", "external pose: its own clock; 0 for none"),
    Field(
        "external_pose",
        "<f8",
        (7,),
        "m, quaternion",
        "external pose x y z, w x y z in its own frame; NaN for none",
    ),
    Field("safety_events", "<u8", (), "", "bit mask of safety events active in this tick"),
    Field("robot_tick", "<u4", (), "tick", "LowState's counter"),
    Field("state_age_s", "<f4", (), "s", "age of the state when the tick began"),
    Field("external_age_s", "<f4", (), "s", "age of the external pose when the tick began; NaN without one"),
    Field("q", "<f4", _J, "rad", "joint positions"),
    Field("dq", "<f4", _J, "rad/s", "joint velocities"),
    Field("tau_est", "<f4", _J, "N·m", "joint torques as the motors estimate them"),
    Field("motor_fault", "<u4", _J, "", "motorstate bits of each motor"),
    Field("quat_wxyz", "<f4", (4,), "", "pelvis IMU: orientation, world from pelvis"),
    Field("gyro_body", "<f4", (3,), "rad/s", "pelvis IMU: angular velocity in the body frame"),
    Field("accel_body", "<f4", (3,), "m/s²", "pelvis IMU: specific force in the body frame"),
    Field("torso_quat_wxyz", "<f4", (4,), "", "torso IMU: orientation; NaN until heard"),
    Field(
        "torso_gyro", "<f4", (3,), "rad/s", "torso IMU: angular velocity in the torso frame; NaN until heard"
    ),
    Field("motion_index", "<i4", (), "", "frame of the reference motion, -1 for none"),
    Field("phase", "<f4", (2,), "rad", "gait phase, left and right"),
    Field("target", "<f4", _J, "rad", "joint positions that the combined action asks for"),
    Field("action_sent", "<f4", _J, "rad", "joint positions handed over after every limit"),
    Field("kp_scale", "<f4", (), "", "factor on the contract's kp: 0 damping, rises in the ramp, 1 in full"),
    Field(
        "command",
        "<f4",
        (8,),
        "m/s, m/s, rad/s, m, 1, rad, rad, rad",
        "operator's command: " + " ".join(COMMAND_FIELDS),
    ),
    Field("contact_force", "<f4", (2,), "N", "estimated vertical foot force, left and right; NaN unknown"),
    Field("base_velocity", "<f4", (3,), "m/s", "estimated base velocity in the body frame; NaN unknown"),
    Field(
        "external_velocity",
        "<f4",
        (3,),
        "m/s",
        "velocity in the body frame that came with the external pose; NaN unknown",
    ),
    Field("episode", "<i4", (), "", "episode of this rollout, counts resets"),
    Field("step", "<i4", (), "tick", "grid periods since the episode's reset"),
    Field("mark", "<u4", (), "", "how often the operator pressed the mark button so far"),
    Field("stage_ns", "<i4", (len(STAGES),), "ns", "time of each stage: " + " ".join(STAGES)),
    Field("wake_late_ns", "<i4", (), "ns", "wake-up after the grid point"),
    Field("skipped_ticks", "<u4", (), "tick", "grid periods skipped so far"),
    Field("motor_temperature", "<i2", (N_JOINTS, 2), "°C", "casing and winding of each motor"),
    Field("policy", "<i2", (), "", "index into the run's policies, -1 for none"),
    Field("state_new", "u1", (), "", "1 when this state is newer than the row before's"),
    Field("crc_ok", "u1", (), "", "1 when the newest sample's checksum held"),
    Field("remote", "u1", (40,), "", "the wireless remote's bytes"),
    Field("limit_mask", "u1", _J, "", "which limits cut each joint's target, bits"),
    Field("contact", "i1", (2,), "", "estimated contact, left and right: 1, 0, -1 unknown"),
    Field("mode", "u1", (), "", "0 damp, 1 ramp, 2 hold, 3 policy, 4 limp"),
    Field("arm", "u1", (), "", "0 none, 1 keep, 2 drop, 3 shadow"),
    Field("safety_flag", "u1", (), "", "0 normal, 1 emergency stop, 2 fall, 3 other stop"),
    Field("tier", "u1", (), "", "0 none, 1 warn, 2 settle, 3 hold, 4 damp, 5 limp"),
)
"""What every row has."""

POLICY_FIELDS = (
    Field("obs", "<f4", (), "", "observation as the network saw it"),
    Field("action_policy", "<f4", (), "raw", "raw output of the policy network"),
    Field("action_residual", "<f4", (), "raw", "residual's contribution to the raw action"),
    Field("action_combined", "<f4", (), "raw", "raw action with the residual applied"),
    Field("extras", "<f4", (), "", "named further outputs one after the other"),
)
"""Per-policy columns; a row is as wide as the widest policy of the run needs."""

JOINED = (
    Field(
        "send_ns", "<i8", (), "ns", "CLOCK_MONOTONIC when the gateway first published the command; -1 never"
    ),
    Field("gateway_state", "i1", (), "", "gateway's state at that publication; -1 never"),
)
"""Columns that the recorder joins from the gateway's ring by command number."""

LOWSTATE = (
    Field("source_time_ns", "<i8", (), "ns", "sender's DDS time stamp, its CLOCK_REALTIME; 0 for none"),
    Field("recv_ns", "<i8", (), "ns", "CLOCK_MONOTONIC when the recorder took the sample"),
    Field("robot_tick", "<u4", (), "tick", "LowState's counter"),
    Field("q", "<f4", _J, "rad", "joint positions"),
    Field("dq", "<f4", _J, "rad/s", "joint velocities"),
    Field("ddq", "<f4", _J, "rad/s²", "joint accelerations as the motors estimate them"),
    Field("tau_est", "<f4", _J, "N·m", "joint torques as the motors estimate them"),
    Field("quat_wxyz", "<f4", (4,), "", "pelvis IMU: orientation, world from pelvis"),
    Field("gyro_body", "<f4", (3,), "rad/s", "pelvis IMU: angular velocity in the body frame"),
    Field("accel_body", "<f4", (3,), "m/s²", "pelvis IMU: specific force in the body frame"),
    Field("motor_voltage", "<f4", _J, "V", "supply of each motor"),
    Field("motor_temperature", "<i2", (N_JOINTS, 2), "°C", "casing and winding of each motor"),
)
"""Columns of the optional full-rate stream."""

DERIVED = (
    Field(
        "time_s",
        "<f8",
        (),
        "s",
        "robot clock, unwrapped, 0 at the first row; goes on by recv_ns over a jump or a restart",
    ),
    Field("epoch", "<u4", (), "", "jumps and restarts of the robot's clock so far"),
)
"""Columns that the conversion computes."""

ROW_INDEX = Field("row", "<i8", (), "", "index into the group rollout")
"""Of a policy's group: the ticks in which it was in charge."""


def record_dtype(policies: Sequence[PolicyShape]) -> np.dtype:
    """Type of the record that control fills once a tick.

    Args:
        policies: every policy that the run may switch to; empty for a run without one.
    """
    action = max((policy.action for policy in policies), default=0)
    widths = {
        "obs": max((policy.obs for policy in policies), default=0),
        "extras": max((policy.extras_width for policy in policies), default=0),
    }
    columns = [(f.name, f.code, (widths.get(f.name, action),)) for f in POLICY_FIELDS]
    return _aligned([*((f.name, f.code, f.shape) for f in ROW), *columns])


def blank_record(dtype: np.dtype) -> np.ndarray:
    """A preallocated record (0-d) with every value at 'unknown' or zero.

    Contact, motion index and policy start at -1; estimates and the external pose at NaN.
    """
    record = np.zeros((), dtype)
    for name in ("policy", "motion_index", "contact"):
        record[name] = -1
    estimates = ("contact_force", "base_velocity", "external_pose", "external_velocity", "external_age_s")
    for name in ("torso_quat_wxyz", "torso_gyro", *estimates):
        record[name] = np.nan
    record["crc_ok"] = 1
    return record


def journal_dtype(record: np.dtype) -> np.dtype:
    """Type of a row in the journal: the record and the joined columns."""
    columns = [(name, record[name].base.str, record[name].shape) for name in record.names or ()]
    return _aligned([*columns, *((f.name, f.code, f.shape) for f in JOINED)])


def lowstate_dtype() -> np.dtype:
    """Type of one sample of the full-rate stream."""
    return _aligned([(f.name, f.code, f.shape) for f in LOWSTATE])


def _aligned(columns: list[tuple[str, str, tuple[int, ...]]]) -> np.dtype:
    """Widest elements first, so that every column lies on its own alignment without padding."""
    return np.dtype(sorted(columns, key=lambda column: -np.dtype(column[1]).itemsize))
