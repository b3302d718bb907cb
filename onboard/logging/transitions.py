"""Which neighbouring rows are a transition (state, action, next state), and how long it really took."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.events import Mode
from onboard.logging.layout import SafetyFlag
from onboard.runtime.gateway_core import GatewayState

SHORTEST, LONGEST = 0.75, 1.25
"""Of a period; the two clocks are not synchronised and the robot's has a grain of 2 ms."""

COLUMNS = ("tick", "time_s", "epoch", "episode", "mode", "safety_flag", "send_ns", "gateway_state")
"""Columns of a rollout that decide."""

_TRACKING = (Mode.RAMP, Mode.HOLD, Mode.POLICY)
_ROUNDING_S = 1e-6

Column = Callable[[str], np.ndarray]


@dataclass(frozen=True)
class Transitions:
    """Row k and row k+1 of a rollout of n rows, for k in 0..n-2.

    Attributes:
        valid: (n-1,) whether row k+1 is what row k's action led to.
        dt_s: (n-1,) by the robot's clock, true also where it is not valid.
        next_sample: (n-1,) index into the full-rate stream of the sample nearest to one period
            after row k's state, -1 where there is none within a quarter of a period; None without
            that stream.
    """

    valid: NDArray[np.bool_]
    dt_s: NDArray[np.float64]
    next_sample: NDArray[np.int64] | None
    _column: Column

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows k that begin a valid transition."""
        return np.flatnonzero(self.valid)

    def pairs(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """One column before and after every valid transition, each (number of valid, ...)."""
        values = self._column(name)
        return values[self.rows], values[self.rows + 1]


def find_transitions(column: Column, period_s: float, sample_time_s: np.ndarray | None = None) -> Transitions:
    """Judge every pair of neighbouring rows.

    A pair is valid when both rows belong to one episode and follow each other on the control grid,
    the robot's clock advanced by 0.75 to 1.25 periods and did not jump, no row carries a safety
    flag, and the first row's command tracked a target and went out to the robot.

    Args:
        column: gives a whole column of the rollout by name.
        period_s: control period.
        sample_time_s: `time_s` of the full-rate stream.
    """
    tick, time_s, epoch, episode, mode, flag, send_ns, gateway = (column(name) for name in COLUMNS)
    dt_s = time_s[1:] - time_s[:-1]
    safe = flag == SafetyFlag.NORMAL
    acted = np.isin(mode, _TRACKING) & (send_ns >= 0) & (gateway == GatewayState.PASSING)
    valid = (
        (tick[1:] == tick[:-1] + 1)
        & (episode[1:] == episode[:-1])
        & (epoch[1:] == epoch[:-1])
        & (dt_s >= SHORTEST * period_s - _ROUNDING_S)
        & (dt_s <= LONGEST * period_s + _ROUNDING_S)
        & safe[1:]
        & safe[:-1]
        & acted[:-1]
    )
    nearest = None if sample_time_s is None else _nearest(sample_time_s, time_s[:-1] + period_s, period_s / 4)
    return Transitions(valid, dt_s, nearest, column)


def _nearest(sorted_s: np.ndarray, wanted_s: np.ndarray, within_s: float) -> NDArray[np.int64]:
    """Index of the value nearest to each wanted one, -1 where none is near enough."""
    if len(sorted_s) == 0:
        return np.full(len(wanted_s), -1, np.int64)
    after = np.clip(np.searchsorted(sorted_s, wanted_s), 0, len(sorted_s) - 1)
    before = np.maximum(after - 1, 0)
    closer_before = np.abs(sorted_s[before] - wanted_s) <= np.abs(sorted_s[after] - wanted_s)
    index = np.where(closer_before, before, after).astype(np.int64)
    return np.where(np.abs(sorted_s[index] - wanted_s) <= within_s, index, -1)
