"""The knobs that make the simulated robot differ from the nominal one, step by step."""

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import RobotConfig
from onboard.configs.sim import SimConfig, per_joint

Float64Array = NDArray[np.float64]


class Delay:
    """Shows every column of what was pushed a number of steps ago; the oldest there is before that.

    Args:
        steps: delay of each column, whole steps; the shape's last axis.
        rows: rows of a value, which share their column's delay.
    """

    def __init__(self, steps: NDArray[np.intp], rows: int) -> None:
        self._steps = np.asarray(steps, dtype=np.intp)
        self._size = int(self._steps.max()) + 1
        self._ring: Float64Array = np.zeros((self._size, rows, self._steps.size))
        self._columns = np.arange(self._steps.size)
        self._head = -1
        self.delayed: Float64Array = np.zeros((rows, self._steps.size))

    def fill(self, value: Float64Array) -> None:
        """Forget everything: as if `value` had been there for ever."""
        self._ring[:] = value
        self.delayed[:] = value

    def push(self, value: Float64Array) -> Float64Array:
        """One step on: take `value` (rows, columns), return what is visible now (overwritten in place)."""
        self._head = (self._head + 1) % self._size
        self._ring[self._head] = value
        seen = (self._head - self._steps) % self._size
        self.delayed[:] = self._ring[seen, :, self._columns].T
        return self.delayed


def latency_steps(config: SimConfig, robot: RobotConfig, knob: str) -> NDArray[np.intp]:
    """(29,) a latency knob in whole physics steps, rounded."""
    seconds = per_joint(getattr(config.gap, knob), robot, f"gap.{knob}")
    return np.rint(seconds / config.timestep_s).astype(np.intp)


def play(error: Float64Array, width: Float64Array) -> Float64Array:
    """Position error that is left behind a play of `width` (both (29,), rad): none inside it."""
    return error - np.clip(error, -width / 2, width / 2)
