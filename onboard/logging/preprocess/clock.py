"""Rows onto a uniform clock.

Control reads the newest sample at every point of its own grid, so the times of the states, told by the
robot's clock, scatter by one sample (2 ms) about a straight line whose slope is the ratio of the two
clocks. `align` moves the measured columns onto that line.
"""

import numpy as np
from numpy.typing import NDArray

from onboard.logging.preprocess.pipeline import COMMAND_COLUMNS, Facts, Track

QUATERNIONS = ("quat_wxyz", "torso_quat_wxyz")
TIMES = ("time_s", "tick")


def align(track: Track) -> tuple[Track, Facts]:
    """Interpolate what the robot measured to a uniform robot clock.

    Floating-point columns are interpolated linearly, quaternions along the shorter arc; commands stay,
    they lie on the control grid already, and so do whole numbers and the external pose, which has a clock
    of its own. Rows at the ends whose time lies outside the samples are cut off, not extrapolated.

    Args:
        track: with `time_s` (robot clock) and `tick` (control grid).

    Returns:
        The track, and: rows cut off, the fitted period in s, and how far the times lay from the line, ms.
    """
    time_s, tick = track["time_s"], track["tick"].astype(np.float64)
    if len(time_s) < 2:
        return track, {"rows_cut": 0, "period_s": None, "jitter_rms_ms": 0.0, "jitter_max_ms": 0.0}
    period_s, start_s = np.polyfit(tick - tick[0], time_s, 1)
    line_s = start_s + period_s * (tick - tick[0])
    inside = (line_s >= time_s[0]) & (line_s <= time_s[-1])
    aligned = {name: _moved(name, column, time_s, line_s)[inside] for name, column in track.items()}
    aligned["time_s"] = line_s[inside]
    off_ms = (time_s - line_s) * 1e3
    return aligned, {
        "rows_cut": int((~inside).sum()),
        "period_s": float(period_s),
        "jitter_rms_ms": float(np.sqrt(np.mean(off_ms**2))),
        "jitter_max_ms": float(np.abs(off_ms).max()),
    }


def _moved(name: str, column: np.ndarray, from_s: np.ndarray, to_s: np.ndarray) -> np.ndarray:
    kept = name in COMMAND_COLUMNS or name in TIMES or name.startswith("external_")
    if kept or column.dtype.kind != "f":
        return column
    mixed = _rotated if name in QUATERNIONS else _mixed
    return mixed(column, *_shares(from_s, to_s)).astype(column.dtype)


def _shares(
    from_s: np.ndarray, to_s: np.ndarray
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """For every new time the rows before and after it and its share of the way between them."""
    after = np.clip(np.searchsorted(from_s, to_s), 1, len(from_s) - 1)
    before = after - 1
    step_s = from_s[after] - from_s[before]
    share = np.where(step_s > 0, (to_s - from_s[before]) / np.where(step_s > 0, step_s, 1.0), 0.0)
    return before, after, share


def _mixed(column: np.ndarray, before: np.ndarray, after: np.ndarray, share: np.ndarray) -> np.ndarray:
    weight = share.reshape(-1, *[1] * (column.ndim - 1))
    mixed: np.ndarray = column[before] * (1.0 - weight) + column[after] * weight
    return mixed


def _rotated(column: np.ndarray, before: np.ndarray, after: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Between two close rotations the normalised mean is the arc to well below the IMU's noise."""
    a, b = column[before].astype(np.float64), column[after].astype(np.float64)
    b = np.where(np.sum(a * b, axis=1, keepdims=True) < 0, -b, b)
    mixed = a * (1.0 - share[:, None]) + b * share[:, None]
    unit: np.ndarray = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit
