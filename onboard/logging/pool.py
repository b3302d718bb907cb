"""A few chunks of rollouts in memory, one after the other, from which batches are picked."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.logging.batch import Fields, Pool
from onboard.logging.layout import POLICY_FIELDS
from onboard.logging.rollout import Rollout

BASE_ACTION = "action_policy"
ALWAYS = ("time_s", "action_sent", "contact")
"""Columns that every batch has, besides the base action."""

ACTION_COLUMNS = tuple(field.name for field in POLICY_FIELDS if field.name.startswith("action_"))
"""Columns of a policy that a dataset can take; NaN where no policy was in charge."""


class Chunk(NamedTuple):
    """Samples start..stop-1 of one file."""

    file: int
    start: int
    stop: int


class Part(NamedTuple):
    """Rows of one rollout that become samples."""

    rollout: Rollout
    file: int
    rows: NDArray[np.int64]
    valid: NDArray[np.bool_]


def fill_pool(parts: Sequence[Part], fields: Fields, action_width: int) -> Pool:
    """Read the rows of all parts, with the history before and the row after them."""
    names = {*fields.state, *fields.history, *fields.columns, *ALWAYS, BASE_ACTION}
    blocks: dict[str, list[np.ndarray]] = {name: [] for name in sorted(names)}
    at, start = [], 0
    for part in parts:
        block = _block(part, fields.steps)
        for name, columns in blocks.items():
            columns.append(_column(part.rollout, name, block, action_width))
        at.append(part.rows - block.start + start)
        start += block.stop - block.start
    return Pool(
        columns=_joined(blocks),
        at=np.concatenate(at),
        file=np.concatenate([np.full(len(part.rows), part.file, np.int32) for part in parts]),
        row=np.concatenate([part.rows for part in parts]),
        valid=np.concatenate([part.valid for part in parts]),
    )


def _block(part: Part, history: int) -> slice:
    """The rows to read."""
    first, last = int(part.rows[0]), int(part.rows[-1])
    return slice(max(0, first - history), min(last + 2, len(part.rollout)))


def _joined(blocks: Mapping[str, Sequence[np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in blocks.items()}


def _column(rollout: Rollout, name: str, block: slice, action_width: int) -> np.ndarray:
    if name not in ACTION_COLUMNS:
        return rollout.column(name, block)
    values = np.full((block.stop - block.start, action_width), np.nan, np.float32)
    for policy in rollout.policies:
        if policy.width(name) == action_width:
            mine = slice(*np.searchsorted(policy.rows, [block.start, block.stop]))
            values[policy.rows[mine] - block.start] = policy.column(name, mine)
    return values
