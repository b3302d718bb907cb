"""A few cases of every kind, always the same; `make fuzz` runs as many as wanted."""

import pytest

from tests.fuzz.kinds import KINDS
from tests.fuzz.runner import Result, fuzz

CASES = 6
SEED = 20_260_000


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """One worker process for all kinds."""
    rows = fuzz(dict.fromkeys(KINDS, CASES), SEED, tmp_path_factory.mktemp("failures"))
    return {row.kind: row for row in rows}


@pytest.mark.parametrize("name", KINDS)
def test_spoiled_and_hostile_input_ends_in_success_or_one_clear_line(
    results: dict[str, Result], name: str
) -> None:
    row = results[name]
    assert [failure.wrong for failure in row.failures] == []
    assert (row.cases, row.refused + row.accepted) == (CASES, CASES)
