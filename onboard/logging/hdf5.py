"""HDF5 files that never crash the process: written aside with room reserved, then put in place whole.

The HDF5 library ends the process when the disk fills up under it. So the room is reserved first,
and the library writes through a file object that keeps an error to itself until the file is closed.

It also crashes on some damaged files, and does not notice damaged numbers at all. So the file begins
with a seal, in the 512 bytes that HDF5 leaves to its user: size and checksum of everything behind it.
"""

import contextlib
import io
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py

from onboard.configs.errors import RolloutError
from onboard.logging.journal import sync_folder

MARGIN_BYTES = 256 << 10
"""For HDF5's own structures, beside the data."""

USER_BLOCK = 512
"""Bytes before HDF5's own first byte, where any HDF5 reader finds it."""

Tell = Callable[[], None]
"""Hears that the work goes on."""

_SEAL = struct.Struct("<8sQI")
_MAGIC = b"ONBDROL1"
_BLOCK = 1 << 20


def silent() -> None:
    """Nobody wants to hear."""


class QuietFile(io.FileIO):
    """A new file with its room reserved, whose writes never fail towards the caller.

    The reserved room does not show: the file ends where the last write did.

    Args:
        path: of the file.
        reserve_bytes: room to reserve.
        tell: called with every step of the work.

    Attributes:
        error: the first failure.
    """

    def __init__(self, path: Path, reserve_bytes: int, tell: Tell) -> None:
        super().__init__(path, "w+")
        self._tell = tell
        self.error: OSError | None = None
        self._end = 0
        os.posix_fallocate(self.fileno(), 0, reserve_bytes)

    def write(self, data: object) -> int:
        """Write all of `data`, or remember why not."""
        self._tell()
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        done = 0
        try:
            while done < len(view):
                done += super().write(view[done:]) or 0
        except OSError as error:
            self.error = self.error or error
        self._end = max(self._end, self.tell())
        return len(view)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of any file; the end is that of what was written."""
        return super().seek(self._end + offset) if whence == os.SEEK_END else super().seek(offset, whence)

    def truncate(self, size: int | None = None) -> int:
        """Move the end; the room stays reserved until `give_back`."""
        self._end = self.tell() if size is None else size
        return self._end

    def give_back(self) -> None:
        """End the file where it ends. Raises the first failure, or OSError of its own."""
        if self.error is not None:
            raise self.error
        os.ftruncate(self.fileno(), self._end)

    def seal(self) -> None:
        """Put size and checksum before HDF5's part, and wait for the disk. Raises OSError."""
        size, crc = _checksum(self, self._tell)
        self.seek(0)
        super().write(_SEAL.pack(_MAGIC, size, crc) + b" onboard rollout; HDF5 begins at byte 512\n")
        os.fsync(self.fileno())


def write_whole(
    target: Path, data_bytes: int, fill: Callable[[h5py.File], None], retry: str, tell: Tell = silent
) -> None:
    """Make `target` appear complete and durable, or not at all.

    Args:
        target: replaced where it exists.
        data_bytes: size of what `fill` will store.
        fill: stores it.
        retry: what to do on a full disk, for the message.
        tell: called with every step of the work.

    Raises:
        RolloutError: too little room, or the disk refuses.
    """
    aside = target.with_name(f".{target.name}.part")
    need = data_bytes + MARGIN_BYTES
    try:
        aside.unlink(missing_ok=True)  # of somebody who was killed here
        free = shutil.disk_usage(target.parent).free
        if free < need:
            raise RolloutError(
                f"{target.parent}: {free >> 20} MB free, {target.name} needs {(need >> 20) + 1} MB; {retry}"
            )
        with QuietFile(aside, need, tell) as file:
            with h5py.File(file, "w", userblock_size=USER_BLOCK) as h5:
                fill(h5)
            file.give_back()
            file.seal()
        aside.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise RolloutError(f"{target}: can't be written ({error.strerror or error}); {retry}") from error
    finally:
        with contextlib.suppress(OSError):  # a read-only disk refuses even to remove what is not there
            aside.unlink(missing_ok=True)


def check_seal(path: Path, contents: bool = True) -> None:
    """Make sure that a file is what `write_whole` once wrote, before HDF5 sees it.

    Args:
        path: of the file.
        contents: compare the checksum, which reads the whole file; else only the size.

    Raises:
        RolloutError: it can't be read, was cut or changed, or is something else.
    """
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(_SEAL.size)
            if head[: len(_MAGIC)] != _MAGIC:
                raise RolloutError(f"{path}: neither a rollout nor a journal of onboard")
            size, crc = _SEAL.unpack(head.ljust(_SEAL.size))[1:]
            there = max(0, os.fstat(file.fileno()).st_size - USER_BLOCK)
            found = _checksum(file)[1] if contents and there == size else crc
    except OSError as error:
        raise RolloutError(f"{path}: can't be read ({error.strerror}); give a rollout file") from error
    if there != size:
        raise RolloutError(f"{path}: {there} bytes where {size} were written; it was cut, copy it again")
    if found != crc:
        raise RolloutError(
            f"{path}: damaged, its checksum does not hold; "
            "copy it again, or open it with check=False if you changed it on purpose"
        )


def _checksum(file: io.FileIO, tell: Tell = silent) -> tuple[int, int]:
    """Size and CRC32 of what follows the user block. Raises OSError."""
    file.seek(USER_BLOCK)
    size = crc = 0
    while block := file.read(_BLOCK):
        tell()
        size += len(block)
        crc = zlib.crc32(block, crc)
    return size, crc
