"""Memory over time: the arithmetic on made-up series, and a short walk of each kind."""

from pathlib import Path

import pytest

from benchmarks.memory import Series, growth
from benchmarks.soak import plot, soak
from benchmarks.soak_runs import course
from tests.runtime.flight import plan

MB = 1_000_000


def series(rss: list[int], files: list[int] | None = None) -> Series:
    return Series(1, [10.0 * k for k in range(len(rss))], rss, files or [9] * len(rss))


def test_what_grows_before_the_warm_up_does_not_count() -> None:
    found = growth(series([50 * MB, 80 * MB, 90 * MB, 95 * MB, 99 * MB, 100 * MB] + [100 * MB] * 60))
    assert (found["growth_percent"], found["ok"]) == (0.0, True)
    assert found["warm_up_s"] == 65.0


@pytest.mark.parametrize(("per_sample", "ok"), [(10_000, True), (30_000, False), (-30_000, True)])
def test_a_percent_is_too_much(per_sample: int, ok: bool) -> None:
    assert growth(series([100 * MB + per_sample * k for k in range(60)]))["ok"] is ok


def test_a_descriptor_more_is_a_leak() -> None:
    assert not growth(series([100 * MB] * 60, [9] * 50 + [10] * 10))["ok"]


def test_a_process_that_was_hardly_seen_is_not_judged() -> None:
    with pytest.raises(ValueError, match="was seen 3 times only"):
        growth(series([MB] * 3))


def test_a_look_at_a_process_that_is_gone_is_no_sample() -> None:
    nobody = Series(4_194_304)
    nobody.sample(1.0)
    assert nobody.seconds == []


@pytest.mark.parametrize("seconds", [5.0, 60.0, 7200.0])
def test_the_course_is_as_long_as_it_was_asked_for(seconds: float) -> None:
    assert sum(step.for_s for step in course(seconds).steps) == pytest.approx(seconds)


@pytest.mark.slow
def test_nothing_grows_on_a_short_walk(tmp_path: Path) -> None:
    plan()  # skips where the policy is not installed
    said: list[str] = []
    result, everyone = soak(240.0, 120.0, said.append)
    assert set(everyone) == {"lock-step", "parent", "control", "gateway", "recorder", "simulator"}
    for walk in result.values():
        assert walk["whole"]
        assert walk["walked_through"]
        assert walk["rows"] == walk["handed_over"] > 0
        for process, row in walk["processes"].items():
            assert row["files_end"] <= row["files"], process
            assert row["growth_percent"] < 2.0, process  # twice the bound of the long walk
    plot(everyone, tmp_path / "memory.png")
    assert (tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG")
