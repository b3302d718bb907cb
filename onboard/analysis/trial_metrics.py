"""Figures of one trial in the simulator: did it stay up, did it obey, how hard did it work."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FALL_TILT_RAD = 1.0
FALL_HEIGHT_M = 0.4
"""A robot counts as fallen beyond this tilt or below this height of the pelvis."""
SETTLED_S = 0.5
"""Joint speeds count from here on: the first steps after the start pose are not the policy's."""


class Moment(NamedTuple):
    """One tick of a trial, in mode policy.

    Attributes:
        time_s: since the policy was entered.
        position_m: (3,) pelvis origin, world frame.
        velocity_body_m_s: (3,) of the pelvis, in its own frame.
        tilt_rad: angle between the pelvis' z axis and up.
        gyro, dq: rad/s.
        action: raw action.
        command: (3,) vx, vy, wz asked for.
        joint_error_rad: (n,) q less reference, None for a policy without one.
    """

    time_s: float
    position_m: NDArray[np.float64]
    velocity_body_m_s: NDArray[np.float64]
    tilt_rad: float
    gyro: NDArray[np.float32]
    dq: NDArray[np.float32]
    action: NDArray[np.float32]
    command: NDArray[np.float32]
    joint_error_rad: NDArray[np.float32] | None


class TrialMetrics:
    """Collects moments and sums them up.

    Args:
        window_s: (begin, end) of the stretch over which the walking speed is judged.
    """

    def __init__(self, window_s: tuple[float, float]) -> None:
        self._window = window_s
        self._vx: list[float] = []
        self._vx_asked: list[float] = []
        self._steps: list[float] = []
        self._joint_errors: list[float] = []
        self._before: NDArray[np.float32] | None = None
        self._start: NDArray[np.float64] | None = None
        self._end: NDArray[np.float64] | None = None
        self.fall_s: float | None = None
        self.seconds = 0.0
        self.max_dq = self.max_gyro = self.max_tilt = 0.0

    def add(self, moment: Moment) -> None:
        """Take one tick in; after a fall nothing counts any more."""
        if self.fall_s is not None:
            return
        self.seconds = moment.time_s
        if self._start is None:
            self._start = moment.position_m.copy()
        self._end = moment.position_m.copy()
        if moment.tilt_rad > FALL_TILT_RAD or moment.position_m[2] < FALL_HEIGHT_M:
            self.fall_s = moment.time_s
        if self._window[0] <= moment.time_s < self._window[1]:
            self._vx.append(float(moment.velocity_body_m_s[0]))
            self._vx_asked.append(float(moment.command[0]))
        if moment.time_s >= SETTLED_S:
            self.max_dq = max(self.max_dq, float(np.abs(moment.dq).max()))
        self.max_gyro = max(self.max_gyro, float(np.abs(moment.gyro).max()))
        self.max_tilt = max(self.max_tilt, moment.tilt_rad)
        if self._before is not None:
            self._steps.append(float(np.abs(moment.action - self._before).mean()))
        self._before = moment.action.copy()
        if moment.joint_error_rad is not None:
            self._joint_errors.append(float(np.abs(moment.joint_error_rad).mean()))

    def result(self) -> dict[str, float | bool | None]:
        """The figures; null where there was nothing to measure."""
        walked = None
        if self._start is not None and self._end is not None:
            walked = math.dist(self._start[:2], self._end[:2])
        errors = np.abs(np.array(self._vx) - np.array(self._vx_asked))
        return {
            "fell": self.fall_s is not None,
            "fall_s": self.fall_s,
            "seconds": self.seconds,
            "walked_m": walked,
            "vx_mean": float(np.mean(self._vx)) if self._vx else None,
            "vx_abs_err": float(errors.mean()) if self._vx else None,
            "mpjpe_rad": float(np.mean(self._joint_errors)) if self._joint_errors else None,
            "action_rate": float(np.mean(self._steps)) if self._steps else None,
            "max_dq": self.max_dq,
            "max_gyro": self.max_gyro,
            "max_tilt": self.max_tilt,
        }
