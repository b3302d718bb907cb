"""A recorder in this process, for runs in lock-step: the same journal, the same conversion."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from onboard.configs.errors import RolloutError
from onboard.logging.convert import convert, lowstate_journal, rollout_path
from onboard.logging.journal import Journal, create_journal, make_folder
from onboard.logging.layout import NOT_PUBLISHED, journal_dtype, lowstate_dtype
from onboard.logging.run_info import RunInfo


class DirectRecorder:
    """Takes every record of a run (the loop's sink); `finish` makes the rollout.

    Args:
        folder: for the file, made where it is missing.
        info: about the run.
        record: type of a record.
        gateway_state: asked after every record; commands that the gateway passes on in the tick in which
            they were made count as sent then.
        lowstate: keep the full-rate stream too, as `add_sample` brings it.

    Raises:
        RolloutError: the folder can't be written to.
    """

    def __init__(
        self,
        folder: Path,
        info: RunInfo,
        record: np.dtype,
        gateway_state: Callable[[], int],
        *,
        lowstate: bool = False,
    ) -> None:
        dtype = journal_dtype(record)
        self._path = new_journal(folder, info.stem, dtype, msgspec.to_builtins(info))
        self._journal = Journal(self._path)
        self._gateway_state = gateway_state
        self._row = np.zeros((), dtype)
        self._names = record.names or ()
        self.sample = np.zeros((), lowstate_dtype())
        self._stream: Journal | None = None
        if lowstate:
            path = lowstate_journal(self._path)
            create_journal(path, lowstate_dtype(), {})
            self._stream = Journal(path)
        self._rows = self._samples = 0

    def push(self, record: np.ndarray) -> int:
        """Take one record."""
        row, state = self._row, self._gateway_state()
        for name in self._names:
            row[name] = record[name]
        sent = int(record["number"]) > 0 and state > 0
        row["send_ns"] = record["made_ns"] if sent else NOT_PUBLISHED
        row["gateway_state"] = state if sent else NOT_PUBLISHED
        self._rows += 1
        self._journal.append(self._rows, row)
        return self._rows

    def add_sample(self) -> None:
        """Take what the caller has put into `sample`, one row of the full-rate stream."""
        if self._stream is not None:
            self._samples += 1
            self._stream.append(self._samples, self.sample)

    def finish(self, end_reason: str) -> Path:
        """Close in order and convert; the rollout's path.

        Raises:
            RolloutError: the disk refused; the journal stays.
        """
        journals = [(self._path, self._journal, {"end_reason": end_reason})]
        if self._stream is not None:
            journals.append((lowstate_journal(self._path), self._stream, {"end_reason": end_reason}))
        for path, journal, facts in journals:
            if not journal.finish(facts):
                raise RolloutError(f"{path}: the disk is full; free some, then: onboard log recover {path}")
        rollout = convert(self._path)
        for path, _, _ in journals:
            path.unlink()
        return rollout


def new_journal(folder: Path, stem: str, dtype: np.dtype, meta: dict[str, object]) -> Path:
    """Make a journal under a name that is free, `stem` or `stem-1`, `stem-2`, ...; its path.

    Raises:
        RolloutError: the folder can't be made or written to.
    """
    try:
        make_folder(folder)
    except OSError as error:
        raise RolloutError(
            f"--out {folder}: can't be made ({error.strerror}); name a folder to write to"
        ) from error
    for attempt in range(100):
        path = folder / f"{stem}-{attempt}.journal" if attempt else folder / f"{stem}.journal"
        if not path.exists() and not rollout_path(path).exists():
            create_journal(path, dtype, meta)
            return path
    raise RolloutError(f"--out {folder}: a hundred runs began in this second; wait a moment")
