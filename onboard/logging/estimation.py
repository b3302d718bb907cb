"""Feeds an estimator with every LowState sample and tells the other processes what it found.

The estimator itself is handed in (`onboard.policies.estimators`); this room only knows its shape.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS
from onboard.logging.robot_clock import JUMP_S, unit_of
from onboard.runtime.wire import Frame

CALIBRATION_SAMPLES = 100
"""Samples, 0.2 s, after which the unit of the robot's counter counts as known."""


class Found(Protocol):
    """What an estimator found."""

    time_s: float
    contact: NDArray[np.int8]
    force_n: NDArray[np.float64]
    velocity_m_s: NDArray[np.float64]


class Estimator(Protocol):
    """Turns samples into estimates, `onboard.policies.estimators.estimator.LegOdometry`."""

    due: bool

    def add(
        self,
        time_s: float,
        q: NDArray[np.floating],
        dq: NDArray[np.floating],
        tau_est: NDArray[np.floating],
        quat_wxyz: NDArray[np.floating],
        gyro_body: NDArray[np.floating],
        accel_body: NDArray[np.floating],
    ) -> None:
        """Take one sample; arrays in SDK motor order, the pelvis IMU."""

    def tick(self) -> Found:
        """Work out what the samples since the last call say."""


class TickTime:
    """Seconds by the robot's own counter, which does not jitter as times of arrival do.

    Its unit is measured against the sender's clock first; None until it is known.
    """

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None
        self._samples = 0
        self._last_tick = 0
        self._ticks = 0
        self._unit_s: float | None = None

    def seconds(self, robot_tick: int, source_time_ns: int) -> float | None:
        """Time of a sample since the first one; a counter that jumps or restarts leaves a gap of a second."""
        if self._first is None:
            self._first, self._last_tick = (robot_tick, source_time_ns), robot_tick
        moved = (robot_tick - self._last_tick + (1 << 31)) % (1 << 32) - (1 << 31)
        if self._unit_s is not None and abs(moved) * self._unit_s > JUMP_S:
            moved = round(JUMP_S / self._unit_s)
        self._ticks += moved
        self._last_tick = robot_tick
        self._samples += 1
        if self._unit_s is None and self._samples > CALIBRATION_SAMPLES and self._ticks > 0:
            self._unit_s = unit_of((source_time_ns - self._first[1]) * 1e-9 / self._ticks)
        return None if self._unit_s is None else self._ticks * self._unit_s


class EstimatorFeed:
    """Passes samples on and keeps the newest estimate.

    Args:
        estimator: handed in.

    Attributes:
        found: the newest estimate, None before the first.
        fresh: it is newer than the last `report`.
    """

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._time = TickTime()
        self._newest_s = 0.0
        self.found: Found | None = None
        self.fresh = False

    def see(self, frame: Frame, source_time_ns: int) -> None:
        """Take one good sample."""
        fields, joints = frame.fields, frame.motor[:N_JOINTS]
        time_s = self._time.seconds(int(fields["tick"]), source_time_ns)
        if time_s is None:
            return
        self._newest_s = time_s
        self._estimator.add(
            time_s,
            joints["q"],
            joints["dq"],
            joints["tau_est"],
            fields["quaternion"],
            fields["gyroscope"],
            fields["accelerometer"],
        )
        if self._estimator.due:
            self.found, self.fresh = self._estimator.tick(), True

    def report(self, status: np.ndarray, now_ns: int) -> None:
        """Write the newest estimate into a `ports.RECORDER` record.

        Args:
            status: the record, 0-d.
            now_ns: when the samples were taken, CLOCK_MONOTONIC; the estimate is as much older as its
                last sample is older than the newest one.
        """
        found = self.found
        if found is None or not self.fresh or not np.isfinite(found.velocity_m_s).all():
            return
        status["contact"], status["contact_force"] = found.contact, found.force_n
        status["base_velocity"] = found.velocity_m_s
        status["contact_ns"] = now_ns - round((self._newest_s - found.time_s) * 1e9)
        self.fresh = False
