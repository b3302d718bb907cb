"""Single samples that lie far from their neighbours.

Far is measured by how far the joint usually moves from one sample to the next: three standard deviations
of its steps. Measured by the distances from the median themselves, which are zero wherever a signal rises
or falls, every turning point of a walk would count as an outlier.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onboard.logging.preprocess.pipeline import Facts, Track

WINDOW = 5
"""Samples of the running median; two bad ones in a row are still found."""
SIGMA = 3.0
ROUNDS = 2
"""The first one finds spikes so large that they are steps to be reckoned with, the second what they hid."""
COLUMNS = ("q", "dq", "tau_est")


def reject_outliers(
    track: Track, columns: Sequence[str] = COLUMNS, window: int = WINDOW, sigma: float = SIGMA
) -> tuple[Track, Facts]:
    """Replace samples further than `sigma` usual steps from the running median by that median.

    Args:
        track: columns (n, width).
        columns: which to look at.
        window: samples of the median, odd.
        sigma: standard deviations of the steps between samples, each joint for itself.

    Returns:
        The track with a column `outlier` (n,) that marks the rows, and how many numbers of each column
        were replaced.
    """
    cleaned = dict(track)
    marked = np.zeros(len(track["time_s"]), bool)
    counts = {}
    for name in columns:
        cleaned[name], bad = replace_outliers(track[name], window, sigma)
        marked |= bad.any(1)
        counts[name] = int(bad.sum())
    cleaned["outlier"] = marked
    return cleaned, {"replaced": counts, "rows": int(marked.sum())}


def replace_outliers(
    values: np.ndarray, window: int = WINDOW, sigma: float = SIGMA
) -> tuple[np.ndarray, NDArray[np.bool_]]:
    """The same for one array (n, width).

    Returns:
        Values without outliers, and (n, width) which were.
    """
    if window % 2 == 0 or window < 3:
        raise ValueError(f"a median over {window} samples has no middle; give an odd number from 3")
    if len(values) < window:
        return values.copy(), np.zeros(values.shape, bool)
    median = running_median(values, window)
    distance = np.abs(values.astype(np.float64) - median)
    bad = np.zeros(values.shape, bool)
    steps = np.diff(values.astype(np.float64), axis=0)
    for _ in range(ROUNDS):
        usual = np.sqrt(np.mean(steps**2, axis=0, where=~(bad[1:] | bad[:-1])))
        bad = distance > sigma * np.maximum(usual, np.finfo(np.float32).eps)
    return np.where(bad, median, values).astype(values.dtype), bad


def running_median(values: np.ndarray, window: int) -> np.ndarray:
    """Median of the `window` samples around each one (n, width); the ends repeat the first and last."""
    half = window // 2
    padded = np.concatenate([values[:1].repeat(half, 0), values, values[-1:].repeat(half, 0)])
    medians: np.ndarray = np.median(np.lib.stride_tricks.sliding_window_view(padded, window, axis=0), axis=-1)
    return medians
