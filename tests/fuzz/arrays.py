"""Strategies that spoil arrays and the archives that hold them."""

import contextlib
import io
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.fuzz.mutate import blobs

Arrays = Mapping[str, NDArray[Any]]
Held = dict[str, bytes]
"""Member name to the bytes of its npy."""

TYPES = ("f2", ">f8", "i1", "u8", "?", "c16", "U3", "S2", "M8[s]", "V8", "O", "f4,i4")
NUMBERS = (np.nan, np.inf, -np.inf, 1e308, 0.0, -1.0, 1e-320)
SHAPES = ((0,), (), (2**40,), (2**31, 2**31), (-1, 3), (1,) * 40, (3, 0, 5))
NAMES = ("", "../../up", "/abs", "mean", "fps", "joint_names", "\x1b[31m", "a" * 300, "file")
HEADS = (b"", b"(" * 9000, b"{'descr': '<f8'}", b"__import__('os').system('touch PLANTED')", b"{'a': [" * 900)


def archives(*examples: Arrays) -> st.SearchStrategy[bytes]:
    """Npz files of spoiled arrays, and spoiled bytes of whole ones."""
    whole = [pack({name: npy(array) for name, array in example.items()}) for example in examples]
    spoil = st.tuples(st.sampled_from(sorted(_SPOILS)), st.integers(0, 2**16), st.integers(0, 2**16))
    drawn = st.tuples(st.sampled_from(examples), st.lists(spoil, max_size=3), st.booleans())
    spoiled = drawn.map(lambda case: pack(_spoilt(case[0], case[1]), packed=case[2]))
    return st.one_of(spoiled, spoiled, blobs(*whole))


def single(*examples: NDArray[Any]) -> st.SearchStrategy[bytes]:
    """The same of npy files."""
    spoil = st.tuples(st.sampled_from(sorted(_SPOILS)), st.just(0), st.integers(0, 2**16))
    drawn = st.tuples(st.sampled_from(examples), st.lists(spoil, max_size=2))
    spoiled = drawn.map(lambda case: next(iter(_spoilt({"a": case[0]}, case[1]).values()), b""))
    return st.one_of(spoiled, blobs(*map(npy, examples)))


def npy(array: NDArray[Any]) -> bytes:
    """Bytes of an npy; objects are pickled, as anybody's program would."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def pack(members: Mapping[str, bytes], packed: bool = False) -> bytes:
    """An npz, compressed or not."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def _spoilt(example: Arrays, spoils: list[tuple[str, int, int]]) -> Held:
    held = {name: npy(array) for name, array in example.items()}
    arrays = dict(example)
    for name, place, value in spoils:
        if held:
            key = list(held)[place % len(held)]
            with (
                contextlib.suppress(ValueError, TypeError, IndexError),
                np.errstate(all="ignore"),
            ):  # what can't be done to this array is left out
                _SPOILS[name](held, arrays, key, value)
    return held


def _drop(held: Held, _arrays: dict[str, Any], key: str, _value: int) -> None:
    del held[key]


def _rename(held: Held, _arrays: dict[str, Any], key: str, value: int) -> None:
    held[NAMES[value % len(NAMES)]] = held.pop(key)


def _cast(held: Held, arrays: dict[str, Any], key: str, value: int) -> None:
    array = arrays.get(key, np.zeros(3))
    held[key] = npy(np.zeros(array.shape, np.dtype(TYPES[value % len(TYPES)])))


def _reshape(held: Held, arrays: dict[str, Any], key: str, value: int) -> None:
    array = arrays.get(key, np.zeros(3))
    shapes = (array[:0], array[:1], array.T, array.reshape(-1), array[None], array[..., None], array[::-1])
    held[key] = npy(shapes[value % 6 if array.ndim == 0 else value % 7]) if array.ndim else npy(array[None])


def _fill(held: Held, arrays: dict[str, Any], key: str, value: int) -> None:
    array = np.array(arrays.get(key, np.zeros(3)))
    if array.dtype.kind == "f" and array.size:
        array.reshape(-1)[value % array.size :: 1 + value % 7] = NUMBERS[value % len(NUMBERS)]
    held[key] = npy(array)


def _scale(held: Held, arrays: dict[str, Any], key: str, value: int) -> None:
    array = np.asarray(arrays.get(key, np.zeros(3)))
    if array.dtype.kind in "fiu":
        held[key] = npy(array * (0.0, -1.0, 1e-9, 1e9, 2.0)[value % 5])


def _claim(held: Held, _arrays: dict[str, Any], key: str, value: int) -> None:
    """A head that says another shape than there are numbers."""
    file = io.BytesIO()
    head = {"descr": "<f8", "fortran_order": False, "shape": SHAPES[value % len(SHAPES)]}
    np.lib.format.write_array_header_1_0(file, head)
    held[key] = file.getvalue() + bytes(value % 100)


def _head(held: Held, _arrays: dict[str, Any], key: str, value: int) -> None:
    head = HEADS[value % len(HEADS)]
    held[key] = b"\x93NUMPY" + bytes([1 + value % 3, 0]) + len(head).to_bytes(2, "little") + head


_SPOILS: dict[str, Callable[[Held, dict[str, Any], str, int], None]] = {
    "drop": _drop,
    "rename": _rename,
    "cast": _cast,
    "reshape": _reshape,
    "fill": _fill,
    "scale": _scale,
    "claim": _claim,
    "head": _head,
}
