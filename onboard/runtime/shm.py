"""Shared memory between the processes of one run: a file mapping that holds rings of checksummed slots.

Every ring has one writer and any number of readers, and no lock (a killed holder keeps a lock for
ever). A slot is

    seq_head u64 | payload | crc32 u32 | seq_tail u64

The writer stores seq_head, payload and checksum, seq_tail, then the ring's head counter. A reader
copies the slot and accepts it when both sequence numbers are the one it asked for and the checksum
holds, so a torn or half-written slot is never taken for a whole one, on machines with weak memory
ordering too. What a crashed run left in the file can be read with the same code.
"""

import json
import mmap
import os
import stat
import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np

from onboard.configs.errors import OnboardError
from onboard.configs.untrusted import DAMAGED

MAGIC = b"ONBDSHM1"
HEADER_BYTES = 65536
Layout = dict[str, tuple[np.dtype, int]]
"""Ring name to payload type and number of slots."""


class ShmError(OnboardError):
    """A mapping is missing, foreign, or of another layout."""


class Ring:
    """One ring of slots inside a mapping."""

    def __init__(self, buffer: memoryview, dtype: np.dtype, slots: int) -> None:
        self.dtype = dtype
        self.slots = slots
        self._size = dtype.itemsize
        self._stride = _stride(dtype)
        self._buffer = buffer
        self._head = buffer[:8].cast("Q")
        self._next = self._head[0] + 1
        at = [64 + slot * self._stride for slot in range(slots)]
        self._heads = [buffer[start : start + 8].cast("Q") for start in at]
        self._payloads = [np.frombuffer(buffer, np.uint8, self._size, start + 8) for start in at]
        self._tails = [buffer[start + 8 + self._size : start + 20 + self._size] for start in at]

    @staticmethod
    def size(dtype: np.dtype, slots: int) -> int:
        """Bytes that a ring takes."""
        return 64 + slots * _stride(dtype)

    @property
    def head(self) -> int:
        """Sequence number of the newest whole slot; 0 when nothing was written yet."""
        return self._head[0]

    def push(self, record: np.ndarray) -> int:
        """Copy one record (0-d, this ring's type) in; returns its sequence number, from 1."""
        seq = self._next
        slot = seq % self.slots
        self._heads[slot][0] = seq
        payload = self._payloads[slot]
        payload[:] = np.frombuffer(record, np.uint8)  # as bytes: field by field costs ten times as much
        self._tails[slot][:] = struct.pack("<IQ", zlib.crc32(payload.data, seq & 0xFFFFFFFF), seq)
        self._head[0] = seq
        self._next = seq + 1
        return seq

    def read(self, seq: int, out: np.ndarray) -> bool:
        """Copy slot `seq` into `out` (0-d); False when it was overwritten, is torn or was never written."""
        slot = seq % self.slots
        if seq < 1 or self._heads[slot][0] != seq:
            return False
        view = np.frombuffer(out, np.uint8)
        view[:] = self._payloads[slot]
        crc, tail = struct.unpack("<IQ", self._tails[slot])
        whole = tail == seq and self._heads[slot][0] == seq
        return whole and zlib.crc32(view.data, seq & 0xFFFFFFFF) == crc

    def latest(self, out: np.ndarray) -> int:
        """Copy the newest whole slot into `out`; its sequence number, or 0 when there is none.

        A writer that overtakes the copy, or died inside a slot, costs one look at the slot before.
        """
        for _ in range(3):
            head = self.head
            if head == 0:
                return 0
            if self.read(head, out):
                return head
            if head > 1 and self.slots > 1 and self.read(head - 1, out):
                return head - 1
        return 0

    def release(self) -> None:
        """Drop every view so that the mapping can be closed."""
        self._head = memoryview(bytes(8)).cast("Q")
        self._heads.clear()
        self._tails.clear()
        self._payloads.clear()
        self._buffer.release()


class Shared:
    """A mapping with its rings by name: `shared["command"]`."""

    def __init__(self, path: Path, mapping: mmap.mmap, layout: Layout) -> None:
        self.path = path
        self.layout = layout
        self._mapping = mapping
        self._view = memoryview(mapping)
        self._rings: dict[str, Ring] = {}
        offset = HEADER_BYTES
        for name, (dtype, slots) in layout.items():
            size = Ring.size(dtype, slots)
            self._rings[name] = Ring(self._view[offset : offset + size], dtype, slots)
            offset += _align(size)

    def __getitem__(self, name: str) -> Ring:
        return self._rings[name]

    @classmethod
    def create(cls, layout: Layout, folder: Path | None = None) -> "Shared":
        """Make a new mapping with a unique name and mode 0600.

        Args:
            layout: the rings.
            folder: where; a memory-backed folder where there is one, else the temporary folder.

        Raises:
            ShmError: no room for it.
        """
        folder = folder or default_folder()
        header = _header(layout)
        size = HEADER_BYTES + sum(_align(Ring.size(*entry)) for entry in layout.values())
        descriptor, name = tempfile.mkstemp(prefix=f"onboard-{os.getpid()}-", suffix=".shm", dir=folder)
        try:
            os.posix_fallocate(descriptor, 0, size)
            mapping = mmap.mmap(descriptor, size)
        except OSError as error:
            Path(name).unlink()
            raise ShmError(
                f"{folder}: can't make {size >> 20} MiB of shared memory ({error.strerror})"
            ) from error
        finally:
            os.close(descriptor)
        mapping[: len(header)] = header
        return cls(Path(name), mapping, layout)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "Shared":
        """Map what another process made; the layout is read from the file.

        Args:
            path: the mapping's file.
            read_only: for onlookers; pushing is then impossible.

        Raises:
            ShmError: missing, or not made by this version.
        """
        try:
            flags = (os.O_RDONLY if read_only else os.O_RDWR) | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(path, flags), "rb" if read_only else "r+b") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ValueError("not a regular file")
                access = mmap.ACCESS_READ if read_only else mmap.ACCESS_WRITE
                mapping = mmap.mmap(file.fileno(), 0, access=access)
        except (OSError, ValueError) as error:
            raise ShmError(f"{path}: no shared memory of a run there ({error})") from error
        try:
            return cls(path, mapping, _layout_of(mapping))
        except DAMAGED as error:
            mapping.close()
            raise ShmError(f"{path}: not shared memory of this version of onboard ({error})") from error

    def close(self) -> None:
        """Unmap; the file stays for the others."""
        for ring in self._rings.values():
            ring.release()
        self._rings.clear()
        self._view.release()
        self._mapping.close()

    def unlink(self) -> None:
        """Remove the file; processes that still map it keep it until they end."""
        self.path.unlink(missing_ok=True)


def default_folder() -> Path:
    """A memory-backed folder where the system has one."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def dtype_to_json(dtype: np.dtype) -> list[object]:
    """A structured type as plain data, for headers of files and mappings."""
    rows: list[object] = []
    for name in dtype.names or ():
        field = dtype[name]
        if field.subdtype is None:
            rows.append([name, field.str])
        else:
            rows.append([name, field.subdtype[0].str, list(field.subdtype[1])])
    return rows


def dtype_from_json(rows: list[object]) -> np.dtype:
    """The inverse of `dtype_to_json`."""
    fields = [(row[0], row[1], tuple(row[2])) if len(row) == 3 else (row[0], row[1]) for row in rows]  # type: ignore[index, arg-type]
    return np.dtype(fields)


def _header(layout: Layout) -> bytes:
    text = json.dumps(
        {name: [dtype_to_json(dtype), slots] for name, (dtype, slots) in layout.items()}
    ).encode()
    if len(text) + 12 > HEADER_BYTES:
        raise ShmError("the layout's description does not fit the header")
    return MAGIC + struct.pack("<I", len(text)) + text


def _layout_of(mapping: mmap.mmap) -> Layout:
    """The layout that a mapping's header describes. Raises one of `DAMAGED` where it is none."""
    if mapping[:8] != MAGIC:
        raise ValueError("it begins otherwise")
    length = struct.unpack("<I", mapping[8:12])[0]
    raw = json.loads(mapping[12 : 12 + length])
    layout = {name: (dtype_from_json(descr), slots) for name, (descr, slots) in raw.items()}
    for dtype, slots in layout.values():
        if dtype.hasobject or not dtype.names or not (isinstance(slots, int) and slots > 0):
            raise ValueError("a ring of something else than records")
    size = HEADER_BYTES + sum(_align(Ring.size(*entry)) for entry in layout.values())
    if size != len(mapping):
        raise ValueError(f"{len(mapping)} bytes, its rings take {size}")
    return layout


def _stride(dtype: np.dtype) -> int:
    return _align(8 + dtype.itemsize + 12)


def _align(size: int) -> int:
    return (size + 63) & ~63
