"""Layout, checksum vectors, refusals and the one writer of commands."""

import numpy as np
import pytest

from onboard.configs.robot import N_JOINTS
from onboard.runtime import wire
from onboard.runtime.link import State

ALL = np.ones(N_JOINTS, dtype=bool)


def swapped(words: list[int]) -> bytes:
    return np.array(words, dtype=">u4").tobytes()


@pytest.mark.parametrize(
    ("words", "crc"),
    [([0], 0xC704DD7B), ([1, 2, 3], 0x64C51784), ([0xFFFFFFFF], 0x00000000)],
)
def test_crc_of_words_equals_the_vendors_library(words: list[int], crc: int) -> None:
    assert wire.crc32_words(swapped(words)) == crc


def command_frame() -> wire.Frame:
    return wire.Frame(wire.LOW_CMD)


def test_crc_vectors_of_low_cmd() -> None:
    frame = command_frame()
    assert frame.checksum() == 0xFE172F9F
    frame.fields["mode_pr"] = 1
    assert frame.checksum() == 0xEAC27197
    frame.fields["mode_pr"] = 0
    frame.fields["mode_machine"] = 5
    assert frame.checksum() == 0x54F027ED
    frame.fields["mode_machine"] = 0
    frame.motor["reserve"][34] = 1
    assert frame.checksum() == 0xE9C41EC2
    frame.motor["reserve"][34] = 0
    frame.fields["reserve"][3] = 1
    assert frame.checksum() == 0xFAD63228


def test_crc_vector_of_a_filled_low_cmd_ignores_the_crc_field() -> None:
    frame = command_frame()
    index = np.arange(N_JOINTS, dtype=np.float32)
    joints = frame.motor[:N_JOINTS]
    frame.fields["mode_machine"] = 5
    joints["mode"][1:] = 1
    frame.fields["mode_0"] = 1
    joints["q"] = [0.01 * i for i in range(N_JOINTS)]
    joints["tau"] = -0.5 * index
    joints["kp"] = 40.0
    joints["kd"] = 1.0
    assert frame.checksum() == 0xA0FB5230
    frame.fields["crc"] = 0x12345678
    assert frame.checksum() == 0xA0FB5230


def test_crc_vectors_of_low_state() -> None:
    frame = wire.Frame(wire.LOW_STATE)
    assert frame.checksum() == 0xD64BB04A
    frame.fields["tick"] = 123456
    frame.fields["mode_machine"] = 5
    frame.fields["quaternion"][0] = 1.0
    frame.fields["imu_temperature"] = 35
    frame.motor["q"][0] = 0.5
    frame.motor["temperature"][0] = (30, 40)
    frame.fields["wireless_remote"][2] = 0x24
    assert frame.checksum() == 0x13FEE330


@pytest.mark.parametrize(("dtype", "first"), [(wire.LOW_STATE, 72), (wire.LOW_CMD, 4)])
def test_padding_of_the_sender_does_not_enter_the_checksum(dtype: np.dtype, first: int) -> None:
    clean, dirty = wire.Frame(dtype), wire.Frame(dtype)
    dirty.buffer[first + 3] = 0xDD
    for motor in range(1, wire.N_MOTORS):
        mode = first + motor * dirty.motor.dtype.itemsize
        dirty.buffer[mode + 1 : mode + 4] = b"\xaa\xbb\xcc"
    assert bytes(dirty.buffer) != bytes(clean.buffer)
    assert dirty.checksum() == clean.checksum()


def sample(tick: int = 7) -> bytes:
    encoder = wire.LowStateEncoder(mode_machine=5)
    encoder.q[:] = np.linspace(-1, 1, N_JOINTS)
    encoder.dq[:] = np.linspace(2, 3, N_JOINTS)
    encoder.tau_est[:] = np.linspace(-9, 9, N_JOINTS)
    encoder.temperature[:] = np.arange(58).reshape(29, 2) - 20
    encoder.motor_fault[4] = 0x80000001
    encoder.quat_wxyz[:] = (0.5, -0.5, 0.5, -0.5)
    encoder.gyro_body[:] = (1, 2, 3)
    encoder.accel_body[:] = (4, 5, 6)
    encoder.remote[:] = np.arange(40)
    return bytes(encoder.seal(tick))


def test_decode_fills_every_field_of_the_state() -> None:
    state = State()
    assert wire.LowStateDecoder().decode(sample(tick=0xFFFFFFFF), state)
    assert (state.robot_tick, state.mode_pr, state.mode_machine) == (0xFFFFFFFF, 0, 5)
    np.testing.assert_array_equal(state.q, np.linspace(-1, 1, N_JOINTS).astype(np.float32))
    np.testing.assert_array_equal(state.dq, np.linspace(2, 3, N_JOINTS).astype(np.float32))
    np.testing.assert_array_equal(state.tau_est, np.linspace(-9, 9, N_JOINTS).astype(np.float32))
    np.testing.assert_array_equal(state.temperature, np.arange(58).reshape(29, 2) - 20)
    assert np.flatnonzero(state.motor_fault).tolist() == [4]
    assert state.motor_fault[4] == 0x80000001
    assert state.quat_wxyz.tolist() == [0.5, -0.5, 0.5, -0.5]
    assert state.gyro_body.tolist() == [1, 2, 3]
    assert state.accel_body.tolist() == [4, 5, 6]
    assert state.remote.tolist() == list(range(40))


def test_decode_reuses_the_arrays_of_the_state() -> None:
    state, decoder = State(), wire.LowStateDecoder()
    q = state.q
    decoder.decode(sample(), state)
    assert state.q is q


@pytest.mark.parametrize("header", [b"\x00\x01\x00\x00", b"\x00\x07\x00\x00"])
def test_both_little_endian_headers_are_read(header: bytes) -> None:
    assert wire.LowStateDecoder().decode(header + sample()[4:], State())


@pytest.mark.parametrize(
    "bad",
    [
        sample()[:-1],
        sample() + b"\0",
        b"",
        b"\x00\x00\x00\x00" + sample()[4:],
        b"\x00\x06\x00\x00" + sample()[4:],
        sample()[:-1] + bytes([sample()[-1] ^ 1]),
    ],
    ids=["short", "long", "empty", "big endian", "XCDR2 big endian", "checksum"],
)
def test_a_bad_sample_changes_nothing(bad: bytes) -> None:
    state, decoder = State(), wire.LowStateDecoder()
    state.q[:] = 9.0
    assert not decoder.decode(bad, state)
    assert (state.q == 9.0).all()
    assert state.robot_tick == 0


@pytest.mark.parametrize("position", [12, 16, 20, 72, 74, 76, 128, 2031, 2032, 2071, 2087])
def test_every_part_of_the_state_is_under_the_checksum(position: int) -> None:
    raw = bytearray(sample())
    raw[position] ^= 0x10
    assert not wire.LowStateDecoder().decode(bytes(raw), State())


def decoded(raw: bytearray) -> wire.LowCmdDecoder:
    decoder = wire.LowCmdDecoder()
    assert decoder.decode(bytes(raw)), decoder.fault
    return decoder


def test_the_writer_enables_valid_motors_and_nothing_else() -> None:
    valid = ALL.copy()
    valid[[0, 13, 28]] = False
    values = np.linspace(1, 2, N_JOINTS, dtype=np.float32)
    got = decoded(wire.LowCmdWriter(valid).fill(values, values * 10, values * 2, mode_machine=4))
    assert got.motor_mode().tolist() == valid.astype(int).tolist()
    assert (got.mode_pr, got.mode_machine) == (0, 4)
    np.testing.assert_array_equal(got.q, np.where(valid, values, 0))
    np.testing.assert_array_equal(got.kp, np.where(valid, values * 10, 0))
    np.testing.assert_array_equal(got.kd, np.where(valid, values * 2, 0))
    assert not got.dq.any()
    assert not got.tau.any()
    assert not got.frame.motor[N_JOINTS:].tobytes().strip(b"\0")


def test_a_second_command_keeps_nothing_of_the_first() -> None:
    writer = wire.LowCmdWriter(ALL)
    one, two = np.full((2, N_JOINTS), [[1.5], [2.5]], dtype=np.float32)
    writer.fill(one, one, one, 255)
    again = bytes(writer.fill(two, one, two, 5))
    assert again == bytes(wire.LowCmdWriter(ALL).fill(two, one, two, 5))


def test_the_writers_mask_is_its_own() -> None:
    valid = ALL.copy()
    writer = wire.LowCmdWriter(valid)
    valid[:] = False
    ones = np.ones(N_JOINTS, dtype=np.float32)
    assert decoded(writer.fill(ones, ones, ones, 5)).q.all()


def test_the_command_decoder_says_what_is_wrong() -> None:
    ones = np.ones(N_JOINTS, dtype=np.float32)
    raw = bytes(wire.LowCmdWriter(ALL).fill(ones, ones, ones, 5))
    decoder = wire.LowCmdDecoder()
    assert not decoder.decode(raw[:-4])
    assert decoder.fault == "length"
    assert not decoder.decode(raw[:40] + bytes([raw[40] ^ 1]) + raw[41:])
    assert decoder.fault == "crc"
    assert decoder.decode(raw)
    assert decoder.fault == ""


def test_torso_imu_is_read_with_and_without_padding() -> None:
    encoder = wire.ImuEncoder()
    encoder.quat_wxyz[:] = (1, 2, 3, 4)
    encoder.gyro[:] = (5, 6, 7)
    for raw in (
        bytes(encoder.buffer),
        bytes(encoder.buffer[:58]),
        b"\x00\x01\x00\x02" + bytes(encoder.buffer[4:]),
    ):
        state = State()
        assert wire.decode_torso_imu(raw, state)
        assert state.torso_quat_wxyz.tolist() == [1, 2, 3, 4]
        assert state.torso_gyro.tolist() == [5, 6, 7]


@pytest.mark.parametrize("raw", [b"", b"\x00\x01\x00\x00" + bytes(50), b"\x00\x00\x00\x00" + bytes(56)])
def test_what_is_no_torso_imu_is_refused(raw: bytes) -> None:
    state = State()
    assert not wire.decode_torso_imu(raw, state)
    assert np.isnan(state.torso_quat_wxyz).all()
