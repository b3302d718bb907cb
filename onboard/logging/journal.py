"""Writing a journal: append-only, never in the way, honest about what it could not keep.

Each append is one `pwrite` at a known offset, so what a failed or short write left behind is
overwritten by the next one. Room is reserved ahead of the records, with two frames kept back: on a
full disk the count of what was lost and the end of the run still find their place. A helper thread
calls `fdatasync`, at most 0.2 s after a record was written.
"""

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onboard.configs.errors import RolloutError
from onboard.logging.frames import Drop, Header, Kind, Why, pack_drop, pack_end, pack_frame, pack_header
from onboard.logging.recovery import scan

SYNC_PERIOD_S = 0.2
CHUNK_BYTES = 4 << 20
CLAIM_S = 2.0
"""How long a new owner of a journal waits for the old one, which may be just dying."""
KEPT_BACK = 2
"""Frames that only DROP and END may use."""


class JournalFile:
    """The file operations a journal needs; a seam where tests make the disk fail."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.dirty = False

    def write_at(self, offset: int, data: bytearray) -> int:
        """Write at `offset`; how many bytes were written. Raises OSError."""
        written = os.pwrite(self._descriptor, data, offset)
        self.dirty = True
        return written

    def reserve(self, offset: int, size: int) -> None:
        """Make sure that `size` bytes at `offset` have their place on the disk. Raises OSError."""
        os.posix_fallocate(self._descriptor, offset, size)

    def truncate(self, size: int) -> None:
        """Cut or extend the file. Raises OSError."""
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        """Wait until what was written is on the disk. Raises OSError."""
        self.dirty = False
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


class Journal:
    """An open journal, at the place where the next record goes.

    Use `create_journal` once per run and `Journal(path)` in whatever process records: the first
    recorder and one that takes over from a killed one start in the same way.

    Attributes:
        last_seq: sequence number of the last record that is in the file or known to be lost.
        rows: records in the file.
        lost: records that were handed over and are not in the file.
        full: the last append found no room.
        losing: the last record was lost, for whatever reason.
        ended: the run was closed; nothing more can be appended.
        sync_errors: how often the disk refused to confirm what was written.

    Raises:
        RolloutError: no journal, damaged header, or the file can't be written.
    """

    def __init__(self, path: Path, file: JournalFile | None = None) -> None:
        found = scan(path)
        self.path = path
        self.header: Header = found.header
        self.last_seq = found.last_seq
        self.rows = found.row_count
        self.lost = found.lost
        self.ended = found.end is not None
        self.full = self.losing = False
        self.sync_errors = 0
        try:
            self._file = file or JournalFile(path)
        except OSError as error:
            raise RolloutError(
                f"{path}: can't be written ({error.strerror}); choose another folder"
            ) from error
        self._offset = found.end_offset
        self._reserved = found.file_bytes
        self._frame = bytearray(self.header.frame_bytes)
        self._gap: Drop | None = None
        self._stop = threading.Event()
        self._syncer = threading.Thread(target=self._sync_loop, name="journal-sync", daemon=True)
        self._syncer.start()

    def append(self, seq: int, record: np.ndarray) -> bool:
        """Write one record (0-d, the journal's type); False when it was lost and counted."""
        pending = self._gap is not None
        fits = self._room(KEPT_BACK + (2 if pending else 1))
        if pending and fits and self._write_gap():
            self._gap = None
        if not fits or self._gap is not None or not self._write(seq, Kind.ROW, record.data.cast("B")):
            self.lose(seq, seq, Why.NO_SPACE if self.full else Why.IO_ERROR)
            self.losing = True
            return False
        self.losing = False
        self.last_seq = seq
        self.rows += 1
        return True

    def lose(self, first: int, last: int, why: Why) -> None:
        """Count records first..last as lost; a DROP frame tells it before the next record."""
        count = last - first + 1
        self.lost += count
        self.last_seq = last
        gap = self._gap
        self._gap = (
            Drop(gap.first, last, gap.count + count, gap.why) if gap else Drop(first, last, count, why)
        )

    def finish(self, facts: dict[str, Any]) -> bool:
        """Close in order with the run's last facts; False when the disk refused the last frame."""
        done = (self._gap is None or self._write_gap()) and not self.ended
        if done:
            payload = pack_end({**facts, "lost": self.lost}, self.header.payload_bytes)
            done = self._write(self.last_seq + 1, Kind.END, payload)
        self.close()
        return done or self.ended

    def close(self) -> None:
        """Cut off the reserved room, wait for the disk, give everything back."""
        self._stop.set()
        self._syncer.join()
        with contextlib.suppress(OSError):
            self._file.truncate(self._offset)
        self._sync()
        self._file.close()

    def _write_gap(self) -> bool:
        gap = self._gap
        return gap is None or self._write(gap.last, Kind.DROP, pack_drop(gap))

    def _write(self, seq: int, kind: Kind, payload: memoryview | bytes) -> bool:
        pack_frame(self._frame, self.header.salt, seq, kind, payload)
        try:
            written = self._file.write_at(self._offset, self._frame)
        except OSError as error:
            self.full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            return False
        self.full = written < len(self._frame)
        if not self.full:
            self._offset += written
        return not self.full

    def _room(self, frames: int) -> bool:
        """Reserve so that `frames` more fit; a whole chunk where the disk has it, else just those."""
        need = self._offset + frames * len(self._frame)
        if need <= self._reserved:
            self.full = False
            return True
        for size in (max(CHUNK_BYTES, need - self._reserved), need - self._reserved):
            try:
                self._file.reserve(self._reserved, size)
            except OSError as error:
                self.full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
                continue
            self._reserved += size
            self.full = False
            return True
        return False

    def _sync_loop(self) -> None:
        while not self._stop.wait(SYNC_PERIOD_S):
            self._sync()

    def _sync(self) -> None:
        if not self._file.dirty:
            return
        try:
            self._file.sync()
        except OSError:
            self.sync_errors += 1


def create_journal(path: Path, dtype: np.dtype, meta: dict[str, Any]) -> None:
    """Make a new journal that holds nothing but its header, durable when this returns.

    Args:
        path: must not exist yet.
        dtype: type of one record.
        meta: JSON data about the run.

    Raises:
        RolloutError: the folder is missing or read-only, the disk full, or the file exists.
    """
    data = pack_header(dtype, meta)
    try:
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except FileExistsError:
        raise RolloutError(f"{path}: exists already; every run makes a journal of its own") from None
    except OSError as error:
        with contextlib.suppress(OSError):  # on a read-only disk there is nothing to remove, and no removing
            path.unlink(missing_ok=True)
        raise RolloutError(
            f"{path}: can't be made ({error.strerror}); give a folder with room that you may write to"
        ) from error


@contextlib.contextmanager
def claimed(path: Path, patience_s: float = CLAIM_S) -> Iterator[None]:
    """Be the only process that finishes a journal; the claim dies with the process.

    Raises:
        RolloutError: it can't be read, or a process that lives has it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise RolloutError(
            f"{path}: can't be read ({error.strerror}); give a .journal file of a run"
        ) from error
    try:
        until = time.monotonic() + patience_s
        while not _locked(descriptor):
            if time.monotonic() > until:
                raise RolloutError(
                    f"{path}: a recorder is still at work on it; when that has ended, give the file to "
                    "onboard log recover"
                )
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: as well as it can be done there
    return True


def make_folder(folder: Path) -> None:
    """Make a folder and what is missing above it, durable when this returns. Raises OSError."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for part in missing:
        sync_folder(part.parent)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
