"""How long after a sent target the joint follows, measured by cross-correlation.

What is measured is the whole delay from the target to the joint: the way to the motor *and* the lag of
the joint under its gains. A simulator with the same gains has that lag too; what a robot adds is the
difference between the figures of the two. Only that difference is a latency to shift by.

Measure on a bench run. Under a policy the target depends on the joint as much as the joint on the target,
which shows as a large uncertainty.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.logging.preprocess.pipeline import COMMAND_COLUMNS, Facts, Track

MAX_LAG_S = 0.2
BLOCK_S = 2.0
"""Length of the pieces that are measured on their own; their scatter is the uncertainty."""
MIN_MOTION_RAD = 0.02
"""A piece in which the target's standard deviation is below this says nothing about a delay."""
MIN_CORRELATION = 0.8


@dataclass(frozen=True)
class Latency:
    """A measured delay.

    Attributes:
        delay_s: median over all pieces; None where nothing moved enough.
        sigma_s: standard error of that median, from the scatter of the pieces.
        spread_s: standard deviation of one piece.
        pieces: how many were used.
        joints: median by column; NaN where that joint did not move enough.
    """

    delay_s: float | None
    sigma_s: float | None
    spread_s: float | None
    pieces: int
    joints: tuple[float, ...]


def measure_latency(target: np.ndarray, response: np.ndarray, period_s: float) -> Latency:
    """Delay from `target` to `response`, both (n, joints) on one uniform clock.

    Both are differentiated first, so that neither an offset nor a drift counts, then correlated over
    lags of 0 to 0.2 s in pieces of 2 s; a parabola through the highest point gives fractions of a period.
    """
    size = max(round(BLOCK_S / period_s), 8)
    starts = range(0, max(len(target) - size // 2, 1), size)
    delays = np.array(
        [
            [_delay(target[s : s + size, j], response[s : s + size, j], period_s) for s in starts]
            for j in range(target.shape[1])
        ]
    )
    used = delays[np.isfinite(delays)]
    joints = tuple(
        float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else np.nan for row in delays
    )
    if len(used) < 2:
        return Latency(float(used[0]) if len(used) else None, None, None, len(used), joints)
    median = _median(used)
    spread = 1.4826 * float(np.median(np.abs(used - median)))
    # A median of n numbers scatters 1.2533 times as much as their mean.
    return Latency(median, 1.2533 * spread / math.sqrt(len(used)), spread, len(used), joints)


def log_latency(track: Track, target: str = "action_sent", response: str = "q") -> tuple[Track, Facts]:
    """Measure only; the track stays as it is."""
    period_s = _period_s(track)
    found = measure_latency(track[target], track[response], period_s)
    joints = [None if math.isnan(delay) else delay for delay in found.joints]
    return track, {"from": target, "to": response, **asdict(found), "joints": joints}


def shift_commands(track: Track, by_s: float) -> tuple[Track, Facts]:
    """Put every command to the row in which it took effect, `by_s` later than it was made.

    Commands are held between ticks, so the shift is by whole ticks; the rest is told, not interpolated.
    Rows at the start without a command of their own any more are cut off (at the end for a shift back).
    """
    period_s = _period_s(track)
    ticks = round(by_s / period_s)
    rows = len(track["time_s"]) - abs(ticks)
    if rows < 1:
        raise ValueError(f"a shift of {by_s:g} s leaves nothing of {len(track['time_s'])} rows")
    states, commands = (ticks, 0) if ticks > 0 else (0, -ticks)
    shifted = {
        name: column[start : start + rows]
        for name, column in track.items()
        for start in [commands if name in COMMAND_COLUMNS else states]
    }
    return shifted, {"ticks": ticks, "rest_s": by_s - ticks * period_s, "rows_cut": abs(ticks)}


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if len(values) else math.nan


def _delay(target: NDArray[np.float32], response: NDArray[np.float32], period_s: float) -> float:
    """Delay of one joint in one piece, s; NaN where it can't be told."""
    if len(target) < 8 or np.std(target) < MIN_MOTION_RAD:
        return math.nan
    x, y = (np.diff(values.astype(np.float64)) for values in (target, response))
    lags = np.arange(-1, min(round(MAX_LAG_S / period_s), len(x) // 2) + 1)
    score = np.array([_correlation(x, y, lag) for lag in lags.tolist()])
    best = int(score.argmax())
    if score[best] < MIN_CORRELATION or best in (0, len(lags) - 1):
        return math.nan
    left, middle, right = score[best - 1 : best + 2]
    bend = left - 2 * middle + right
    return float(lags[best] + (0.5 * (left - right) / bend if bend else 0.0)) * period_s


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64], lag: int) -> float:
    """Correlation coefficient of x with y taken `lag` samples later."""
    x, y = x[max(-lag, 0) : len(x) - max(lag, 0)], y[max(lag, 0) : len(y) - max(-lag, 0)]
    x, y = x - x.mean(), y - y.mean()
    power = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / power if power > 0 else 0.0


def _period_s(track: Track) -> float:
    time_s = track["time_s"]
    return float((time_s[-1] - time_s[0]) / max(len(time_s) - 1, 1))
