"""Normalisation with statistics that are kept beside the model that was trained with them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import RolloutError
from onboard.configs.untrusted import read_npz

Floats = NDArray[np.float64]

CONSTANT = 1e-8
"""A column that scatters less than this is a constant: its mean is taken off and nothing else."""


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation by column, over `count` rows.

    Attributes:
        count: rows.
        mean, std: (width,) by column name.
    """

    count: int
    mean: Mapping[str, Floats]
    std: Mapping[str, Floats]

    def normalize(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """(x - mean) / std of the columns that have statistics, as float32; the others as they are."""
        return {
            name: ((x - self.mean[name]) / self._scale(name)).astype(np.float32) if name in self.mean else x
            for name, x in columns.items()
        }

    def restore(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inverse of `normalize`."""
        return {
            name: (x * self._scale(name) + self.mean[name]).astype(np.float32) if name in self.mean else x
            for name, x in columns.items()
        }

    def save(self, path: Path) -> None:
        """Write an npz with `count` and `<column>.mean`, `<column>.std` of every column."""
        arrays = {f"{name}.mean": mean for name, mean in self.mean.items()}
        arrays |= {f"{name}.std": std for name, std in self.std.items()}
        with path.open("wb") as file:
            np.savez(file, count=np.array(self.count), **arrays)  # type: ignore[arg-type] # takes any name

    def _scale(self, name: str) -> Floats:
        std = self.std[name]
        return np.where(std < CONSTANT, 1.0, std)


def load_statistics(path: Path) -> Statistics:
    """Read what `Statistics.save` wrote.

    Raises:
        RolloutError: the file can't be read or holds something else.
    """
    try:
        arrays = read_npz(path)
        names = [key.removesuffix(".mean") for key in arrays if key.endswith(".mean")]
        mean = {name: _numbers(arrays[f"{name}.mean"]) for name in names}
        std = {name: _numbers(arrays[f"{name}.std"]) for name in names}
        if odd := [name for name in names if mean[name].shape != std[name].shape]:
            raise ValueError(f"mean and std of {', '.join(odd)} differ in width")
        return Statistics(int(_numbers(arrays["count"].reshape(1))[0]), mean, std)
    except (OSError, ValueError, KeyError, OverflowError) as error:
        raise RolloutError(f"{path}: no normalisation statistics ({error}); save some first") from error


def _numbers(array: np.ndarray) -> Floats:
    if array.dtype.kind not in "fiu" or array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(
            f"{array.dtype} of shape {array.shape}, expected finite numbers, one for each element"
        )
    return array.astype(np.float64)


def fit_statistics(batches: Iterable[Mapping[str, np.ndarray]]) -> Statistics:
    """Statistics over any number of batches of columns (n, width), in one pass and float64.

    Batches are merged by Chan's formula, so that neither size nor offset of the data costs accuracy.

    Raises:
        RolloutError: there was no row, or a number that is not finite.
    """
    count, mean, square = 0, dict[str, Floats](), dict[str, Floats]()
    for batch in batches:
        columns = {name: np.asarray(values, np.float64) for name, values in batch.items()}
        rows = len(next(iter(columns.values()), ()))
        if not rows:
            continue
        for name, values in columns.items():
            if not np.isfinite(values).all():
                raise RolloutError(f"column '{name}' has a number that is not finite; filter those rows out")
            middle, nothing = values.mean(0), np.zeros(values.shape[1])
            off = middle - mean.get(name, nothing)
            share = rows / (count + rows)
            scatter = ((values - middle) ** 2).sum(0) + off**2 * count * share
            square[name] = square.get(name, nothing) + scatter
            mean[name] = mean.get(name, nothing) + off * share
        count += rows
    if not count:
        raise RolloutError("no rows to take statistics of; loosen the filters")
    return Statistics(count, mean, {name: np.sqrt(total / count) for name, total in square.items()})
