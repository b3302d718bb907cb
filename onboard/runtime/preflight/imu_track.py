"""What both IMUs say over a stretch of time, every sample of it."""

import itertools
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import LinkError
from onboard.policies.rotations import Vector, conjugate, gravity_in_body, multiply
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.link import State
from onboard.runtime.wire import LowStateDecoder, decode_torso_imu

Floats = NDArray[np.float64]

WAIST = slice(12, 15)
"""Motor slots of waist yaw, roll and pitch."""
TORSO_NUMBERS = 13
"""Of an IMUState: quaternion, gyro, acceleration, roll pitch yaw."""
TICK_S = 1e-3
RATE_WINDOW_S = 0.02


class Imu(NamedTuple):
    """One IMU's samples, in the order in which they came.

    Attributes:
        time_s: (N,) of the robot for the pelvis; of this machine for the torso, which has no counter.
        quat: (N, 4) w, x, y, z as the wire has it.
        gyro, accel: (N, 3) rad/s and m/s², in its own frame.
        rpy: (N, 3) roll, pitch and yaw that it reports itself, rad.
    """

    time_s: Floats
    quat: Floats
    gyro: Floats
    accel: Floats
    rpy: Floats

    @property
    def mean_quat(self) -> tuple[float, float, float, float]:
        """Mean orientation, normalised; a quaternion and its negative are the same one."""
        aligned = self.quat * np.where(self.quat @ self.quat[0] < 0, -1.0, 1.0)[:, None]
        w, x, y, z = (float(value) for value in _unit(aligned.mean(axis=0)))
        return w, x, y, z

    @property
    def gravity_by_quat(self) -> Vector:
        """Unit gravity in its frame, as the quaternion has it."""
        return gravity_in_body(self.mean_quat)

    @property
    def gravity_by_accel(self) -> Vector:
        """Unit gravity in its frame, as the accelerometer feels it at rest."""
        x, y, z = (float(-value) for value in _unit(self.accel.mean(axis=0)))
        return x, y, z


class Track(NamedTuple):
    """Both IMUs and the waist between them.

    Attributes:
        pelvis: LowState's.
        torso: the secondary one; None where it was not heard.
        waist: (N, 3) yaw, roll, pitch of the waist with each of the pelvis' samples, rad.
        newest: the last LowState.
    """

    pelvis: Imu
    torso: Imu | None
    waist: Floats
    newest: State


class ImuEar:
    """Listens to both IMUs for as long as it is open.

    Args:
        dds: where; closed by its owner.
    """

    def __init__(self, dds: DdsDomain) -> None:
        self._where = f"{dds.interface}, domain {dds.id}"
        self._states = dds.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=256)
        self._torsos = dds.reader(idl.TORSO_IMU_TOPIC, idl.ImuState, depth=256)
        self._decoder, self._state = LowStateDecoder(), State()

    def hear(self, seconds: float) -> Track:
        """Everything of the next so many seconds.

        Raises:
            LinkError: no good LowState came.
        """
        self._states.take_all()
        self._torsos.take_all()
        rows: list[list[float]] = []
        torsos: list[list[float]] = []
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._states.wait(min(0.02, left))
            rows += [self._row() for sample in self._states.take_all() if self._good(sample.raw)]
            torsos += [
                [time.monotonic(), *np.frombuffer(sample.raw, "<f4", TORSO_NUMBERS, 4).tolist()]
                for sample in self._torsos.take_all()
                if decode_torso_imu(sample.raw, self._state)
            ]
        if len(rows) < 2:
            raise LinkError(f"no LowState on {self._where} within {seconds:g} s; see network.rate")
        heard = np.array(rows)
        return Track(
            _imu(heard), _imu(np.array(torsos)) if len(torsos) > 1 else None, heard[:, 14:], self._state
        )

    def close(self) -> None:
        """Stop listening."""
        self._states.close()
        self._torsos.close()

    def _good(self, raw: bytes) -> bool:
        return self._decoder.decode(raw, self._state)

    def _row(self) -> list[float]:
        state = self._state
        parts = (state.quat_wxyz, state.gyro_body, state.accel_body, self._decoder.frame.fields["rpy"])
        numbers = [value for part in (*parts, state.q[WAIST]) for value in part.tolist()]
        return [state.robot_tick * TICK_S, *numbers]


def joined(tracks: Sequence[Track]) -> Imu:
    """The pelvis' IMU over several stretches that follow each other."""
    return Imu(*(np.concatenate(parts) for parts in zip(*(track.pelvis for track in tracks), strict=True)))


def turn_rates(imu: Imu) -> tuple[Floats, Floats]:
    """(K, 3) each, rad/s: how the quaternion turned in windows of 20 ms, and what the gyro said of them."""
    period = float(np.median(np.diff(imu.time_s)))
    stride = max(1, round(RATE_WINDOW_S / period)) if period > 0 else 1
    ends = np.arange(0, len(imu.time_s), stride)
    by_quat, by_gyro = [], []
    for begin, end in itertools.pairwise(ends):
        span = float(imu.time_s[end] - imu.time_s[begin])
        if span > 0:
            by_quat.append(rotation_vector(imu.quat[begin], imu.quat[end]) / span)
            by_gyro.append((imu.gyro[begin:end] + imu.gyro[begin + 1 : end + 1]).mean(axis=0) / 2)
    return np.array(by_quat), np.array(by_gyro)


def rotation_vector(first: Sequence[float] | Floats, then: Sequence[float] | Floats) -> Floats:
    """(3,) axis times angle, rad, that turns one orientation into another, in the first one's frame."""
    w, x, y, z = multiply(conjugate([float(v) for v in first]), [float(v) for v in then])
    axis: Floats = np.array([x, y, z]) * (1.0 if w >= 0 else -1.0)
    length = float(np.linalg.norm(axis))
    return axis if length == 0 else axis * (2 * math.atan2(length, abs(w)) / length)


def angle_between(a: Sequence[float], b: Sequence[float]) -> float:
    """Between two unit vectors, rad; NaN where one of them is not finite."""
    cosine = sum(p * q for p, q in zip(a, b, strict=True))
    return math.nan if math.isnan(cosine) else math.acos(max(-1.0, min(1.0, cosine)))


def _imu(rows: Floats) -> Imu:
    return Imu(rows[:, 0], rows[:, 1:5], rows[:, 5:8], rows[:, 8:11], rows[:, 11:14])


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector
