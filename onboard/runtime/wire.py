"""The robot's messages as bytes: checksum, decode and encode, without building objects.

The checksum is CRC-32/MPEG-2 over the message as a C struct with all padding zero, taken as 32-bit
words, most significant byte first, without the last word. The C struct and the CDR bytes with their
header have equal lengths and are the same from motor 0's `q` on; only the front is shifted. It was
measured against the vendor's library (test vectors in the tests).
"""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS
from onboard.runtime.link import Float32Array, State
from onboard.runtime.wire_layout import (
    ACCEPTED_HEADERS,
    GROUND_TRUTH,
    HEADER,
    IMU_STATE,
    LOW_CMD,
    LOW_STATE,
    N_MOTORS,
)

__all__ = [
    "GROUND_TRUTH",
    "HEADER",
    "IMU_STATE",
    "LOW_CMD",
    "LOW_STATE",
    "N_MOTORS",
    "Frame",
    "ImuEncoder",
    "LowCmdDecoder",
    "LowCmdWriter",
    "LowStateDecoder",
    "LowStateEncoder",
    "crc32_words",
    "decode_torso_imu",
]

_MODES_AND_TICK = struct.Struct("<BB2xI").unpack_from
_REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc32_words(swapped: bytes | bytearray) -> int:
    """CRC-32/MPEG-2 of bytes in which every 32-bit word is already most significant byte first.

    zlib computes the bit-reflected relative of this checksum, so the bits of every byte are
    reversed on the way in, and those of the result on the way out.
    """
    reflected = zlib.crc32(swapped.translate(_REVERSED_BITS)) ^ 0xFFFFFFFF
    return int.from_bytes(reflected.to_bytes(4, "little").translate(_REVERSED_BITS), "big")


class Frame:
    """A buffer of one message's CDR bytes, its fields, and its checksum. Allocated once, then reused.

    Attributes:
        buffer: the bytes, header included.
        fields: the same memory as a 0-d structured array.
        motor: the same memory's motors, shape (35,); `mode` of motor 0 is `fields["mode_0"]`.
    """

    def __init__(self, dtype: np.dtype) -> None:
        size = dtype.itemsize
        self.buffer = bytearray(size)
        self.buffer[:4] = HEADER
        self.fields = np.frombuffer(self.buffer, dtype)[0:1].reshape(())
        self.motor = self.fields["motor"]
        self._view = memoryview(self.buffer)
        self._mode_0 = int(dtype.fields["mode_0"][1]) if dtype.fields else 0
        self._regular = self._mode_0 + 2  # from here on CDR with header and C struct are the same
        self._image = bytearray(size)
        self._image_tail = memoryview(self._image)[self._regular :]
        self._tail = self._view[self._regular :]
        stride = self.motor.dtype.itemsize
        motors = np.frombuffer(self._image, np.uint8, N_MOTORS * stride, self._regular - 4)
        self._padding = motors.reshape(N_MOTORS, stride)[:, 1:4]
        self._words = np.frombuffer(self._image, "<u4", size // 4 - 1)
        self._swapped = bytearray(size - 4)
        self._swapped_words = np.frombuffer(self._swapped, ">u4")

    def load(self, raw: bytes) -> bool:
        """Copy received bytes in; False, and nothing copied, when length or header do not fit."""
        if len(raw) != len(self.buffer) or raw[:4] not in ACCEPTED_HEADERS:
            return False
        self._view[:] = raw
        return True

    def checksum(self) -> int:
        """CRC of the buffer as it is; padding counts as zero whatever the sender left there."""
        image, first = self._image, self._mode_0
        self._image_tail[:] = self._tail
        image[: first - 4] = self._view[4:first]
        image[self._regular - 4] = self.buffer[first]
        self._padding[...] = 0
        self._swapped_words[...] = self._words
        return crc32_words(self._swapped)

    def checksum_holds(self) -> bool:
        """Whether the checksum in the buffer is the right one."""
        return bool(self.checksum() == int.from_bytes(self._view[-4:], "little"))

    def seal(self) -> bytearray:
        """Put the checksum in and return the buffer, ready to be written."""
        self._view[-4:] = self.checksum().to_bytes(4, "little")
        return self.buffer


class LowStateDecoder:
    """Turns received `LowState` bytes into a `State`."""

    def __init__(self) -> None:
        self.frame = Frame(LOW_STATE)
        fields, joints = self.frame.fields, self.frame.motor[:N_JOINTS]
        self._sources = (
            joints["q"],
            joints["dq"],
            joints["tau_est"],
            joints["temperature"],
            joints["motorstate"],
            fields["quaternion"],
            fields["gyroscope"],
            fields["accelerometer"],
            fields["wireless_remote"],
        )

    def decode(self, raw: bytes, state: State) -> bool:
        """Overwrite the robot's part of `state`; False, and nothing touched, when the sample is bad.

        Bad is another length, a header of another encoding, or a checksum that does not hold. Clocks,
        age, counters and the torso IMU are the link's to fill.
        """
        frame = self.frame
        if not (frame.load(raw) and frame.checksum_holds()):
            return False
        state.mode_pr, state.mode_machine, state.robot_tick = _MODES_AND_TICK(frame.buffer, 12)
        q, dq, tau_est, temperature, motor_fault, quat, gyro, accel, remote = self._sources
        state.q[...] = q
        state.dq[...] = dq
        state.tau_est[...] = tau_est
        state.temperature[...] = temperature
        state.motor_fault[...] = motor_fault
        state.quat_wxyz[...] = quat
        state.gyro_body[...] = gyro
        state.accel_body[...] = accel
        state.remote[...] = remote
        return True


class LowStateEncoder:
    """Builds `LowState` bytes, for whoever plays the robot.

    Write into the arrays (views of the message, joint arrays (29,) in SDK order), then `seal`.
    The other slots stay as `frame` has them, zero at first.
    """

    def __init__(self, mode_machine: int) -> None:
        self.frame = Frame(LOW_STATE)
        fields, joints = self.frame.fields, self.frame.motor[:N_JOINTS]
        fields["mode_machine"] = mode_machine
        self.q: Float32Array = joints["q"]
        self.dq: Float32Array = joints["dq"]
        self.ddq: Float32Array = joints["ddq"]
        self.tau_est: Float32Array = joints["tau_est"]
        self.temperature: NDArray[np.int16] = joints["temperature"]
        self.motor_fault: NDArray[np.uint32] = joints["motorstate"]
        self.quat_wxyz: Float32Array = fields["quaternion"]
        self.gyro_body: Float32Array = fields["gyroscope"]
        self.accel_body: Float32Array = fields["accelerometer"]
        self.rpy: Float32Array = fields["rpy"]
        self.remote: NDArray[np.uint8] = fields["wireless_remote"]
        self.set_motor_mode(1)

    def set_motor_mode(self, mode: int) -> None:
        """Report every joint's motor as enabled (1) or not (0)."""
        self.frame.motor["mode"][1:N_JOINTS] = mode
        self.frame.fields["mode_0"] = mode

    def seal(self, robot_tick: int) -> bytearray:
        """The finished message; valid until the next change."""
        self.frame.fields["tick"] = robot_tick & 0xFFFFFFFF
        return self.frame.seal()


class LowCmdWriter:
    """The only place where a `LowCmd` is written.

    The buffer is all zero at first and only the fields below are ever written, so padding, `mode_pr`
    (0: joints as pitch and roll), `dq`, `tau` and the slots of absent motors stay zero.

    Args:
        valid: (29,) bool, the motors that this robot has; the others keep mode 0 and all zeros.
    """

    def __init__(self, valid: NDArray[np.bool_]) -> None:
        self._frame = Frame(LOW_CMD)
        self._valid = np.array(valid, dtype=bool)
        joints = self._frame.motor[:N_JOINTS]
        self._q, self._kp, self._kd = joints["q"], joints["kp"], joints["kd"]
        joints["mode"][1:] = self._valid[1:]
        self._frame.fields["mode_0"] = self._valid[0]

    def fill(self, q: Float32Array, kp: Float32Array, kd: Float32Array, mode_machine: int) -> bytearray:
        """One complete command.

        Args:
            q: (29,) target, rad, SDK motor order.
            kp: (29,) N·m/rad.
            kd: (29,) N·m·s/rad.
            mode_machine: echoed from the state.

        Returns:
            The bytes to publish, 1004 with header; valid until the next call.
        """
        np.copyto(self._q, q, where=self._valid)
        np.copyto(self._kp, kp, where=self._valid)
        np.copyto(self._kd, kd, where=self._valid)
        self._frame.buffer[5] = mode_machine
        return self._frame.seal()


class LowCmdDecoder:
    """Reads `LowCmd` bytes, for whoever plays the robot or watches the topic.

    Attributes:
        q, dq, tau, kp, kd: (29,) views of the last loaded message, SDK motor order.
        fault: why the last message was refused: "" or one of "length", "crc".
    """

    def __init__(self) -> None:
        self.frame = Frame(LOW_CMD)
        joints = self.frame.motor[:N_JOINTS]
        self.q: Float32Array = joints["q"]
        self.dq: Float32Array = joints["dq"]
        self.tau: Float32Array = joints["tau"]
        self.kp: Float32Array = joints["kp"]
        self.kd: Float32Array = joints["kd"]
        self.fault = ""

    def decode(self, raw: bytes) -> bool:
        """Load a message; False when length, header or checksum are wrong (`fault` says which)."""
        if not self.frame.load(raw):
            self.fault = "length"
        else:
            self.fault = "" if self.frame.checksum_holds() else "crc"
        return not self.fault

    @property
    def mode_pr(self) -> int:
        """0: pitch and roll of the ankles; 1: their actuators A and B."""
        return self.frame.buffer[4]

    @property
    def mode_machine(self) -> int:
        """The robot type that the sender believes in."""
        return self.frame.buffer[5]

    def motor_mode(self) -> NDArray[np.uint8]:
        """(29,) a copy: 1 where the motor is enabled."""
        mode: NDArray[np.uint8] = self.frame.motor["mode"][:N_JOINTS].copy()
        mode[0] = self.frame.buffer[6]
        return mode


class ImuEncoder:
    """Builds `IMUState` bytes for the secondary IMU's topic; write into the arrays, then `buffer`."""

    def __init__(self) -> None:
        self.buffer = bytearray(IMU_STATE.itemsize)
        self.buffer[:4] = HEADER
        fields = np.frombuffer(self.buffer, IMU_STATE).reshape(())
        self.quat_wxyz: Float32Array = fields["quaternion"]
        self.gyro: Float32Array = fields["gyroscope"]
        self.accel: Float32Array = fields["accelerometer"]
        self.rpy: Float32Array = fields["rpy"]


def decode_torso_imu(raw: bytes, state: State) -> bool:
    """Overwrite the torso's part of `state`; False when the bytes are no `IMUState`.

    The message has neither checksum nor counter, and its header may announce padding.
    """
    if len(raw) < 58 or raw[0] != 0 or raw[1] not in (1, 7):
        return False
    values = np.frombuffer(raw, "<f4", 7, 4)
    state.torso_quat_wxyz[...] = values[:4]
    state.torso_gyro[...] = values[4:]
    return True
