"""Reading a journal, whole or broken: every record whose checksum holds, in order, and what is missing."""

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onboard.configs.errors import RolloutError
from onboard.logging.frames import Drop, Header, Kind, check_frame, unpack_drop, unpack_end, unpack_header


@dataclass(frozen=True)
class Scan:
    """What stands in a journal.

    Attributes:
        header: the journal's own description.
        index: frame numbers of the good records, in order.
        drops: losses that the writer counted.
        end: facts of the closing frame; None when the run was not closed in order.
        missing: records that no DROP explains, by gaps in the sequence numbers.
        damaged: frames whose checksum failed, that are out of order or cut off.
        torn: those of them behind the last good frame, where a writer that was killed has stopped.
        last_seq: sequence number of the last record, kept or dropped.
        end_offset: where the next frame goes.
        file_bytes: size of the file; what lies beyond `end_offset` is reserved room or torn.
        adopted: rows that came from the run's shared memory and not from here; None where there was none.
    """

    header: Header
    index: np.ndarray
    drops: tuple[Drop, ...]
    end: dict[str, Any] | None
    missing: int
    damaged: int
    torn: int
    last_seq: int
    end_offset: int
    file_bytes: int
    adopted: int | None = None

    @property
    def row_count(self) -> int:
        """Good records."""
        return len(self.index)

    @property
    def lost(self) -> int:
        """Records that were handed over and are not in the file, as far as the file can tell."""
        return self.missing + sum(drop.count for drop in self.drops)

    @property
    def completeness(self) -> tuple[str, str]:
        """`complete`, `recovered` or `truncated`, and why."""
        reasons = [
            f"{drop.count} rows lost: {drop.why.name.lower().replace('_', ' ')}" for drop in self.drops
        ]
        if self.missing:
            reasons.append(f"{self.missing} rows missing")
        if self.damaged:
            reasons.append(f"{self.damaged} frames damaged or cut off")
        if reasons:
            return "truncated", "; ".join(reasons)
        if self.end is None:
            last = "after a power cut up to its last second may be missing"
            if self.adopted is not None:
                last = f"its last {self.adopted} rows come from its shared memory, none is missing"
            return "recovered", f"the run was not closed in order; {last}"
        return "complete", "closed in order, every row is here"


def scan(path: Path) -> Scan:
    """Check every frame of a journal.

    Raises:
        RolloutError: unreadable, not a journal, or its header is damaged.
    """
    data = _mapped(path)
    return _scan_frames(data, unpack_header(data, str(path)))


def read_rows(path: Path, found: Scan) -> np.ndarray:
    """The good records of a scanned journal, shape (row_count,), the journal's type.

    A read-only view into the file where every frame is good, else a copy.

    Raises:
        RolloutError: the file has become unreadable since.
    """
    header = found.header
    pad = header.payload_bytes - header.dtype.itemsize
    frame = np.dtype([("head", "V12"), ("row", header.dtype), ("tail", f"V{pad + 4}")])
    count = (found.end_offset - header.size) // header.frame_bytes
    if not found.row_count:
        return np.zeros(0, header.dtype)
    try:
        frames = np.memmap(path, frame, "r", header.size, (count,))
    except (OSError, ValueError) as error:
        raise RolloutError(f"{path}: can't be read any more ({error})") from error
    rows: np.ndarray = frames["row"]
    first, last = int(found.index[0]), int(found.index[-1]) + 1
    return rows[first:last] if last - first == found.row_count else rows[found.index]


def _mapped(path: Path) -> memoryview:
    """The file as memory; unmapped when the last view is gone."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
    except OSError as error:
        raise RolloutError(
            f"{path}: can't be read ({error.strerror}); give a .journal file of a run"
        ) from error


def _scan_frames(data: memoryview, header: Header) -> Scan:
    size = header.frame_bytes
    count = (len(data) - header.size) // size
    index: list[int] = []
    drops: list[Drop] = []
    end: dict[str, Any] | None = None
    last_seq = missing = used = damaged = 0
    for number in range(count):
        start = header.size + number * size
        content = _content(data[start : start + size], header.salt, last_seq)
        if content is None:
            continue
        damaged += number - used
        used = number + 1
        if isinstance(content, int):
            missing += content - last_seq - 1
            index.append(number)
            last_seq = content
        elif isinstance(content, Drop):
            missing += content.first - last_seq - 1
            drops.append(content)
            last_seq = content.last
        else:
            end = content
    end_offset = header.size + used * size
    after = bytes(data[end_offset:]).rstrip(b"\0")
    torn = -(-len(after) // size)
    return Scan(
        header=header,
        index=np.array(index, np.int64),
        drops=tuple(drops),
        end=end,
        missing=missing,
        damaged=damaged + torn,
        torn=torn,
        last_seq=last_seq,
        end_offset=end_offset,
        file_bytes=len(data),
    )


def _content(frame: memoryview, salt: int, last_seq: int) -> int | Drop | dict[str, Any] | None:
    """A record's sequence number, a loss, or the closing facts; None for a frame that can't be trusted."""
    checked = check_frame(frame, salt)
    if checked is None or checked[0] <= last_seq:
        return None
    seq, kind, payload = checked
    if kind == Kind.ROW:
        return seq
    try:
        if kind == Kind.END:
            return unpack_end(payload)
        drop = unpack_drop(payload)
    except ValueError:
        return None
    return drop if kind == Kind.DROP and last_seq < drop.first <= drop.last else None
