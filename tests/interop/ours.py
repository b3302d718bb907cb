"""One side played by this project's bytes: `python -m tests.interop.ours ROLE DOMAIN [FIELD ...]`.

The fields are those of the state that the other side's library can't send.
"""

import sys

import numpy as np

from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.link import State
from onboard.runtime.motion_switcher import MotionSwitcher, MotionSwitcherResponder
from onboard.runtime.wire import LowCmdDecoder, LowCmdWriter, LowStateDecoder, LowStateEncoder
from tests.interop import pattern


def play_robot(domain: DdsDomain) -> int:
    """Publish states, check commands, answer the motion switcher."""
    states = domain.writer(idl.LOW_STATE_TOPIC, idl.LowState)
    commands = domain.reader(idl.LOW_CMD_TOPIC, idl.LowCmd)
    switcher = MotionSwitcherResponder(domain)
    encoder, decoder = LowStateEncoder(pattern.MODE_MACHINE), LowCmdDecoder()
    encoder.q[:], encoder.dq[:], encoder.tau_est[:] = pattern.STATE_Q, pattern.STATE_DQ, pattern.STATE_TAU
    encoder.temperature[:] = pattern.STATE_TEMPERATURE
    encoder.quat_wxyz[:], encoder.gyro_body[:] = pattern.QUATERNION, pattern.GYRO
    encoder.accel_body[:], encoder.remote[:] = pattern.ACCEL, pattern.REMOTE
    raw = encoder.seal(pattern.TICK)

    def publish() -> None:
        states.write(raw)
        switcher.serve()

    def receive() -> str | None:
        sample = commands.take()
        if sample is None:
            return None
        if not decoder.decode(sample.raw):
            return f"command refused: {decoder.fault}, {len(sample.raw)} bytes, header {sample.raw[:4].hex()}"
        found = {name: getattr(decoder, name).tolist() for name in ("q", "dq", "tau", "kp", "kd")}
        found |= {"mode": decoder.motor_mode().tolist(), "mode_pr": decoder.mode_pr}
        found |= {"mode_machine": decoder.mode_machine}
        return pattern.differing(found, expected_command())

    return pattern.run(publish, receive)


def expected_command() -> dict[str, object]:
    """What the other side sends."""
    zeros = [0.0] * len(pattern.JOINTS)
    return {
        "q": pattern.COMMAND_Q,
        "dq": zeros,
        "tau": zeros,
        "kp": pattern.COMMAND_KP,
        "kd": pattern.COMMAND_KD,
        "mode": [1] * len(pattern.JOINTS),
        "mode_pr": 0,
        "mode_machine": pattern.MODE_MACHINE,
    }


def play_controller(domain: DdsDomain) -> int:
    """Publish commands, check states."""
    commands = domain.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
    states = domain.reader(idl.LOW_STATE_TOPIC, idl.LowState)
    q, kp, kd = np.array([pattern.COMMAND_Q, pattern.COMMAND_KP, pattern.COMMAND_KD], np.float32)
    raw = LowCmdWriter(np.ones(len(pattern.JOINTS), dtype=bool)).fill(q, kp, kd, pattern.MODE_MACHINE)
    state, decoder = State(), LowStateDecoder()

    def receive() -> str | None:
        sample = states.take()
        if sample is None:
            return None
        if not decoder.decode(sample.raw, state):
            return f"state refused: {len(sample.raw)} bytes, header {sample.raw[:4].hex()}"
        return pattern.differing(found_state(state), expected_state())

    return pattern.run(lambda: commands.write(raw), receive)


def found_state(state: State) -> dict[str, object]:
    """The state as plain data."""
    return {
        "tick": state.robot_tick,
        "mode_machine": state.mode_machine,
        "q": state.q.tolist(),
        "dq": state.dq.tolist(),
        "tau": state.tau_est.tolist(),
        "temperature": [tuple(row) for row in state.temperature.tolist()],
        "quaternion": tuple(state.quat_wxyz.tolist()),
        "gyro": tuple(state.gyro_body.tolist()),
        "accel": tuple(state.accel_body.tolist()),
        "remote": tuple(state.remote.tolist()),
    }


def expected_state() -> dict[str, object]:
    """What the other side sends."""
    expected: dict[str, object] = {
        "tick": pattern.TICK,
        "mode_machine": pattern.MODE_MACHINE,
        "q": pattern.STATE_Q,
        "dq": pattern.STATE_DQ,
        "tau": pattern.STATE_TAU,
        "temperature": pattern.STATE_TEMPERATURE,
        "quaternion": pattern.QUATERNION,
        "gyro": pattern.GYRO,
        "accel": pattern.ACCEL,
        "remote": pattern.REMOTE,
    }
    return {name: value for name, value in expected.items() if name not in sys.argv[3:]}


def play_switcher(domain: DdsDomain) -> int:
    """Ask the motion switcher who owns the motors, and take them from whoever does."""
    client = MotionSwitcher(domain)
    client.check()
    client.release()
    fault = "" if client.check() == "" else "not released"
    return pattern.run(lambda: None, lambda: fault)


if __name__ == "__main__":
    roles = {"robot": play_robot, "controller": play_controller, "switcher": play_switcher}
    with DdsDomain(int(sys.argv[2]), "lo") as opened:
        sys.exit(roles[sys.argv[1]](opened))
