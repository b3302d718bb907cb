"""The robot's own clock from its 32-bit counter: unit, wrap, restarts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TICK_UNITS_S = (1e-3, 2e-3, 1e-6)
"""Units a counter may have: milliseconds (every simulator known), samples at 500 Hz, microseconds."""

DEFAULT_TICK_S = 1e-3
MIN_SAMPLES = 25
"""Fewer new samples than this say too little about the unit."""

SNAP_FACTOR = 1.35
"""A measured unit within this factor of a known one is that one: simulators run slow, quartzes do not."""

JUMP_S = 1.0
"""A counter that disagrees with our clock by more than this between two rows has jumped."""


class RobotClock(NamedTuple):
    """A counter as time.

    Attributes:
        time_s: (n,) float64, 0 at the first row, never falls.
        epoch: (n,) uint32, jumps and restarts so far.
        tick_s: seconds per tick that were used.
        measured_tick_s: what the receive times say; NaN where there was too little to measure.
    """

    time_s: NDArray[np.float64]
    epoch: NDArray[np.uint32]
    tick_s: float
    measured_tick_s: float


def read_clock(robot_tick: np.ndarray, recv_ns: np.ndarray, tick_s: float | None = None) -> RobotClock:
    """Unwrap a counter.

    Args:
        robot_tick: (n,) uint32, as received.
        recv_ns: (n,) int64, CLOCK_MONOTONIC when each was received.
        tick_s: seconds per tick where known; measured otherwise.
    """
    if len(robot_tick) == 0:
        return RobotClock(np.zeros(0), np.zeros(0, np.uint32), tick_s or DEFAULT_TICK_S, float("nan"))
    tick = np.asarray(robot_tick, np.uint32)
    moved = (tick[1:] - tick[:-1]).view(np.int32).astype(np.float64)
    recv = np.asarray(recv_ns, np.int64)
    elapsed_s = (recv[1:] - recv[:-1]).astype(np.float64) * 1e-9
    measured = _measure(moved, elapsed_s)
    unit = tick_s or unit_of(measured)
    step_s = moved * unit
    jumped = (moved < 0) | (np.abs(step_s - elapsed_s) > JUMP_S)
    step_s = np.where(jumped, np.maximum(elapsed_s, 0.0), step_s)
    time_s = np.concatenate([[0.0], np.cumsum(step_s)])
    epoch = np.concatenate([[0], np.cumsum(jumped)]).astype(np.uint32)
    return RobotClock(time_s, epoch, unit, measured)


def _measure(moved: NDArray[np.float64], elapsed_s: NDArray[np.float64]) -> float:
    """Median seconds per tick over the rows that brought a new sample."""
    new = (moved > 0) & (elapsed_s > 0)
    return float(np.median(elapsed_s[new] / moved[new])) if new.sum() >= MIN_SAMPLES else float("nan")


def unit_of(measured_s: float) -> float:
    """The known unit, s, that a measured one means, else the measurement itself; NaN gives the default."""
    if np.isnan(measured_s):
        return DEFAULT_TICK_S
    known = min(TICK_UNITS_S, key=lambda unit: abs(np.log(measured_s / unit)))
    return known if 1 / SNAP_FACTOR < measured_s / known < SNAP_FACTOR else measured_s
