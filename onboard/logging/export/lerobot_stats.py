"""The figures that LeRobot normalises with: of one episode, and of all of them together."""

from collections.abc import Sequence

import numpy as np

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}

Stats = dict[str, list[float]]
"""`min`, `max`, `mean`, `std`, the quantiles, one number a column of the feature; `count` one number."""


def feature_stats(values: np.ndarray) -> Stats:
    """Of one episode, exact.

    Args:
        values: (n,) or (n, width).
    """
    wide = values.reshape(len(values), -1).astype(np.float64)
    quantiles = np.quantile(wide, list(QUANTILES.values()), axis=0)
    return {
        "min": wide.min(0).tolist(),
        "max": wide.max(0).tolist(),
        "mean": wide.mean(0).tolist(),
        "std": wide.std(0).tolist(),
        **dict(zip(QUANTILES, quantiles.tolist(), strict=True)),
        "count": [len(wide)],
    }


def merge_stats(episodes: Sequence[Stats]) -> Stats:
    """Of all episodes: exact but for the quantiles, which are weighted means, as LeRobot's own are."""
    counts = np.array([each["count"][0] for each in episodes], np.float64)
    share = counts / counts.sum()
    of = {name: np.array([each[name] for each in episodes]) for name in episodes[0]}
    mean = share @ of["mean"]
    variance = share @ (of["std"] ** 2 + (of["mean"] - mean) ** 2)
    return {
        "min": of["min"].min(0).tolist(),
        "max": of["max"].max(0).tolist(),
        "mean": mean.tolist(),
        "std": np.sqrt(variance).tolist(),
        **{name: (share @ of[name]).tolist() for name in QUANTILES},
        "count": [int(counts.sum())],
    }
