"""Constants in an ONNX file's graph: nodes, and the tensors that they name."""

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError
from onboard.configs.untrusted import inside, read_whole
from onboard.policies.onnx_parts import EXTERNAL, Message, entry, fields, nested, text

Floats = NDArray[np.float64]

_GRAPH = 7
_NODE, _INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_TENSOR = 5
_TYPE, _FLOATS, _NAME, _RAW, _DOUBLES = 2, 4, 8, 9, 10
_TYPES: dict[int | bytes, str] = {1: "<f4", 10: "<f2", 11: "<f8"}

LARGEST = 100_000
"""Tensors of more numbers are no statistics of an observation and are not read."""

DEEPEST = 8
"""Operations between a constant and where it is used."""

_SHAPELESS = ("Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten")


class Node(NamedTuple):
    """One operation of a graph; `tensor` is the value of a constant."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensor: Message


class WeightReader:
    """Nodes and constants of one ONNX file."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            PolicyError: it can't be read as ONNX.
        """
        self._path = path
        try:
            (graph,) = nested(read_whole(path), _GRAPH)
            self.nodes = [_node(node) for node in nested(graph, _NODE)]
            self._tensors = {text(tensor, _NAME): tensor for tensor in nested(graph, _INITIALIZER)}
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
        try:
            return self._constant(name, 0)
        except (OSError, IndexError, ValueError):  # a tensor that says something else than it holds
            return None

    def _constant(self, name: str, level: int) -> Floats | None:
        if name in self._tensors:
            return self._tensor(self._tensors[name])
        node = self._makers.get(name)
        if node is None or level == DEEPEST:
            return None
        if node.op == "Constant":
            return self._tensor(node.tensor)
        operands = [self._constant(operand, level + 1) for operand in node.inputs[:2]]
        if not operands or operands[0] is None:
            return None
        if node.op in _SHAPELESS:
            return operands[0]
        if node.op == "Sqrt":
            return np.sqrt(operands[0])
        if node.op == "Add" and len(operands) == 2 and operands[1] is not None:
            return operands[0] + operands[1]
        return None

    def _tensor(self, tensor: Message) -> Floats | None:
        """Numbers of a tensor, flat; None for other types and for what is too large."""
        kind = next((value for number, value in fields(tensor) if number == _TYPE), None)
        packed = {name: b"".join(nested(tensor, name)) for name in (_RAW, _FLOATS, _DOUBLES)}
        external = dict(entry(value) for value in nested(tensor, EXTERNAL))
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
        """Bytes in the file of weights beside the model."""
        length = int(entry.get("length", 0))
        if not 0 < length <= LARGEST * 8:
            return b""
        with inside(self._path.parent, entry.get("location", ""), self._path.name).open("rb") as file:
            file.seek(int(entry.get("offset", 0)))
            return file.read(length)


def _node(message: Message) -> Node:
    attributes = nested(message, _NODE_ATTRIBUTE)
    tensors = [tensor for attribute in attributes for tensor in nested(attribute, _ATTRIBUTE_TENSOR)]
    return Node(
        op=text(message, _NODE_OP),
        inputs=tuple(bytes(name).decode() for name in nested(message, _NODE_INPUT)),
        outputs=tuple(bytes(name).decode() for name in nested(message, _NODE_OUTPUT)),
        tensor=tensors[0] if tensors else b"",
    )
