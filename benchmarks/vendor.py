"""What a deploy script does with the vendor's message objects, joint by joint."""

from typing import Any

from onboard.configs.robot import N_JOINTS
from onboard.policies.policy import Policy
from onboard.runtime.link import Float32Array, State


def read_state(message: Any, state: State) -> None:  # noqa: ANN401 - the vendor's untyped LowState_
    """Read what the policy needs out of the object, in a loop over the joints."""
    for joint in range(N_JOINTS):
        motor = message.motor_state[joint]
        state.q[joint] = motor.q
        state.dq[joint] = motor.dq
    state.quat_wxyz[:] = message.imu_state.quaternion
    state.gyro_body[:] = message.imu_state.gyroscope
    state.mode_machine = message.mode_machine


def fill_command(message: Any, target: Float32Array, policy: Policy, mode_machine: int) -> None:  # noqa: ANN401
    """Write target and gains into the vendor's LowCmd_, in a loop over the joints."""
    message.mode_pr, message.mode_machine = 0, mode_machine
    for joint in range(N_JOINTS):
        motor = message.motor_cmd[joint]
        motor.mode = 1
        motor.q = float(target[joint])
        motor.dq = 0.0
        motor.tau = 0.0
        motor.kp = float(policy.kp[joint])
        motor.kd = float(policy.kd[joint])
