import pytest

from tests.mutants.rules import is_program, is_unread, unread_spans

SOURCE = '''"""Adds 1 to a."""

def add(a: int | None, *, step: float = 1.5) -> "float | None":
    """One more: a | b."""
    total: int | float = a + step  # N·m
    raise ValueError(f"{total + 1} is no sum")
'''


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
    place = (line, column), (line, column + len(text))
    assert is_unread(*place, unread_spans(SOURCE)) == unread


def test_a_returned_annotation_is_not_mutated() -> None:
    column = SOURCE.splitlines()[2].rindex("|")
    assert is_unread((3, column), (3, column + 1), unread_spans(SOURCE))


def test_columns_are_counted_in_characters() -> None:
    source = 'x = "·" + y'
    assert not is_unread((1, 8), (1, 9), unread_spans(source))
    assert is_unread((1, 4), (1, 7), unread_spans(source))


@pytest.mark.parametrize(
    ("source", "good"), [(SOURCE, True), ("def f(a, /, *b): ...", True), ("x = = 1", False)]
)
def test_what_does_not_compile_is_no_mutant(source: str, good: bool) -> None:
    assert is_program(source) is good
