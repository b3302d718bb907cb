"""ONNX's file format as nested protobuf messages: just enough to find parts of a file without loading it.

The numbers are the fields of `onnx.proto`. ONNX Runtime shows neither weights nor where they lie, and the
`onnx` package is not needed to run a policy.
"""

from collections.abc import Iterator, Mapping

Message = bytes | memoryview

EXTERNAL = 13
"""Field of a tensor: entries of key and value that say in which file its numbers lie."""
_KEY, _VALUE = 1, 2
DEEPEST = 40
"""Graphs inside the nodes of graphs; a file that nests deeper is no policy's."""

_HOLDERS: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""Messages to their fields that lead to tensors."""


def fields(message: Message) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of every field: an integer, or bytes of a nested message, text or packed numbers.

    Raises:
        IndexError: the bytes are no message.
    """
    view = memoryview(message)
    at = 0
    while at < len(view):
        key, at = _varint(view, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(view, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(view, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise IndexError(f"unknown kind {kind} of field {number}")
        if at + size > len(view):
            raise IndexError("the file ends too early")
        yield number, view[at : at + size]
        at += size


def nested(message: Message, number: int) -> list[memoryview]:
    """Values of a field that are no plain integers."""
    return [value for found, value in fields(message) if found == number and not isinstance(value, int)]


def text(message: Message, number: int) -> str:
    """First value of a text field, "" where there is none.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    return next((bytes(value).decode() for value in nested(message, number)), "")


def entry(message: Message) -> tuple[str, str]:
    """Key and value of an entry of metadata or of external data."""
    return text(message, _KEY), text(message, _VALUE)


def external_locations(model: Message) -> set[str]:
    """Files that hold tensors of a model, as it names them, wherever in it the tensors stand.

    Raises:
        IndexError, UnicodeDecodeError: the bytes are no model, or nested too deeply.
    """
    found: set[str] = set()
    level: list[tuple[str, memoryview]] = [("model", memoryview(model))]
    for _ in range(DEEPEST):
        below: list[tuple[str, memoryview]] = []
        for kind, message in level:
            leads = _HOLDERS[kind]
            for number, value in fields(message):
                if isinstance(value, int):
                    continue
                if kind == "tensor" and number == EXTERNAL:
                    key, name = entry(value)
                    found |= {name} if key == "location" else set()
                elif number in leads:
                    below.append((leads[number], value))
        if not below:
            return found
        level = below
    raise IndexError(f"graphs nested more than {DEEPEST} levels deep")


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise IndexError("a number of more than 10 bytes")
