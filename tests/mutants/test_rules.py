import pytest

from tests.mutants.rules import ruled_places, why_left_out

SOURCE = '''"""Adds 1 to a."""

def add(a: int | None, *, step: float = 1.5) -> "float | None":
    """One more: a | b."""
    total: int | float = a + step  # N·m
    raise ValueError(f"{total + 1} is no sum")
'''


def left_out(source: str, line: int, column: int, size: int = 1, operator: str = "core/Any") -> bool:
    place = (line, column), (line, column + size)
    return why_left_out(*place, operator, ruled_places(source)) is not None


@pytest.mark.parametrize(
    ("line", "text", "unread"),
    [
        (1, "1", True),  # docstring
        (3, "|", True),  # annotation of an argument
        (3, "1.5", False),  # its default
        (4, "|", True),  # docstring of a function
        (5, "|", True),  # annotation of a name
        (5, "+", False),
        (6, "+", True),  # wording of a message
    ],
)
def test_only_what_runs_is_mutated(line: int, text: str, unread: bool) -> None:
    column = SOURCE.splitlines()[line - 1].index(text)
    assert left_out(SOURCE, line, column, len(text)) == unread


def test_a_returned_annotation_is_not_mutated() -> None:
    column = SOURCE.splitlines()[2].rindex("|")
    assert left_out(SOURCE, 3, column)


def test_columns_are_counted_in_characters() -> None:
    source = 'x = "·" + y'
    assert not left_out(source, 1, 8)
    assert left_out(source, 1, 4, 3)


@pytest.mark.parametrize(
    ("source", "operator", "out"),
    [
        ("mode is Mode.RAMP", "Is_Eq", True),
        ("mode is not Mode.RAMP", "IsNot_NotEq", True),
        ("mode is Mode.RAMP", "Is_LtE", False),
        ("target is None", "Is_Eq", False),  # an array equals nothing in one word
        ("kind == Kind.STOP", "Eq_Is", False),  # a number is no member
    ],
)
def test_identity_and_equality_of_a_member_are_the_same(source: str, operator: str, out: bool) -> None:
    column = source.index("is" if "is" in source else "==")
    assert left_out(source, 1, column, 2, f"core/ReplaceComparisonOperator_{operator}") == out
