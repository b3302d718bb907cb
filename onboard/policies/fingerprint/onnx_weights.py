"""Just enough of ONNX's file format to find constants in a graph: nodes, and the tensors that they name.

ONNX Runtime runs graphs and does not show their weights, and the `onnx` package is not needed to run a
policy. A file is nested protobuf messages; the numbers below are the fields of `onnx.proto`.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError

Floats = NDArray[np.float64]

_GRAPH = 7
_NODE, _INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_TENSOR = 5
_TYPE, _FLOATS, _NAME, _RAW, _DOUBLES, _EXTERNAL = 2, 4, 8, 9, 10, 13
_TYPES: dict[int | bytes, str] = {1: "<f4", 10: "<f2", 11: "<f8"}

LARGEST = 100_000
"""Tensors of more numbers are no statistics of an observation and are not read."""

_SHAPELESS = ("Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten")


class Node(NamedTuple):
    """One operation of a graph; `tensor` is the value of a constant."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensor: bytes


class WeightReader:
    """Nodes and constants of one ONNX file."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            PolicyError: it can't be read as ONNX.
        """
        self._path = path
        try:
            (graph,) = _nested(path.read_bytes(), _GRAPH)
            self.nodes = [_node(node) for node in _nested(graph, _NODE)]
            self._tensors = {_text(tensor, _NAME): tensor for tensor in _nested(graph, _INITIALIZER)}
        except (OSError, IndexError, ValueError) as error:
            raise PolicyError(f"{path}: can't be read as an ONNX file ({error})") from error

    @cached_property
    def _makers(self) -> dict[str, Node]:
        return {output: node for node in self.nodes for output in node.outputs}

    def readers(self, name: str) -> list[Node]:
        """Nodes that read a value."""
        return [node for node in self.nodes if name in node.inputs]

    def constant(self, name: str) -> Floats | None:
        """A value that does not depend on the inputs, flat; None where it does or is of no use here."""
        if name in self._tensors:
            return self._tensor(self._tensors[name])
        node = self._makers.get(name)
        if node is None:
            return None
        if node.op == "Constant":
            return self._tensor(node.tensor)
        operands = [self.constant(operand) for operand in node.inputs]
        if not operands or operands[0] is None:
            return None
        if node.op in _SHAPELESS:
            return operands[0]
        if node.op == "Sqrt":
            return np.sqrt(operands[0])
        if node.op == "Add" and operands[1] is not None:
            return operands[0] + operands[1]
        return None

    def _tensor(self, tensor: bytes) -> Floats | None:
        """Numbers of a tensor, flat; None for other types and for what is too large."""
        kind = next((value for number, value in _fields(tensor) if number == _TYPE), None)
        packed = {name: b"".join(_nested(tensor, name)) for name in (_RAW, _FLOATS, _DOUBLES)}
        external = dict(_entry(entry) for entry in _nested(tensor, _EXTERNAL))
        if external:
            packed[_RAW] = self._external(external)
        if kind not in _TYPES:
            return None
        dtype = np.dtype(_TYPES[int(kind)])
        raw = next(part for part in packed.values() if part) if any(packed.values()) else b""
        if len(raw) > LARGEST * dtype.itemsize or len(raw) % dtype.itemsize:
            return None
        return np.frombuffer(raw, dtype).astype(np.float64)

    def _external(self, entry: dict[str, str]) -> bytes:
        """Bytes in the file of weights beside the model, whose place was checked when it was loaded."""
        length = int(entry.get("length", 0))
        if not 0 < length <= LARGEST * 8:
            return b""
        with (self._path.parent / entry["location"]).open("rb") as file:
            file.seek(int(entry.get("offset", 0)))
            return file.read(length)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of every field: an integer, or bytes of a nested message, text or packed numbers."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise IndexError(f"unknown kind {kind} of field {number}")
        if at + size > len(message):
            raise IndexError("the file ends too early")
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _nested(message: bytes, number: int) -> list[bytes]:
    """Values of a field that are no plain integers."""
    return [value for found, value in _fields(message) if found == number and isinstance(value, bytes)]


def _node(message: bytes) -> Node:
    attributes = _nested(message, _NODE_ATTRIBUTE)
    tensors = [tensor for attribute in attributes for tensor in _nested(attribute, _ATTRIBUTE_TENSOR)]
    return Node(
        op=_text(message, _NODE_OP),
        inputs=tuple(name.decode() for name in _nested(message, _NODE_INPUT)),
        outputs=tuple(name.decode() for name in _nested(message, _NODE_OUTPUT)),
        tensor=tensors[0] if tensors else b"",
    )


def _text(message: bytes, number: int) -> str:
    return next((text.decode() for text in _nested(message, number)), "")


def _entry(message: bytes) -> tuple[str, str]:
    return _text(message, 1), _text(message, 2)
