"""HDF5 files that never crash the process: written aside with room reserved, then put in place whole.

The HDF5 library ends the process when the disk fills up under it. So the room is reserved first,
and the library writes through a file object that keeps an error to itself until the file is closed.
"""

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py

from onboard.configs.errors import RolloutError
from onboard.logging.journal import sync_folder

MARGIN_BYTES = 256 << 10
"""For HDF5's own structures, beside the data."""


class QuietFile(io.FileIO):
    """A new file with its room reserved, whose writes never fail towards the caller.

    The reserved room does not show: the file ends where the last write did.

    Attributes:
        error: the first failure.
    """

    def __init__(self, path: Path, reserve_bytes: int) -> None:
        super().__init__(path, "w+")
        self.error: OSError | None = None
        self._end = 0
        os.posix_fallocate(self.fileno(), 0, reserve_bytes)

    def write(self, data: object) -> int:
        """Write all of `data`, or remember why not."""
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
        os.fsync(self.fileno())


def write_whole(target: Path, data_bytes: int, fill: Callable[[h5py.File], None], retry: str) -> None:
    """Make `target` appear complete and durable, or not at all.

    Args:
        target: replaced where it exists.
        data_bytes: size of what `fill` will store.
        fill: stores it.
        retry: what to do on a full disk, for the message.

    Raises:
        RolloutError: too little room, or the disk refuses.
    """
    aside = target.with_name(f".{target.name}.part")
    need = data_bytes + MARGIN_BYTES
    try:
        free = shutil.disk_usage(target.parent).free
        if free < need:
            raise RolloutError(
                f"{target.parent}: {free >> 20} MB free, {target.name} needs {(need >> 20) + 1} MB; {retry}"
            )
        with QuietFile(aside, need) as file:
            with h5py.File(file, "w") as h5:
                fill(h5)
            file.give_back()
        aside.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise RolloutError(f"{target}: can't be written ({error.strerror or error}); {retry}") from error
    finally:
        aside.unlink(missing_ok=True)
