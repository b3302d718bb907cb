"""One side played by stock unitree_sdk2py: `python -m tests.interop.stock_sdk ROLE DOMAIN`."""

import sys
from typing import Any

from unitree_sdk2py.comm.motion_switcher.motion_switcher_client import MotionSwitcherClient
from unitree_sdk2py.core.channel import ChannelFactoryInitialize, ChannelPublisher, ChannelSubscriber
from unitree_sdk2py.idl.default import unitree_hg_msg_dds__LowCmd_, unitree_hg_msg_dds__LowState_
from unitree_sdk2py.idl.unitree_hg.msg.dds_ import LowCmd_, LowState_
from unitree_sdk2py.utils.crc import CRC

from tests.interop import pattern


def channels(sent: str, kind: type, heard: str, other: type) -> tuple[Any, list[Any]]:
    """A publisher, and the list that fills with what the subscriber hears."""
    publisher = ChannelPublisher(sent, kind)
    publisher.Init()
    received: list[Any] = []
    subscriber = ChannelSubscriber(heard, other)
    subscriber.Init(received.append, 0)
    received.append(subscriber)  # keeps it alive
    return publisher, received


def newest(received: list[Any]) -> Any | None:
    """The last message that came since the previous call."""
    if len(received) < 2:
        return None
    message = received[-1]
    del received[1:]
    return message


def play_robot() -> int:
    """Publish states, check commands."""
    state = unitree_hg_msg_dds__LowState_()
    state.tick, state.mode_machine = pattern.TICK, pattern.MODE_MACHINE
    state.imu_state.quaternion = list(pattern.QUATERNION)
    state.imu_state.gyroscope, state.imu_state.accelerometer = list(pattern.GYRO), list(pattern.ACCEL)
    state.wireless_remote = list(pattern.REMOTE)
    for i in pattern.JOINTS:
        motor = state.motor_state[i]
        motor.q, motor.dq, motor.tau_est = pattern.STATE_Q[i], pattern.STATE_DQ[i], pattern.STATE_TAU[i]
        motor.temperature = list(pattern.STATE_TEMPERATURE[i])
    state.crc = CRC().Crc(state)
    publisher, received = channels("rt/lowstate", LowState_, "rt/lowcmd", LowCmd_)

    def receive() -> str | None:
        command = newest(received)
        if command is None:
            return None
        if CRC().Crc(command) != command.crc:
            return "checksum of the command is wrong"
        motors = [command.motor_cmd[i] for i in pattern.JOINTS]
        found = {name: [getattr(motor, name) for motor in motors] for name in ("q", "kp", "kd", "mode")}
        found["rest"] = [(motor.dq, motor.tau, motor.reserve) for motor in motors]
        found["head"] = [command.mode_pr, command.mode_machine, *command.reserve]
        return pattern.differing(
            found,
            {
                "q": pattern.COMMAND_Q,
                "kp": pattern.COMMAND_KP,
                "kd": pattern.COMMAND_KD,
                "mode": [1] * len(motors),
                "rest": [(0.0, 0.0, 0)] * len(motors),
                "head": [0, pattern.MODE_MACHINE, 0, 0, 0, 0],
            },
        )

    return pattern.run(lambda: publisher.Write(state), receive)


def play_controller() -> int:
    """Publish commands, check states."""
    command = unitree_hg_msg_dds__LowCmd_()
    command.mode_machine = pattern.MODE_MACHINE
    for i in pattern.JOINTS:
        motor = command.motor_cmd[i]
        motor.mode, motor.q = 1, pattern.COMMAND_Q[i]
        motor.kp, motor.kd = pattern.COMMAND_KP[i], pattern.COMMAND_KD[i]
    command.crc = CRC().Crc(command)
    publisher, received = channels("rt/lowcmd", LowCmd_, "rt/lowstate", LowState_)

    def receive() -> str | None:
        state = newest(received)
        if state is None:
            return None
        if CRC().Crc(state) != state.crc:
            return "checksum of the state is wrong"
        motors = [state.motor_state[i] for i in pattern.JOINTS]
        imu = state.imu_state
        found: dict[str, object] = {"head": (state.tick, state.mode_machine)}
        found["remote"] = tuple(state.wireless_remote)
        found |= {name: [getattr(motor, name) for motor in motors] for name in ("q", "dq", "tau_est")}
        found["temperature"] = [tuple(motor.temperature) for motor in motors]
        found["imu"] = (tuple(imu.quaternion), tuple(imu.gyroscope), tuple(imu.accelerometer))
        return pattern.differing(
            found,
            {
                "head": (pattern.TICK, pattern.MODE_MACHINE),
                "remote": pattern.REMOTE,
                "q": pattern.STATE_Q,
                "dq": pattern.STATE_DQ,
                "tau_est": pattern.STATE_TAU,
                "temperature": pattern.STATE_TEMPERATURE,
                "imu": (pattern.QUATERNION, pattern.GYRO, pattern.ACCEL),
            },
        )

    return pattern.run(lambda: publisher.Write(command), receive)


def play_switcher() -> int:
    """Ask the motion switcher, release, ask again; every step done counts as good messages."""
    client = MotionSwitcherClient()
    client.SetTimeout(5.0)
    client.Init()
    steps = [client.CheckMode(), client.ReleaseMode(), client.CheckMode(), client.SelectMode("normal")]
    steps.append(client.CheckMode())
    expected = [
        (0, {"form": "0", "name": "ai"}),
        (0, None),
        (0, {"form": "0", "name": ""}),
        (0, None),
        (0, {"form": "0", "name": "normal"}),
    ]
    fault = "" if steps == expected else repr(steps)
    return pattern.run(lambda: None, lambda: fault)


if __name__ == "__main__":
    ChannelFactoryInitialize(int(sys.argv[2]), "lo")
    sys.exit({"robot": play_robot, "controller": play_controller, "switcher": play_switcher}[sys.argv[1]]())
