"""The samples of one tick, and what they say together about its end.

Position and attitude at the end are means over all samples, each carried to the end with the rates
that followed it: noise of a single sample counts by its root of ten less, and nothing lags. The leg's
velocity is a difference of two such ends, so this is what its noise depends on.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS
from onboard.policies.estimators.kinematics import Float64Array, cross, matrices

MAX_SAMPLES = 256
"""Of one tick; a robot sends ten."""

_Q = slice(0, N_JOINTS)
_DQ = slice(N_JOINTS, 2 * N_JOINTS)
_TAU = slice(2 * N_JOINTS, 3 * N_JOINTS)
_QUAT = slice(3 * N_JOINTS, 3 * N_JOINTS + 4)
_GYRO = slice(3 * N_JOINTS + 4, 3 * N_JOINTS + 7)
_ACCEL = slice(3 * N_JOINTS + 7, 3 * N_JOINTS + 10)


@dataclass(frozen=True)
class TickSamples:
    """What the samples of a tick say.

    Attributes:
        q, dq: (29,) rad and rad/s, at the end.
        turn: (3, 3) world from pelvis, at the end.
        gyro: (3,) rad/s, at the end, pelvis frame.
        tau: (29,) N·m, mean.
        specific: (3,) m/s², mean specific force of the pelvis' origin, world-aligned.
    """

    q: Float64Array
    dq: Float64Array
    turn: Float64Array
    gyro: Float64Array
    tau: Float64Array
    specific: Float64Array


class Window:
    """Collects the samples of one tick.

    Args:
        imu_m: (3,) where the IMU sits in the pelvis frame.

    Attributes:
        count: samples collected.
    """

    def __init__(self, imu_m: tuple[float, ...]) -> None:
        self._rows: Float64Array = np.zeros((MAX_SAMPLES, _ACCEL.stop))
        self._imu_m: Float64Array = np.array(imu_m)
        self.count = 0

    @property
    def full(self) -> bool:
        """No further sample fits."""
        return self.count == MAX_SAMPLES

    def add(
        self,
        q: NDArray[np.floating],
        dq: NDArray[np.floating],
        tau_est: NDArray[np.floating],
        quat_wxyz: NDArray[np.floating],
        gyro_body: NDArray[np.floating],
        accel_body: NDArray[np.floating],
    ) -> None:
        """Copy one sample; see `LegOdometry.add`."""
        row = self._rows[self.count]
        row[_Q], row[_DQ], row[_TAU] = q, dq, tau_est
        row[_QUAT], row[_GYRO], row[_ACCEL] = quat_wxyz, gyro_body, accel_body
        self.count += 1

    def take(self, dt: float, gyro_before: Float64Array) -> TickSamples:
        """What the samples say; the window is empty afterwards.

        Args:
            dt: length of the tick, s; 0 where it is unknown.
            gyro_before: (3,) rad/s, at the end of the tick before.
        """
        rows = self._rows[: self.count]
        step = dt / self.count
        self.count = 0
        turns, gyro = matrices(rows[:, _QUAT]), rows[:, _GYRO]
        specific = rows[:, _ACCEL] - self._beside(gyro, gyro_before, dt)
        return TickSamples(
            q=(rows[:, _Q] + step * _later(rows[:, _DQ])).mean(0),
            dq=rows[-1, _DQ].copy(),
            turn=_mean_end(turns, step * _later(gyro)),
            gyro=gyro[-1].copy(),
            tau=rows[:, _TAU].mean(0),
            specific=(turns @ specific[:, :, None])[:, :, 0].mean(0),
        )

    def _beside(self, gyro: Float64Array, gyro_before: Float64Array, dt: float) -> Float64Array:
        """(n, 3) m/s², what the IMU feels for sitting beside the pelvis' origin."""
        around = cross(gyro, cross(gyro, self._imu_m))
        return around + cross((gyro[-1] - gyro_before) / dt, self._imu_m) if dt > 0.0 else around


def _later(rates: Float64Array) -> Float64Array:
    """For every row the sum of those that follow it."""
    return np.cumsum(rates[::-1], axis=0)[::-1] - rates


def _mean_end(turns: Float64Array, later: Float64Array) -> Float64Array:
    """Mean attitude (3, 3) at the end of attitudes (n, 3, 3), each followed by a small rotation (n, 3)."""
    off = turns[-1].T @ turns
    vectors = 0.5 * np.stack(
        [off[:, 2, 1] - off[:, 1, 2], off[:, 0, 2] - off[:, 2, 0], off[:, 1, 0] - off[:, 0, 1]], axis=1
    )
    x, y, z = 0.5 * (vectors + later).mean(0)
    quat = np.array([[1.0, x, y, z]])
    mean: Float64Array = turns[-1] @ matrices(quat)[0]
    return mean
