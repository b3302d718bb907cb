"""The three short trajectories between modes: ramp to a pose, blend into hold, fade a policy in.

Each is begun once, stepped once a tick and returns its own preallocated array. They count grid
periods, so a skipped tick moves them on like any other. All follow the same quintic,

    s(x) = x³ (10 - 15 x + 6 x²),   x from 0 to 1,

which starts and ends at rest and whose steepest slope is 1.875.
"""

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS
from onboard.configs.safety import to_ticks

Float32Array = NDArray[np.float32]

PEAK_SLOPE = 1.875
"""Largest derivative of the quintic: 30 x² (1 - x)² at x = 1/2."""


def smooth(x: float) -> float:
    """The quintic step, 0 before x = 0 and 1 after x = 1."""
    x = min(max(x, 0.0), 1.0)
    return min(x * x * x * (10.0 - 15.0 * x + 6.0 * x * x), 1.0)


class RampProfile:
    """Measured pose to start pose, slowly, while the stiffness rises.

    Takes `seconds`, or longer where a joint would otherwise pass `max_speed_rad_s`. The stiffness
    reaches its full value at a quarter of the time, when the quintic has gone a tenth of the way: the
    robot first stiffens where it is, then moves.

    Attributes:
        kp_scale: factor for kp at the last step, `kp_start` to 1.
        done: the last step returned the goal.
    """

    def __init__(self, period_s: float, seconds: float, max_speed_rad_s: float, kp_start: float) -> None:
        self._period_s = period_s
        self._seconds = seconds
        self._max_speed_rad_s = max_speed_rad_s
        self._kp_start = kp_start
        self._from: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._way: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._goal: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._target: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._ticks = 0
        self.length_ticks = 0
        self.kp_scale = kp_start
        self.done = False

    def begin(self, q: Float32Array, goal: Float32Array) -> None:
        """Start over from measured pose `q` towards `goal`, both (29,) rad."""
        self._from[:] = q
        self._goal[:] = goal
        np.subtract(goal, q, out=self._way)
        longest_rad = float(np.max(np.abs(self._way)))
        seconds = max(self._seconds, PEAK_SLOPE * longest_rad / self._max_speed_rad_s)
        self.length_ticks = to_ticks(seconds, self._period_s)
        self._ticks = 0
        self.kp_scale = self._kp_start
        self.done = False

    def step(self, periods: int = 1) -> Float32Array:
        """Target (29,) rad after `periods` more grid periods; stays at the goal once there."""
        self._ticks += periods
        x = self._ticks / self.length_ticks
        self.kp_scale = self._kp_start + (1.0 - self._kp_start) * smooth(4.0 * x)
        self.done = x >= 1.0
        if self.done:
            self._target[:] = self._goal
        else:
            np.multiply(self._way, smooth(x), out=self._target)
            self._target += self._from
        return self._target


class HoldBlend:
    """Last sent target to the pose to hold, then that pose for as long as it is stepped."""

    def __init__(self, period_s: float, seconds: float) -> None:
        self.length_ticks = to_ticks(seconds, period_s)
        self._from: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._goal: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._target: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._ticks = 0

    @property
    def progress(self) -> float:
        """Share of the blend that is over, 0 to 1."""
        return self._ticks / self.length_ticks

    def begin(self, sent: Float32Array, goal: Float32Array) -> None:
        """Start over from the `sent` target towards `goal` (the measured pose), both (29,) rad."""
        self._from[:] = sent
        self._goal[:] = goal
        self._ticks = 0

    def step(self, periods: int = 1) -> Float32Array:
        """Target (29,) rad after `periods` more grid periods."""
        self._ticks = min(self._ticks + periods, self.length_ticks)
        return _between(self._from, self._goal, self._ticks / self.length_ticks, self._target)


class FadeIn:
    """Last sent target to a target that moves: the policy's, during the first ticks."""

    def __init__(self, period_s: float, seconds: float) -> None:
        self.length_ticks = to_ticks(seconds, period_s)
        self._from: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._target: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._ticks = self.length_ticks

    @property
    def progress(self) -> float:
        """Share of the fade that is over, 0 to 1."""
        return self._ticks / self.length_ticks

    def begin(self, sent: Float32Array) -> None:
        """Start over from the `sent` target (29,) rad; before the first call `step` changes nothing."""
        self._from[:] = sent
        self._ticks = 0

    def step(self, target: Float32Array, periods: int = 1) -> Float32Array:
        """`target` (29,) rad, mixed with where the fade began until the fade is over."""
        self._ticks = min(self._ticks + periods, self.length_ticks)
        return _between(self._from, target, self._ticks / self.length_ticks, self._target)


def _between(start: Float32Array, goal: Float32Array, x: float, out: Float32Array) -> Float32Array:
    if x >= 1.0:
        out[:] = goal
        return out
    np.subtract(goal, start, out=out)
    out *= smooth(x)
    out += start
    return out
