"""Sets of hours: memory must not grow with them. `python -m benchmarks.rollouts` tells the speed."""

from pathlib import Path

import pytest

from benchmarks.rollouts import measure, write


@pytest.mark.slow
def test_memory_of_a_pass_does_not_grow_with_the_set(tmp_path: Path) -> None:
    paths = write(tmp_path, files=4, rows=100_000)
    short, long = (measure(paths[:count], history=10, seed=0) for count in (1, 4))
    assert long["rows"] > 3.9 * short["rows"]
    assert long["peak_mb"] - short["peak_mb"] < 30, "400 000 rows of 2 kB are 800 MB"
    assert long["peak_mb"] - long["index_mb"] < 250
