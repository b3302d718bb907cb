"""Which mutants are left out of the count, by rule; each would say nothing about the tests.

- It lies in a type annotation: nothing reads those at run time.
- It lies in a string: a docstring, or the wording of a message.
- It is no program: the mutated text does not compile.
"""

import ast
import warnings
from collections.abc import Iterator

Position = tuple[int, int]
"""Line from 1, column from 0 in characters."""
Span = tuple[Position, Position]


def unread_spans(source: str) -> list[Span]:
    """Where annotations and strings stand."""
    lines = [line.encode() for line in source.splitlines()]

    def position(line: int | None, column: int | None) -> Position:
        assert line is not None
        return line, len(lines[line - 1][:column].decode())

    return [
        (position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset))
        for node in _unread(ast.parse(source))
    ]


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


def is_unread(start: Position, end: Position, unread: list[Span]) -> bool:
    """True when the mutated place lies in one of the spans."""
    return any(low <= start and end <= high for low, high in unread)


def is_program(source: str) -> bool:
    """True when the text compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "is" with a literal
            compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
