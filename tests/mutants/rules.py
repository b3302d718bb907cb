"""Which mutants are left out of the count, by rule; each would say nothing about the tests.

- It lies in a type annotation: nothing reads those at run time.
- It lies in a string: a docstring, or the wording of a message.
- It turns `is` into `==`, or `is not` into `!=`, before a member of an enumeration: the same by definition.
- It is no program: the mutated text does not compile.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

Position = tuple[int, int]
"""Line from 1, column from 0 in characters."""
Span = tuple[Position, Position]


class Ruled(NamedTuple):
    """Places of a file whose mutants are left out."""

    unread: list[Span]
    """Annotations and strings."""
    identities: list[Span]
    """From the end of what is compared to the member that it is compared with."""


def ruled_places(source: str) -> Ruled:
    """Look for them."""
    lines = [line.encode() for line in source.splitlines()]

    def place(line: int | None, column: int | None) -> Position:
        assert line is not None
        return line, len(lines[line - 1][:column].decode())

    tree = ast.parse(source)
    return Ruled(
        [
            (place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset))
            for node in _unread(tree)
        ],
        [
            (place(left.end_lineno, left.end_col_offset), place(right.lineno, right.col_offset))
            for left, right in _identities(tree)
        ],
    )


def _unread(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        ):
            yield node
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns


def _identities(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Both sides of every `x is Enumeration.MEMBER`."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Attribute() as right]):
                if right.attr.isupper():
                    yield left, right


def why_left_out(start: Position, end: Position, operator: str, ruled: Ruled) -> str | None:
    """Why a mutant does not count, by its place and cosmic-ray's name of the change; None where it does."""
    if any(low <= start and end <= high for low, high in ruled.unread):
        return "in an annotation or a string"
    to_equality = operator.endswith(("_Is_Eq", "_IsNot_NotEq"))
    if to_equality and any(low <= start and end <= high for low, high in ruled.identities):
        return "a member of an enumeration is and equals the same"
    return None
