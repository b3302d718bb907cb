"""Strategies that spoil valid examples: trees of plain data, and bytes.

A mutation is plain data (what, where, with what), so that the same seed makes the same case.
"""

import contextlib
import copy
import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from hypothesis import strategies as st

Files = dict[str, bytes]
"""One case: what lies in its folder, by relative path."""

Strategy = st.SearchStrategy[Files]
Spoil = tuple[str, int, int]
"""Name of a mutation, and two numbers that choose the place and the value."""

PLANTED = "PLANTED"
"""File that no case may bring into being: what code inside an input would make."""

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 29, 2**31, -(2**31), 2**63, 2**64, -(2**70), 10**400),
    *(0.0, -0.0, 0.5, 1e-320, 1e30, 1e308, math.inf, -math.inf, math.nan),
    *("", "a", ".", "..", "*", "nan", "obs", "policy", "29", "left_knee_joint", "policy.actions"),
    *("/etc/passwd", "../../../etc/passwd", "/dev/zero", "x/../../y", "policy.onnx/", "a" * 5000),
    *("\x1b[2J\x1b[31mred", "two\nlines", "tab\t", "ä\u2028\u202e", "{}", "%s", "$(touch PLANTED)", "\x00"),
    *([], {}, [[]], {"": 0}, [None], ["a"] * 200, [0.0] * 2000, [[0.0, 1.0]] * 30, {"a": {"b": {"c": 1}}}),
    *(b"bytes", datetime.date(2026, 1, 1), {1: 2}, {None: None}),
)
"""Values that no example has, or not in that place."""

TEXTS: tuple[bytes, ...] = (
    b"!!python/object/apply:os.system ['touch PLANTED']",
    b"!!python/object/new:subprocess.Popen [['touch', 'PLANTED']]",
    b"!!python/name:os.system",
    b"!!python/tuple [1, 2]",
    b"!!python/object/apply:builtins.slice [null, null, null]",
    *(
        b"!!timestamp x",
        b"!!bool x",
        b"!!int ''",
        b"!!float ''",
        b"!!map [a]",
        b"!!set [a]",
        b"!!omap [{a: 1}]",
    ),
    *(
        b"&a [*a]",
        b"&a {b: *a}",
        b"<<: *a",
        b"<<: {a: 1}",
        b"? [1, 2]\n: 3",
        b"--- ",
        b"...",
        b"%YAML 9.9\n---",
    ),
    *(b"*a", b"&a", b"[" * 3000, b"{a: " * 3000, b"\t", b"\xff\xfe", b"\x00", b"\xef\xbb\xbf", b"2026-99-99"),
    b"0x" + b"f" * 6000,
    b"9" * 6000,
    b"1:2:3",
    b"[&a [x,x,x,x,x,x,x,x,x,x], &b ["
    + b"*a," * 10
    + b"], &c ["
    + b"*b," * 10
    + b"], &d ["
    + b"*c," * 10
    + b"], &e ["
    + b"*d," * 10
    + b"], &f ["
    + b"*e," * 10
    + b"], &g ["
    + b"*f," * 10
    + b"], &h ["
    + b"*g," * 10
    + b"], &i ["
    + b"*h," * 10
    + b"], ["
    + b"*i," * 10
    + b"]]",
)
"""Pieces of YAML and text that mean something special."""


def trees(example: Any) -> st.SearchStrategy[Any]:
    """The example with up to four places changed, sometimes with none."""
    return st.lists(_tree_spoil, max_size=4).map(lambda spoils: spoil_tree(example, spoils))


def spoil_tree(example: Any, spoils: Sequence[Spoil]) -> Any:
    """Apply mutations to a copy."""
    root = [copy.deepcopy(example)]
    for name, place, value in spoils:
        holders = list(_places(root))
        holder, key = holders[place % len(holders)]
        with contextlib.suppress(OverflowError):  # what can't be done here is left out
            _TREE_SPOILS[name](holder, key, value, root)
    return root[0]


def yaml_texts(*examples: Any) -> st.SearchStrategy[bytes]:
    """YAML of spoiled examples, and spoiled text of whole ones."""
    texts = [yaml.dump(example, Dumper=yaml.CSafeDumper, sort_keys=False).encode() for example in examples]
    spoiled = st.one_of([trees(example).map(_dump) for example in examples])
    return st.one_of(spoiled, spoiled, blobs(*texts, pieces=TEXTS))


def blobs(*examples: bytes, pieces: Sequence[bytes] = (b"",)) -> st.SearchStrategy[bytes]:
    """Bytes of an example changed in up to five places; now and then bytes of no example at all."""
    spoiled = st.tuples(st.sampled_from(examples), st.lists(_byte_spoil, max_size=5)).map(
        lambda drawn: spoil_bytes(drawn[0], drawn[1], pieces)
    )
    return st.integers(0, 19).flatmap(lambda n: st.binary(max_size=200) if n == 0 else spoiled)


def spoil_bytes(example: bytes, spoils: Sequence[Spoil], pieces: Sequence[bytes]) -> bytes:
    """Apply mutations to a copy."""
    content = bytearray(example)
    for name, place, value in spoils:
        at = place % (len(content) + 1)
        _BYTE_SPOILS[name](content, at, value, pieces)
    return bytes(content)


def folder(whole: Mapping[str, bytes], **spoiled: st.SearchStrategy[bytes]) -> Strategy:
    """Whole files, and some that are drawn; `__` in a name stands for `.`."""
    drawn = st.fixed_dictionaries({name.replace("__", "."): strategy for name, strategy in spoiled.items()})
    return drawn.map(lambda files: {**whole, **files})


def _dump(data: Any) -> bytes:
    return str(yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False)).encode("utf-8", "replace")


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    """Every holder and key of a tree, the root's own first; of a long list its ends and a middle."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            keys: list[Any] = list(node)
        else:
            keys = sorted({0, 1, len(node) // 2, len(node) - 1} & set(range(len(node))))
        found += [(node, key) for key in keys]
        waiting += [node[key] for key in keys if isinstance(node[key], dict | list)]
    return found


def _replace(holder: Any, key: Any, value: int, _root: list[Any]) -> None:
    holder[key] = copy.deepcopy(ODD[value % len(ODD)])


def _near(holder: Any, key: Any, value: int, _root: list[Any]) -> None:
    """Another value of the same kind."""
    found = holder[key]
    if isinstance(found, bool):
        holder[key] = not found
    elif isinstance(found, int | float):
        holder[key] = found * (0, -1, 0.5, 2, 1000, 1e9, 1.0)[value % 7]
    elif isinstance(found, str):
        holder[key] = (found + "x", found[:-1], found.upper(), found[:1000] * 40, f"../{found}")[value % 5]
    elif isinstance(found, list):
        holder[key] = (found[:-1], found * 2, found[::-1], found[:1], [*found, None])[value % 5]
    elif isinstance(found, dict) and found:
        holder[key] = dict(list(found.items())[:: -1 if value % 2 else 2])


def _remove(holder: Any, key: Any, _value: int, root: list[Any]) -> None:
    if holder is not root:
        del holder[key]


def _rename(holder: Any, key: Any, value: int, _root: list[Any]) -> None:
    if isinstance(holder, dict):
        names = [name for name in ODD if isinstance(name, str | int) or name is None]
        holder[names[value % len(names)]] = holder.pop(key)


def _graft(holder: Any, key: Any, value: int, root: list[Any]) -> None:
    """Another part of the tree in this place."""
    others = _places(root)
    other, its_key = others[value % len(others)]
    holder[key] = copy.deepcopy(other[its_key])


def _wrap(holder: Any, key: Any, value: int, _root: list[Any]) -> None:
    node = holder[key]
    for _ in range((1, 2, 80)[value % 3]):
        node = [node] if value % 2 else {"a": node}
    holder[key] = node


_TREE_SPOILS: dict[str, Callable[[Any, Any, int, list[Any]], None]] = {
    "replace": _replace,
    "near": _near,
    "remove": _remove,
    "rename": _rename,
    "graft": _graft,
    "wrap": _wrap,
}
_PLACE = st.integers(0, 2**20)
_tree_spoil = st.tuples(st.sampled_from(["near", *_TREE_SPOILS]), _PLACE, _PLACE)


def _flip(content: bytearray, at: int, value: int, _pieces: Sequence[bytes]) -> None:
    if at < len(content):
        content[at] ^= 1 << value % 8


def _overwrite(content: bytearray, at: int, value: int, _pieces: Sequence[bytes]) -> None:
    """A number of 1, 2, 4 or 8 bytes that lies at an edge."""
    width = 1 << value % 4
    edge = (0, 1, 0x7F, 0x80, 0xFF, (1 << 8 * width) - 1, 1 << 8 * width - 1, value)[value // 4 % 8]
    content[at : at + width] = (edge % (1 << 8 * width)).to_bytes(width, "little")


def _cut(content: bytearray, at: int, _value: int, _pieces: Sequence[bytes]) -> None:
    del content[at:]


def _take_out(content: bytearray, at: int, value: int, _pieces: Sequence[bytes]) -> None:
    del content[at : at + 1 + value % 64]


def _double(content: bytearray, at: int, value: int, _pieces: Sequence[bytes]) -> None:
    content[at:at] = content[at : at + 1 + value % 512]


def _insert(content: bytearray, at: int, value: int, pieces: Sequence[bytes]) -> None:
    content[at:at] = pieces[value % len(pieces)]


_BYTE_SPOILS: dict[str, Callable[[bytearray, int, int, Sequence[bytes]], None]] = {
    "flip": _flip,
    "overwrite": _overwrite,
    "cut": _cut,
    "take out": _take_out,
    "double": _double,
    "insert": _insert,
}
_byte_spoil = st.tuples(st.sampled_from(["flip", "overwrite", "overwrite", *_BYTE_SPOILS]), _PLACE, _PLACE)
