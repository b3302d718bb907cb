"""Both messages against Cyclone's own serialisation, and the checksum against the vendor's recipe."""

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS
from onboard.runtime import idl, wire
from onboard.runtime.link import State

FLOAT = st.floats(width=32, allow_nan=False)


def floats(*shape: int) -> st.SearchStrategy[NDArray[Any]]:
    return hnp.arrays(np.float32, shape, elements=FLOAT)


def integers(dtype: type, *shape: int) -> st.SearchStrategy[NDArray[Any]]:
    return hnp.arrays(dtype, shape)


def vendor_crc(words: Iterable[int]) -> int:
    """CRC32 as the vendor's SDK computes it, bit by bit over 32-bit words."""
    crc = 0xFFFFFFFF
    for word in words:
        crc ^= word
        for _ in range(32):
            crc = ((crc << 1) ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
    return crc


def vendor_words(layout: str, values: list[Any]) -> Iterable[int]:
    image = struct.pack(layout, *values)
    return struct.unpack(f"<{len(image) // 4}I", image)[:-1]


@st.composite
def low_states(draw: st.DrawFn) -> idl.LowState:
    motors = wire.N_MOTORS
    analog = draw(floats(motors, 5))
    small = draw(integers(np.int16, motors, 2))
    words = draw(integers(np.uint32, motors, 7))
    mode = draw(integers(np.uint8, motors))
    imu = draw(floats(13)).tolist()
    head = draw(integers(np.uint32, 8)).tolist()
    octets = draw(integers(np.uint8, 42)).tolist()
    return idl.LowState(
        version=head[:2],
        mode_pr=octets[0],
        mode_machine=octets[1],
        tick=head[2],
        imu_state=idl.ImuState(
            imu[:4], imu[4:7], imu[7:10], imu[10:], draw(st.integers(-(2**15), 2**15 - 1))
        ),
        motor_state=[
            idl.MotorState(
                int(mode[i]),
                *analog[i, :4].tolist(),
                temperature=small[i].tolist(),
                vol=float(analog[i, 4]),
                sensor=words[i, :2].tolist(),
                motorstate=int(words[i, 2]),
                reserve=words[i, 3:].tolist(),
            )
            for i in range(motors)
        ],
        wireless_remote=octets[2:],
        reserve=head[3:7],
        crc=head[7],
    )


@st.composite
def low_cmds(draw: st.DrawFn) -> idl.LowCmd:
    motors = wire.N_MOTORS
    analog = draw(floats(motors, 5))
    mode = draw(integers(np.uint8, motors))
    reserve = draw(integers(np.uint32, motors))
    head = draw(integers(np.uint32, 5)).tolist()
    return idl.LowCmd(
        mode_pr=draw(st.integers(0, 255)),
        mode_machine=draw(st.integers(0, 255)),
        motor_cmd=[
            idl.MotorCmd(int(mode[i]), *analog[i].tolist(), reserve=int(reserve[i])) for i in range(motors)
        ],
        reserve=head[:4],
        crc=head[4],
    )


def state_words(message: idl.LowState) -> Iterable[int]:
    imu = message.imu_state
    values: list[Any] = [*message.version, message.mode_pr, message.mode_machine, message.tick]
    values += [*imu.quaternion, *imu.gyroscope, *imu.accelerometer, *imu.rpy, imu.temperature]
    for motor in message.motor_state:
        values += [motor.mode, motor.q, motor.dq, motor.ddq, motor.tau_est, *motor.temperature, motor.vol]
        values += [*motor.sensor, motor.motorstate, *motor.reserve]
    values += [*message.wireless_remote, *message.reserve, message.crc]
    return vendor_words("<2I2B2xI13fh2x" + "B3x4f2hf7I" * 35 + "40B5I", values)


def command_words(message: idl.LowCmd) -> Iterable[int]:
    values: list[Any] = [message.mode_pr, message.mode_machine]
    for motor in message.motor_cmd:
        values += [motor.mode, motor.q, motor.dq, motor.tau, motor.kp, motor.kd, motor.reserve]
    return vendor_words("<2B2x" + "B3x5fI" * 35 + "5I", [*values, *message.reserve, message.crc])


@settings(deadline=None)
@given(low_states())
def test_low_state_from_cyclone_is_read_field_by_field(message: idl.LowState) -> None:
    message.crc = vendor_crc(state_words(message))
    state, decoder = State(), wire.LowStateDecoder()
    assert decoder.decode(message.serialize(), state)
    joints = message.motor_state[:N_JOINTS]
    assert state.robot_tick == message.tick
    assert (state.mode_pr, state.mode_machine) == (message.mode_pr, message.mode_machine)
    assert state.q.tolist() == [motor.q for motor in joints]
    assert state.dq.tolist() == [motor.dq for motor in joints]
    assert state.tau_est.tolist() == [motor.tau_est for motor in joints]
    assert state.temperature.tolist() == [list(motor.temperature) for motor in joints]
    assert state.motor_fault.tolist() == [motor.motorstate for motor in joints]
    assert state.quat_wxyz.tolist() == message.imu_state.quaternion
    assert state.gyro_body.tolist() == message.imu_state.gyroscope
    assert state.accel_body.tolist() == message.imu_state.accelerometer
    assert state.remote.tolist() == message.wireless_remote


@settings(deadline=None)
@given(low_states())
def test_low_state_survives_our_bytes_and_cyclones_reader(message: idl.LowState) -> None:
    frame = wire.Frame(wire.LOW_STATE)
    for name in ("version", "mode_pr", "mode_machine", "tick", "wireless_remote", "reserve"):
        frame.fields[name] = getattr(message, name)
    for name in ("quaternion", "gyroscope", "accelerometer", "rpy"):
        frame.fields[name] = getattr(message.imu_state, name)
    for name in ("q", "dq", "ddq", "tau_est", "temperature", "vol", "sensor", "motorstate", "reserve"):
        frame.motor[name] = [getattr(motor, name) for motor in message.motor_state]
    modes = [motor.mode for motor in message.motor_state]
    frame.motor["mode"][1:] = modes[1:]
    frame.fields["mode_0"] = modes[0]
    frame.fields["imu_temperature"] = message.imu_state.temperature
    back = idl.LowState.deserialize(bytes(frame.seal()))
    message.crc = vendor_crc(state_words(message))
    assert back.serialize() == message.serialize()


@settings(deadline=None)
@given(low_cmds())
def test_low_cmd_from_cyclone_is_read_field_by_field(message: idl.LowCmd) -> None:
    message.crc = vendor_crc(command_words(message))
    decoder = wire.LowCmdDecoder()
    assert decoder.decode(message.serialize()), decoder.fault
    joints = message.motor_cmd[:N_JOINTS]
    assert (decoder.mode_pr, decoder.mode_machine) == (message.mode_pr, message.mode_machine)
    assert decoder.motor_mode().tolist() == [motor.mode for motor in joints]
    for name in ("q", "dq", "tau", "kp", "kd"):
        assert getattr(decoder, name).tolist() == [getattr(motor, name) for motor in joints]


@settings(deadline=None)
@given(
    q=floats(N_JOINTS),
    kp=floats(N_JOINTS),
    kd=floats(N_JOINTS),
    valid=hnp.arrays(np.bool_, N_JOINTS),
    mode_machine=st.integers(0, 255),
)
def test_what_the_writer_fills_is_what_cyclone_reads(
    q: NDArray[Any], kp: NDArray[Any], kd: NDArray[Any], valid: NDArray[Any], mode_machine: int
) -> None:
    raw = bytes(wire.LowCmdWriter(valid).fill(q, kp, kd, mode_machine))
    message = idl.LowCmd.deserialize(raw)
    want = [
        idl.MotorCmd(mode=1, q=float(q[i]), kp=float(kp[i]), kd=float(kd[i])) if valid[i] else idl.MotorCmd()
        for i in range(N_JOINTS)
    ]
    want += [idl.MotorCmd()] * (wire.N_MOTORS - N_JOINTS)
    assert message.motor_cmd == want
    assert (message.mode_pr, message.mode_machine, message.reserve) == (0, mode_machine, [0] * 4)
    assert message.crc == vendor_crc(command_words(message))
    assert message.serialize() == raw


@given(imu=floats(13))
def test_torso_imu_from_cyclone(imu: NDArray[Any]) -> None:
    values = imu.tolist()
    message = idl.ImuState(values[:4], values[4:7], values[7:10], values[10:], -5)
    state = State()
    assert wire.decode_torso_imu(message.serialize(), state)
    assert state.torso_quat_wxyz.tolist() == values[:4]
    assert state.torso_gyro.tolist() == values[4:7]


def test_ground_truth_layout_is_cyclones() -> None:
    message = idl.GroundTruth(
        7, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0] * 3, [9.0] * 3, [float(i) for i in range(6)]
    )
    truth = np.frombuffer(message.serialize(), wire.GROUND_TRUTH)[0]
    assert truth["tick"] == 7
    assert truth["position"].tolist() == [1, 2, 3]
    assert truth["quaternion"].tolist() == [4, 5, 6, 7]
    assert truth["linear_velocity"].tolist() == [8] * 3
    assert truth["angular_velocity"].tolist() == [9] * 3
    assert truth["contact_force"].tolist() == [[0, 1, 2], [3, 4, 5]]
