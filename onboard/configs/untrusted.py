"""Files that nobody vouches for: read whole and within bounds, found only inside the folder that names them.

Whoever hands over a policy, a motion or a log chooses what stands in it: a name that leads elsewhere, a
pipe that never ends, a small archive that unpacks to more than the memory. What is read here is refused then.
"""

import contextlib
import errno
import io
import lzma
import math
import os
import resource
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError

LARGEST_BYTES = 1 << 30
"""Of one file of data, and of everything that an archive unpacks to."""

DAMAGED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers of Python and numpy raise on damaged or hostile contents, beside OSError."""


TRIAL_BYTES = 4 << 30
"""Address space that a model may take when it is loaded and run for the first time."""


@contextlib.contextmanager
def limited_memory(extra_bytes: int = TRIAL_BYTES) -> Iterator[None]:
    """The process may take so much more address space, and no more, as long as this lasts.

    What asks for more gets an error from its allocator instead of the machine's whole memory.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + extra_bytes
    allowed = [bound for bound in (limit, soft, hard) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(allowed), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def inside(folder: Path, name: str, what: str) -> Path:
    """Path of a file that the contents of a folder name.

    The folder itself may be a symbolic link. What it names must lie in it after every link and `..` is
    followed.

    Args:
        folder: of the bundle.
        name: as written in it.
        what: names the place that says so, for the message.

    Raises:
        PolicyError: it lies elsewhere.
    """
    path = folder / name
    try:
        found = not Path(name).is_absolute() and path.resolve().is_relative_to(folder.resolve())
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # that it is missing others say
            path.stat()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or no file name at all
        found = False
    if not found:
        raise PolicyError(
            f"{folder}: {what} names '{name[:200]}', which does not lie in that folder; copy the file "
            "into it and name it by its path from there"
        )
    return path


def read_whole(path: Path, largest: int = LARGEST_BYTES) -> bytes:
    """Contents of a regular file.

    Raises:
        OSError: missing, unreadable, larger than `largest`, or a pipe, device or folder; `strerror` says so.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name can't be a file's", str(path)) from error
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if found.st_size > largest:
            raise OSError(errno.EFBIG, f"{found.st_size} bytes, expected at most {largest}", str(path))
        return file.read(found.st_size)


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of an npz by name; no pickled object in it is ever loaded.

    Raises:
        OSError: as `read_whole`.
        ValueError: damaged, larger than it may become, or with something else than plain arrays in it.
    """
    content = read_whole(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > LARGEST_BYTES:
                raise ValueError(f"it unpacks to more than {LARGEST_BYTES} bytes")
            return {entry.filename.removesuffix(".npy"): parse_npy(archive.read(entry)) for entry in entries}
    except DAMAGED as error:
        raise ValueError(str(error) or type(error).__name__) from error


def read_npy(path: Path) -> NDArray[Any]:
    """The array of an npy; errors as of `read_npz`."""
    content = read_whole(path)
    try:
        return parse_npy(content)
    except DAMAGED as error:
        raise ValueError(str(error) or type(error).__name__) from error


def parse_npy(content: bytes) -> NDArray[Any]:
    """The array in the bytes of an npy, which must hold as many numbers as its head says.

    Raises:
        ValueError: it does not, or holds objects; other damage raises one of `DAMAGED`.
    """
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    head = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in head:
        raise ValueError(f"an npy of version {version}, expected 1.0 or 2.0")
    shape, fortran, dtype = head[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, expected numbers or text")
    size, there = math.prod(shape) * dtype.itemsize, len(content) - file.tell()
    if min(shape, default=0) < 0 or size != there:
        raise ValueError(f"an array of shape {shape} takes {size} bytes, found {there}")
    flat = np.frombuffer(content, dtype, offset=file.tell()) if size else np.zeros(math.prod(shape), dtype)
    array: NDArray[Any] = flat.reshape(shape, order="F" if fortran else "C").copy()
    return array
