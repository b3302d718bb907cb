"""Pickled motions without pickle's power: plain containers and numpy arrays come out, nothing is executed.

joblib writes an array as a small object and the array's bytes behind it, in the middle of the pickle;
that is read here too, and so are its compressed files. Every name that a file asks for is looked up in
the short table below, in which only functions of this module and `dict` stand.
"""

import bz2
import io
import lzma
import pickle
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from onboard.configs.errors import PolicyError
from onboard.configs.untrusted import read_whole

LARGEST_BYTES = 1 << 28
"""A file may be this large, and a compressed one become so, no larger."""

KEYS = (str, bytes, int, float)
"""What may be a key of a mapping."""

KINDS = "biufcSU"
"""Kinds of arrays that are admitted: numbers and text, no objects."""

_ERRORS = (
    pickle.UnpicklingError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a damaged stream can end in."""


def read_pickle(path: Path) -> Any:  # noqa: ANN401 - whatever plain data the file holds
    """Containers, numbers, text and arrays of a pickle or joblib file.

    Raises:
        PolicyError: the file can't be read, or holds anything else.
    """
    try:
        return _Reader(io.BytesIO(_decompressed(read_whole(path, LARGEST_BYTES)))).load()
    except _RefusedError as error:
        raise PolicyError(
            f"{path}: refused: {error}; only arrays and plain containers are read from a pickle, because "
            "anything else could run code; convert the motion to .npz or .csv"
        ) from error
    except _ERRORS as error:
        raise PolicyError(f"{path}: can't be read as a pickled motion ({error})") from error


class _RefusedError(Exception):
    """The file asks for something that is not admitted."""


class _Array:
    """Stands for numpy's array type where a pickle names it; nothing can be made of it."""


class _JoblibArray:
    """Stands for joblib's note that an array's bytes follow."""


class _Reader(pickle._Unpickler):  # the C one can't be stopped at an array that lies between its opcodes
    """Python's own unpickler with a closed table of names, and with joblib's arrays."""

    dispatch: ClassVar[dict[int, Callable[..., None]]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]  # Python's own, which its type description leaves out

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._stream = file

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _RefusedError(f"it names {module}.{name}") from None

    def load_build(self) -> None:
        """Give an object its state: arrays and their types alone have any."""
        state, built = self.stack.pop(), self.stack[-1]
        if isinstance(built, _JoblibArray):
            self.stack[-1] = self._array(dict(state))
        elif isinstance(built, np.dtype):
            _plain(built)
            _set_byte_order(built, state)
        elif isinstance(built, np.ndarray):
            _version, shape, dtype, fortran, content = state
            checked: Any = (1, tuple(shape), _plain(dtype), bool(fortran), bytes(content))
            built.__setstate__(checked)
        else:
            raise _RefusedError(f"it sets the state of a {type(built).__name__}")

    dispatch[pickle.BUILD[0]] = load_build

    def load_setitem(self) -> None:
        """One key and value."""
        self._check_keys([self.stack[-2]])
        super().load_setitem()  # type: ignore[misc]  # Python's own, not described

    dispatch[pickle.SETITEM[0]] = load_setitem

    def load_setitems(self) -> None:
        """Keys and values behind each other."""
        self._check_keys(self.stack[::2])
        super().load_setitems()  # type: ignore[misc]

    dispatch[pickle.SETITEMS[0]] = load_setitems

    def load_dict(self) -> None:
        """A mapping of what was last put down."""
        self._check_keys(self.stack[::2])
        super().load_dict()  # type: ignore[misc]

    dispatch[pickle.DICT[0]] = load_dict

    def load_set(self) -> None:
        """A set; nothing plain needs one."""
        raise _RefusedError("it has a set")

    dispatch[pickle.FROZENSET[0]] = dispatch[pickle.ADDITEMS[0]] = load_set

    def _check_keys(self, keys: list[Any]) -> None:
        """A key that nests tuples in tuples takes for ever to hash."""
        for key in keys:
            if not isinstance(key, KEYS):
                raise _RefusedError(f"it has a {type(key).__name__} as a key")

    def _array(self, note: dict[str, Any]) -> Any:  # noqa: ANN401
        """The array behind joblib's note; its bytes are aligned where the note says so."""
        dtype = _plain(note["dtype"])
        shape = tuple(int(size) for size in note["shape"])
        if note.get("numpy_array_alignment_bytes") is not None:
            self._stream.read(self._stream.read(1)[0])
        count = int(np.prod(shape, dtype=object)) if shape else 1
        values = np.frombuffer(self._stream.read(count * dtype.itemsize), dtype)
        return values.reshape(shape, order="F" if note["order"] == "F" else "C").copy()


def _plain(dtype: Any) -> np.dtype[Any]:  # noqa: ANN401
    if not isinstance(dtype, np.dtype) or dtype.kind not in KINDS:
        raise _RefusedError(f"it has an array of {dtype}")
    return dtype


def _set_byte_order(dtype: np.dtype[Any], state: Any) -> None:  # noqa: ANN401
    """Take the byte order alone from a type's pickled state: numpy trusts the rest of it blindly."""
    _version, order, *parts = state
    if any(part is not None for part in parts[:3]):
        raise _RefusedError("it has an array of records")
    if order not in {"<", ">", "=", "|"}:
        raise _RefusedError(f"it has an array with the byte order {order!r:.20}")
    own: Any = dtype.__reduce__()[2]
    dtype.__setstate__((own[0], order, *own[2:]))  # type: ignore[attr-defined]  # numpy's, not described


def _make_dtype(name: str, *_options: object) -> np.dtype[Any]:
    """A type of its own, so that giving it a byte order changes no other."""
    return _plain(np.dtype(str(name), copy=True))


def _make_array(_kind: object, _shape: object, _code: object) -> Any:  # noqa: ANN401
    return np.zeros(0, np.int8)


def _make_filled(
    content: bytes, dtype: object, shape: tuple[int, ...], order: str, axes: tuple[int, ...] | None = None
) -> Any:  # noqa: ANN401
    values = np.frombuffer(bytes(content), _plain(dtype))
    if axes is not None:
        return values.reshape(shape).transpose(axes).copy()
    return values.reshape(shape, order="F" if order == "F" else "C").copy()


def _make_scalar(dtype: object, content: bytes) -> Any:  # noqa: ANN401
    return np.frombuffer(content, _plain(dtype))[0]


def _make_bytes(text: str, _encoding: str = "latin1") -> bytes:
    return text.encode("latin1")


def _make_empty() -> bytes:
    return b""


_ADMITTED: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _make_dtype,
    ("numpy.core.multiarray", "_reconstruct"): _make_array,
    ("numpy._core.multiarray", "_reconstruct"): _make_array,
    ("numpy.core.multiarray", "scalar"): _make_scalar,
    ("numpy._core.multiarray", "scalar"): _make_scalar,
    ("numpy.core.numeric", "_frombuffer"): _make_filled,
    ("numpy._core.numeric", "_frombuffer"): _make_filled,
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): _JoblibArray,
    ("collections", "OrderedDict"): dict,
    ("_codecs", "encode"): _make_bytes,
    ("__builtin__", "bytes"): _make_empty,
}


def _decompressed(content: bytes) -> bytes:
    if content.startswith((b"\x78", b"\x1f\x8b")):
        packer = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        plain = packer.decompress(content, LARGEST_BYTES)
        done = packer.eof
    elif content.startswith(b"BZ"):
        plain, done = _limited(bz2.BZ2Decompressor(), content)
    elif content.startswith((b"\xfd7z", b"\x5d\x00")):
        plain, done = _limited(lzma.LZMADecompressor(), content)
    elif content.startswith(b"\x04\x22\x4d\x18"):
        raise _RefusedError("it is compressed with lz4, which needs another package")
    else:
        return content
    if not done:
        raise _RefusedError(f"its compressed content is damaged or larger than {LARGEST_BYTES} bytes")
    return plain


def _limited(packer: bz2.BZ2Decompressor | lzma.LZMADecompressor, content: bytes) -> tuple[bytes, bool]:
    return packer.decompress(content, LARGEST_BYTES), packer.eof
