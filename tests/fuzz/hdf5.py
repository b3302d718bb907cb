"""Rollout files with hostile insides: made with h5py, and sealed as if they were sound."""

import contextlib
import io
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import h5py
import numpy as np

from onboard.logging.hdf5 import USER_BLOCK

SEAL = struct.Struct("<8sQI")
VALUES: tuple[Any, ...] = (
    *(0, -1, 2**62, 1.5, np.nan, np.inf, "", "text", "{", "[" * 3000, "\x1b[2J", b"\xff\xfe", True),
    *(np.zeros(0), np.zeros((3, 3)), np.array(["a", "b"], object), np.zeros(2, "f4,i4"), h5py.Empty("f")),
)
TYPES = ("f8", "i1", "S4", ">f4", "f4,i4", "u8", "?")

MOST_ROWS = 4096
"""Of what is put in the place of a dataset, which may have been made a huge one before."""

Spoil = tuple[str, int, int]


def spoil_hdf5(example: bytes, spoils: Sequence[Spoil]) -> bytes:
    """Apply mutations to a copy and seal it again."""
    file = io.BytesIO(example)
    with h5py.File(file, "r+") as h5:
        for name, place, value in spoils:
            paths = _paths(h5)
            if paths:
                with contextlib.suppress(ValueError, TypeError, RuntimeError, LookupError, OSError):
                    SPOILS[name](h5, paths[place % len(paths)], value)  # or it is left out
    return sealed(file.getvalue())


def sealed(content: bytes) -> bytes:
    """With size and checksum of what stands behind the first 512 bytes."""
    body = content[USER_BLOCK:]
    head = SEAL.pack(content[:8], len(body), zlib.crc32(body))
    return head + content[SEAL.size : USER_BLOCK] + body


def _paths(h5: h5py.File) -> list[str]:
    found: list[str] = []

    def walk(group: h5py.Group, prefix: str) -> None:
        for name in group:
            path = f"{prefix}/{name}"
            link = group.get(name, getlink=True)
            found.append(path)
            if isinstance(link, h5py.HardLink) and isinstance(group[name], h5py.Group) and len(found) < 400:
                walk(group[name], path)

    walk(h5, "")
    return found


def _delete(h5: h5py.File, path: str, _value: int) -> None:
    del h5[path]


def _retype(h5: h5py.File, path: str, value: int) -> None:
    _set(h5, path, np.zeros(_rows(h5, path), TYPES[value % len(TYPES)]))


def _resize(h5: h5py.File, path: str, value: int) -> None:
    rows = _rows(h5, path)
    _set(h5, path, np.zeros(((0,), (rows - 1,), (rows + 1, 2), (rows, 3, 3), ())[value % 5], np.float32))


def _fill(h5: h5py.File, path: str, value: int) -> None:
    found = h5.get(path)
    if isinstance(found, h5py.Dataset) and 0 < (found.size or 0) < 2**16 and found.dtype.kind in "fiu":
        odd = (0, 1, -1, 2**31 - 1, 255, np.nan)[value % 6]
        with np.errstate(all="ignore"):
            found[...] = np.full(found.shape, odd).astype(found.dtype)


def _huge(h5: h5py.File, path: str, value: int) -> None:
    """Much data out of nothing: never written, or packed."""
    shape = (2**40,) if value % 2 else (2**28,)
    packed = {} if value % 2 else {"chunks": (2**20,), "compression": "gzip"}
    del h5[path]
    h5.create_dataset(path, shape, "f4", **packed)


def _external(h5: h5py.File, path: str, value: int) -> None:
    """Contents of another file of the machine."""
    del h5[path]
    target = ("/etc/passwd", "../../etc/passwd")[value % 2]
    if value % 3 == 0:
        h5[path] = h5py.ExternalLink(target, "/")
    elif value % 3 == 1:
        h5.create_dataset(path, (50,), "u1", external=[(target, 0, 50)])
    else:
        layout = h5py.VirtualLayout((50,), "f4")
        layout[:] = h5py.VirtualSource(target, "x", (50,))
        h5.create_virtual_dataset(path, layout)


def _link(h5: h5py.File, path: str, value: int) -> None:
    del h5[path]
    target = (path, "/", "/nowhere", "/rollout", "/rollout/q")[value % 5]
    h5[path] = h5py.SoftLink(target)


def _group(h5: h5py.File, path: str, value: int) -> None:
    """A folder where numbers stood, or numbers where a folder stood."""
    found = isinstance(h5.get(path), h5py.Group)
    del h5[path]
    if found:
        h5[path] = np.zeros(3 + value % 3)
    else:
        h5.create_group(path)


def _add(h5: h5py.File, path: str, value: int) -> None:
    name = ("policies/1", "policies/x", "policies/-1", "lowstate", "rollout/more", "policies/0/extras/a")[
        value % 6
    ]
    if name not in h5:
        h5.copy(path, name)


def _attribute(h5: h5py.File, path: str, value: int) -> None:
    holder = h5.get(path) if value % 2 else h5
    if isinstance(holder, h5py.Dataset | h5py.Group) and len(holder.attrs):
        name = sorted(holder.attrs)[value // 2 % len(holder.attrs)]
        if value % 7 == 0:
            del holder.attrs[name]
        else:
            holder.attrs[name] = VALUES[value // 3 % len(VALUES)]


def _rows(h5: h5py.File, path: str) -> int:
    found = h5.get(path)
    return min(int(found.shape[0]), MOST_ROWS) if isinstance(found, h5py.Dataset) and found.shape else 5


def _set(h5: h5py.File, path: str, values: np.ndarray) -> None:
    del h5[path]
    h5[path] = values


SPOILS: dict[str, Callable[[h5py.File, str, int], None]] = {
    "delete": _delete,
    "retype": _retype,
    "resize": _resize,
    "fill": _fill,
    "huge": _huge,
    "external": _external,
    "link": _link,
    "group": _group,
    "add": _add,
    "attribute": _attribute,
}
