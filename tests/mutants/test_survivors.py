"""The list of survivors stays true: what it quotes still stands in the code."""

from pathlib import Path

import pytest

from onboard.safety.table import with_table
from tests.mutants.survivors import BEGIN, END, Argued, load_argued, survivor_table
from tests.mutants.targets import TARGETS, Target

ROOT = Path(__file__).parents[2]
ARGUED = load_argued()


@pytest.mark.parametrize("one", ARGUED, ids=lambda one: f"{one.path}: {one.now}")
def test_a_survivor_quotes_a_line_that_is_there_and_says_why(one: Argued) -> None:
    lines = [line.strip() for line in (ROOT / one.path).read_text(encoding="utf-8").splitlines()]
    assert one.was in lines, "the code has changed; look at the survivors again: make mutants"
    assert one.now != one.was
    assert one.why
    assert one.path in {target.path for target in TARGETS}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.path))
def test_targets_and_their_tests_exist(target: Target) -> None:
    assert all((ROOT / path).is_file() for path in (target.path, *target.tests))


def test_the_page_shows_the_list() -> None:
    text = (ROOT / "docs" / "mutation.md").read_text(encoding="utf-8")
    table = survivor_table(ARGUED)
    assert with_table(text, table, BEGIN, END) == text, (
        "run: python -m tests.mutants.survivors docs/mutation.md"
    )
