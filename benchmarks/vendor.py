"""What is done with the vendor's message objects, joint by joint."""

from typing import Any

from onboard.configs.robot import N_JOINTS
from onboard.policies.policy import Policy
from onboard.runtime.link import Float32Array, State


def read_policy_inputs(message: Any, state: State) -> None:  # noqa: ANN401 - the vendor's untyped LowState_
    """Read what a walking policy needs, as deploy scripts do: joints and pelvis IMU."""
    for joint in range(N_JOINTS):
        motor = message.motor_state[joint]
        state.q[joint] = motor.q
        state.dq[joint] = motor.dq
    state.quat_wxyz[:] = message.imu_state.quaternion
    state.gyro_body[:] = message.imu_state.gyroscope
    state.mode_machine = message.mode_machine


def read_state(message: Any, state: State) -> None:  # noqa: ANN401 - the vendor's untyped LowState_
    """Read everything that `LowStateDecoder` reads."""
    for joint in range(N_JOINTS):
        motor = message.motor_state[joint]
        state.q[joint] = motor.q
        state.dq[joint] = motor.dq
        state.tau_est[joint] = motor.tau_est
        state.temperature[joint] = motor.temperature
        state.motor_fault[joint] = motor.motorstate
    imu = message.imu_state
    state.quat_wxyz[:], state.gyro_body[:] = imu.quaternion, imu.gyroscope
    state.accel_body[:] = imu.accelerometer
    state.remote[:] = bytearray(message.wireless_remote)  # bytes or a list, by version
    state.mode_pr, state.mode_machine = message.mode_pr, message.mode_machine
    state.robot_tick = message.tick


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
