"""One tick of a rollout as a typed object."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.events import Arm, Mode, Tier
from onboard.logging.layout import SafetyFlag

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class RolloutRecord:
    """What happened in one tick: state, decision, and when it went out.

    Joint arrays are (29,) in SDK motor order; quaternions w, x, y, z. Units as in `layout.ROW`.

    Attributes:
        row: index in the rollout.
        time_s: robot clock, unwrapped, 0 at the first row.
        epoch: jumps and restarts of the robot's clock so far.
        state_age_s: age of the state when the tick began.
        target: what the combined action asked for, rad.
        action_sent: what was handed over after every limit, rad.
        limit_mask: (29,) bits of `layout.LIMITS`, which limits cut the target.
        command: (8,) columns `layout.COMMAND_FIELDS`.
        contact: (2,) left and right foot: 1, 0, or -1 unknown.
        send_ns, gateway_state: first publication of this tick's command; -1 when it never went out.
        stage_ns: (8,) columns `layout.STAGES`.
        obs, action_policy, action_residual, action_combined: of the policy of this tick; None
            where none was in charge.
        extras: further outputs of the network by name.
    """

    row: int
    tick: int
    number: int
    time_s: float
    epoch: int
    robot_tick: int
    source_time_ns: int
    recv_ns: int
    made_ns: int
    send_ns: int
    state_age_s: float
    state_new: int
    crc_ok: int
    q: Floats
    dq: Floats
    tau_est: Floats
    motor_temperature: NDArray[np.int16]
    motor_fault: NDArray[np.uint32]
    quat_wxyz: Floats
    gyro_body: Floats
    accel_body: Floats
    torso_quat_wxyz: Floats
    torso_gyro: Floats
    remote: NDArray[np.uint8]
    policy: int
    motion_index: int
    phase: Floats
    target: Floats
    action_sent: Floats
    kp_scale: float
    limit_mask: NDArray[np.uint8]
    command: Floats
    contact: NDArray[np.int8]
    contact_force: Floats
    base_velocity: Floats
    external_pose: NDArray[np.float64]
    external_pose_ns: int
    external_age_s: float
    external_velocity: Floats
    mode: Mode
    arm: Arm
    episode: int
    step: int
    mark: int
    safety_flag: SafetyFlag
    safety_events: int
    tier: Tier
    gateway_state: int
    stage_ns: NDArray[np.int32]
    wake_late_ns: int
    skipped_ticks: int
    obs: Floats | None
    action_policy: Floats | None
    action_residual: Floats | None
    action_combined: Floats | None
    extras: Mapping[str, Floats]
