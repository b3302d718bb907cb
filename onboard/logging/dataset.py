"""Many rollouts as one set of training samples.

```python
with RolloutDataset(["monday.h5", "tuesday.h5"], history=10, select=Select(modes=[Mode.POLICY])) as data:
    for batch in data.batches(4096, seed=0):
        batch.state["q"]            # (n, 29) rad
        batch.base_action           # (n, A) raw output of the policy network
        batch.sent_action           # (n, 29) rad, what reached the motors
        batch.next_state["q"]       # (n, 29) one control period later
        batch.history["q"]          # (n, 10, 29) the rows before, oldest first
```

Files are opened when they are needed and read a block at a time: memory holds the row numbers and one
pool of blocks, whatever the length of the set.
"""

import itertools
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import RolloutError
from onboard.logging.batch import Batch, Fields, Pool, join, pick
from onboard.logging.pool import BASE_ACTION, Chunk, Part, fill_pool
from onboard.logging.rollout import Check, Rollout
from onboard.logging.selection import Select, select_rows

STATE = ("q", "dq", "quat_wxyz", "gyro_body")
HISTORY = ("q", "dq", "action_sent")

CHUNK_ROWS = 8192
"""Rows of a file that are read at once."""
POOL_CHUNKS = 8
"""Chunks between which a shuffled pass mixes."""
OPEN_FILES = 8


@dataclass(frozen=True)
class _File:
    path: Path
    rows: NDArray[np.int64]
    valid: NDArray[np.bool_]


class RolloutDataset:
    """Samples (state, action, next state, history) of many files; a context manager.

    Args:
        paths: rollouts or journals, of one robot and one control period.
        history: rows before the state that come with it.
        select: filters.
        state: columns of `state` and `next_state`.
        history_columns: columns of `history`.
        columns: further columns, for `Batch.columns`.
        check: compare every file's checksum (or only its `size`) first, see `Rollout`.

    Attributes:
        paths: as given; `Batch.file` counts them.
        period_s: control period.
        joint_names: (29,) in SDK motor order.
        action_width: length of the raw action; 0 where no policy ran.

    Raises:
        RolloutError: a file can't be read, or does not belong with the others.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        history: int = 0,
        select: Select | None = None,
        state: Sequence[str] = STATE,
        history_columns: Sequence[str] = HISTORY,
        columns: Sequence[str] = (),
        check: Check = True,
    ) -> None:
        if not paths:
            raise RolloutError("a dataset needs at least one rollout, found none")
        self.paths = tuple(Path(path) for path in paths)
        self._fields = Fields(
            tuple(state), tuple(history_columns) if history else (), tuple(columns), history
        )
        self._open: OrderedDict[int, Rollout] = OrderedDict()
        self.period_s = 0.0
        self.joint_names: tuple[str, ...] = ()
        self.action_width = 0
        select = select or Select()
        self._files = tuple(self._index(file, select, check) for file in range(len(self.paths)))
        self._ends = np.cumsum([len(file.rows) for file in self._files])
        self._chunks = [chunk for file in range(len(self._files)) for chunk in self._cut(file)]
        self._chunk_starts = np.array([self._first(chunk.file) + chunk.start for chunk in self._chunks])

    def __enter__(self) -> "RolloutDataset":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all files; they open again when they are read again."""
        while self._open:
            self._open.popitem()[1].close()

    def __len__(self) -> int:
        return int(self._ends[-1])

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[Batch]:
        """All samples once, `size` at a time; the last batch may be smaller.

        Args:
            size: samples a batch.
            seed: order of a shuffled pass; None keeps the order of the files. A shuffled pass takes the
                chunks in random order and mixes the samples of `POOL_CHUNKS` of them at a time.

        Raises:
            RolloutError: a file changed or is damaged.
        """
        if size < 1:
            raise ValueError(f"batches of {size} samples; a batch needs at least one")
        waiting: list[Batch] = []
        room = size
        for pool, order in self._pools(seed):
            start = 0
            while start < len(order):
                waiting.append(pick(pool, order[start : start + room], self._fields))
                start += len(waiting[-1])
                room -= len(waiting[-1])
                if not room:
                    yield join(waiting)
                    waiting, room = [], size
        if waiting:
            yield join(waiting)

    def take(self, indices: np.ndarray) -> Batch:
        """Samples by number, 0 to len-1, in any order; reads every chunk that holds one of them.

        Raises:
            IndexError: a number is out of range, or there is none.
        """
        wanted = np.asarray(indices, np.int64)
        if not (len(wanted) and wanted.min() >= 0 and wanted.max() < len(self)):
            raise IndexError(f"samples {wanted} of a dataset of {len(self)}")
        home = np.searchsorted(self._chunk_starts, wanted, side="right") - 1
        order = np.argsort(home, kind="stable")
        parts = []
        for k in np.unique(home):
            mine = wanted[order[home[order] == k]]
            parts.append(pick(self._read([self._chunks[k]]), mine - self._chunk_starts[k], self._fields))
        return join(parts).reordered(np.argsort(order, kind="stable"))

    def _pools(self, seed: int | None) -> Iterator[tuple[Pool, NDArray[np.intp]]]:
        """Everything once, a few chunks at a time, with the order in which to take their samples."""
        if seed is None:
            for chunk in self._chunks:
                pool = self._read([chunk])
                yield pool, np.arange(len(pool))
            return
        random = np.random.default_rng(seed)
        chunks = random.permutation(len(self._chunks))
        for first in range(0, len(chunks), POOL_CHUNKS):
            pool = self._read([self._chunks[k] for k in chunks[first : first + POOL_CHUNKS]])
            yield pool, random.permutation(len(pool))

    def _index(self, file: int, select: Select, check: Check) -> _File:
        rollout = self._rollout(file, check)
        named = [p for p in rollout.policies if select.policies is None or p.name in select.policies]
        widths = {int(policy.width(BASE_ACTION)) for policy in named} or {self.action_width}
        if file == 0:
            self.period_s, self.joint_names = rollout.period_s, rollout.joint_names
        self.action_width = self.action_width or max(widths)
        if (rollout.period_s, rollout.joint_names) != (self.period_s, self.joint_names):
            raise RolloutError(
                f"{rollout.path}: {rollout.attributes['robot']} at {rollout.period_s:g} s a tick, unlike "
                f"{self.paths[0].name} ({self.period_s:g} s); make one dataset of each kind"
            )
        if widths != {self.action_width}:
            raise RolloutError(
                f"{rollout.path}: raw actions of {sorted(widths)} numbers, elsewhere {self.action_width}; "
                "name the policies to take in Select.policies"
            )
        return _File(rollout.path, *select_rows(rollout, select, self._fields.steps))

    def _cut(self, file: int) -> Iterator[Chunk]:
        """Chunks of one file: samples whose rows lie in the same `CHUNK_ROWS`."""
        home = self._files[file].rows // CHUNK_ROWS
        starts = np.flatnonzero(np.diff(home, prepend=-1))
        for start, stop in itertools.pairwise([*starts.tolist(), len(home)]):
            yield Chunk(file, start, stop)

    def _first(self, file: int) -> int:
        """Number of a file's first sample."""
        return int(self._ends[file]) - len(self._files[file].rows)

    def _read(self, chunks: Sequence[Chunk]) -> Pool:
        parts = []
        for chunk in chunks:
            file, samples = self._files[chunk.file], slice(chunk.start, chunk.stop)
            rollout = self._rollout(chunk.file)
            parts.append(Part(rollout, chunk.file, file.rows[samples], file.valid[samples]))
        return fill_pool(parts, self._fields, self.action_width)

    def _rollout(self, file: int, check: Check = False) -> Rollout:
        """An open rollout; those that were used least recently are closed."""
        if file not in self._open:
            self._open[file] = Rollout(self.paths[file], check=check)
            if len(self._open) > OPEN_FILES:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(file)
        return self._open[file]
