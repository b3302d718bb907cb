"""One side played by the vendor's C++ DDS (wheel far-unitree-sdk), always on domain 0:

    python -m tests.interop.vendor_cpp robot|controller 0

It drops messages whose checksum is wrong before its Python side sees them.
"""

import sys
from typing import Any

# Installed in this side's environment only.
import unitree_interface  # type: ignore[import-not-found]

from tests.interop import pattern

LOOPBACK = (
    '<CycloneDDS><Domain Id="any"><General><Interfaces>'
    '<NetworkInterface name="lo" priority="default" multicast="false"/></Interfaces>'
    "<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
    '<MaxAutoParticipantIndex>40</MaxAutoParticipantIndex><Peers><Peer address="127.0.0.1"/></Peers>'
    "</Discovery></Domain></CycloneDDS>"
)


def play_robot(robot: Any) -> int:
    """Publish states, check commands, answer the motion switcher."""
    state = unitree_interface.LowState(29)
    state.tick, state.mode_machine = pattern.TICK, pattern.MODE_MACHINE
    state.motor.q, state.motor.dq, state.motor.tau_est = pattern.STATE_Q, pattern.STATE_DQ, pattern.STATE_TAU
    state.imu.quat, state.imu.omega, state.imu.accel = pattern.QUATERNION, pattern.GYRO, pattern.ACCEL
    robot.enable_motion_switcher_responder()

    def receive() -> str | None:
        command = robot.read_incoming_command()
        if not any(command.kp):
            return None
        found = {"q": list(command.q_target), "kp": list(command.kp), "kd": list(command.kd)}
        found |= {"dq": list(command.dq_target), "tau": list(command.tau_ff)}
        zeros = [0.0] * 29
        expected = {"q": pattern.COMMAND_Q, "kp": pattern.COMMAND_KP, "kd": pattern.COMMAND_KD}
        return pattern.differing(found, {**expected, "dq": zeros, "tau": zeros})

    return pattern.run(lambda: robot.publish_low_state(state), receive)


def play_controller(robot: Any) -> int:
    """Publish commands once states come, check states."""
    command = robot.create_zero_command()
    command.q_target, command.kp, command.kd = pattern.COMMAND_Q, pattern.COMMAND_KP, pattern.COMMAND_KD
    heard = False

    def publish() -> None:
        if heard:
            robot.write_low_command(command)

    def receive() -> str | None:
        nonlocal heard
        state = robot.read_low_state()
        if not any(state.motor.q):
            return None
        heard = True
        found: dict[str, object] = {
            "q": list(state.motor.q),
            "dq": list(state.motor.dq),
            "tau": list(state.motor.tau_est),
        }
        found |= {"quaternion": tuple(state.imu.quat), "gyro": tuple(state.imu.omega)}
        found |= {"accel": tuple(state.imu.accel), "mode_machine": state.mode_machine}
        return pattern.differing(
            found,
            {
                "q": pattern.STATE_Q,
                "dq": pattern.STATE_DQ,
                "tau": pattern.STATE_TAU,
                "quaternion": pattern.QUATERNION,
                "gyro": pattern.GYRO,
                "accel": pattern.ACCEL,
                "mode_machine": pattern.MODE_MACHINE,
            },
        )

    return pattern.run(publish, receive)


if __name__ == "__main__":
    kinds = unitree_interface.RobotType.G1, unitree_interface.MessageType.HG
    connected = unitree_interface.create_robot("lo", *kinds, dds_config=LOOPBACK)
    sys.exit({"robot": play_robot, "controller": play_controller}[sys.argv[1]](connected))
