"""A power cut costs at most a second, on a real file system that loses its power."""

from pathlib import Path

import pytest

from benchmarks.power_cut import MOMENTS, Cut, cut, figures
from tests.disks import UnavailableError


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "seconds"), [("start", 0.1), ("run", 1.7), ("run", 4.3), ("close", 0.05)])
def test_at_most_a_second_is_lost(tmp_path: Path, moment: str, seconds: float) -> None:
    try:
        found = cut(tmp_path, moment, seconds)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert not found.wrong
    assert found.handed_over > 0
    if moment != "start":
        assert found.rows > 0


def test_figures_by_moment() -> None:
    cuts = [Cut("run", 100, 95, 0.1, ""), Cut("run", 100, 20, 1.6, "more"), Cut("close", 50, 50, 0.0, "")]
    assert figures(cuts) == {
        "run": {"n": 2, "ok": 1, "lost_s_p50": 1.6, "lost_s_max": 1.6},
        "close": {"n": 1, "ok": 1, "lost_s_p50": 0.0, "lost_s_max": 0.0},
    }
    assert set(figures(cuts)) <= set(MOMENTS)
