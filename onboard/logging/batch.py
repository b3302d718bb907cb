"""Batches of training samples, and how they are picked from rows in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Fields:
    """Columns that a batch is made of.

    Attributes:
        state: of `state` and `next_state`.
        history: of `history`.
        columns: of `columns`.
        steps: rows of history.
    """

    state: tuple[str, ...]
    history: tuple[str, ...]
    columns: tuple[str, ...]
    steps: int


@dataclass(frozen=True)
class Pool:
    """Rows in memory, and which of them are samples.

    Attributes:
        columns: by name, all of one length.
        at: (n,) position of every sample in the columns.
        file, row, valid: as in `Batch`.
    """

    columns: Columns
    at: NDArray[np.int64]
    file: NDArray[np.int32]
    row: NDArray[np.int64]
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True)
class Batch:
    """n samples; units as in `layout.ROW`. Arrays are the batch's own.

    Attributes:
        file: (n,) index into the dataset's paths.
        row: (n,) index into that rollout.
        valid: (n,) whether `next_state` is what the action led to and `history` is unbroken; where it
            is False both hold NaN, or 0 for whole numbers. Always True for a `safe` selection.
        dt_s: (n,) from state to next state by the robot's clock.
        state, next_state: (n, ...) by column.
        base_action: (n, A) raw output of the policy network; NaN where no policy was in charge.
        sent_action: (n, 29) joint positions that reached the motors, rad.
        contact: (n, 2) left and right foot: 1, 0, or -1 unknown.
        history: (n, steps, ...) by column: the rows before the state, oldest first.
        columns: (n, ...) by column, whatever else was asked for.
    """

    file: NDArray[np.int32]
    row: NDArray[np.int64]
    valid: NDArray[np.bool_]
    dt_s: NDArray[np.float64]
    state: Columns
    next_state: Columns
    base_action: NDArray[np.float32]
    sent_action: NDArray[np.float32]
    contact: NDArray[np.int8]
    history: Columns
    columns: Columns

    def __len__(self) -> int:
        return len(self.row)

    def reordered(self, order: np.ndarray) -> "Batch":
        """The same samples in another order."""
        return Batch(**{field.name: _each(getattr(self, field.name), order) for field in fields(self)})


def join(batches: Sequence[Batch]) -> Batch:
    """One batch of several; the batch itself where there is one."""
    if len(batches) == 1:
        return batches[0]
    names = [field.name for field in fields(Batch)]
    return Batch(**{name: _concatenated([getattr(batch, name) for batch in batches]) for name in names})


def pick(pool: Pool, samples: np.ndarray, wanted: Fields) -> Batch:
    """Copy samples (n,) of a pool out of it."""
    at, valid, columns = pool.at[samples], pool.valid[samples], pool.columns
    last = len(columns["time_s"]) - 1
    after = np.minimum(at + 1, last)
    first = np.maximum(at - wanted.steps, 0)
    time_s = columns["time_s"]
    return Batch(
        file=pool.file[samples],
        row=pool.row[samples],
        valid=valid,
        dt_s=_blanked(time_s[after] - time_s[at], valid),
        state={name: columns[name][at] for name in wanted.state},
        next_state={name: _blanked(columns[name][after], valid) for name in wanted.state},
        base_action=columns["action_policy"][at],
        sent_action=columns["action_sent"][at],
        contact=columns["contact"][at],
        history={
            name: _blanked(_before(columns[name], first, wanted.steps), valid) for name in wanted.history
        },
        columns={name: columns[name][at] for name in wanted.columns},
    )


def _before(values: np.ndarray, first: np.ndarray, steps: int) -> np.ndarray:
    """Rows first..first+steps-1 of a contiguous column for every `first` (n,): (n, steps, ...)."""
    rows = len(values) - steps + 1
    if rows < 1:
        return np.zeros((len(first), steps, *values.shape[1:]), values.dtype)
    strides = (values.strides[0], *values.strides)
    shape = (rows, steps, *values.shape[1:])
    windows = np.lib.stride_tricks.as_strided(values, shape, strides, writeable=False)
    chosen: np.ndarray = windows[first]
    return chosen


def _blanked(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Values in which nothing stands where it means nothing."""
    if not valid.all():
        values[~valid] = np.nan if values.dtype.kind == "f" else 0
    return values


def _each(part: Any, order: np.ndarray) -> Any:  # noqa: ANN401 - an array or arrays by name
    return {name: column[order] for name, column in part.items()} if isinstance(part, dict) else part[order]


def _concatenated(parts: Sequence[Any]) -> Any:  # noqa: ANN401 - arrays or arrays by name
    if isinstance(parts[0], dict):
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return np.concatenate(parts)
