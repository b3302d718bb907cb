"""Memory over time: the arithmetic on made-up series, and a short walk of each kind."""

import os
from pathlib import Path

import pytest

from benchmarks.memory import Series, growth
from benchmarks.soak import plot, soak
from benchmarks.soak_runs import CHILDREN, Interrupt, course, watch
from onboard.configs.events import Mode
from onboard.logging.convert import convert
from onboard.logging.layout import blank_record, record_dtype
from onboard.runtime.ports import run_layout
from onboard.runtime.shm import Shared
from tests.logging.synthetic import WALK, journal, rows
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


class MadeUpRun:
    """A run that is over after three looks, and left a rollout of `rows` rows."""

    def __init__(self, rollout: Path, rows: int) -> None:
        self.pid = os.getpid()
        self.told: list[str] = []
        self._rollout = rollout
        self._looks = 0
        self.shared = Shared.create(run_layout(record_dtype([WALK])))
        for _ in range(rows):
            self.shared["record"].push(blank_record(record_dtype([WALK])))

    @property
    def running(self) -> bool:
        self._looks += 1
        return self._looks <= 3

    mode = Mode.POLICY

    def until_mode(self, mode: Mode) -> None:
        assert mode is Mode.POLICY

    def child(self, module: str) -> int:
        assert module in CHILDREN.values()
        return self.pid

    def tell(self, line: str) -> None:
        self.told.append(line)

    def end(self, patience_s: float) -> tuple[int, dict[str, object]]:
        self.shared.unlink()
        return 0, {
            "rollout": str(self._rollout),
            "end": "the script is over",
            "events": [],
            "skipped_ticks": 0,
        }


@pytest.mark.parametrize("missing", [0, 1])
def test_a_real_walk_is_followed_and_its_rows_are_counted(tmp_path: Path, missing: int) -> None:
    data = rows()
    run = MadeUpRun(convert(journal(tmp_path, data)), len(data) + missing)
    try:
        series, account = watch(run, run, 0.1, run.tell, Interrupt())  # type: ignore[arg-type]
    finally:
        run.shared.unlink()
        run.shared.close()
    assert set(series) == {"parent", "simulator", *CHILDREN}
    assert all(len(each.rss) == 3 and min(each.rss) > MB for each in series.values())
    assert account["whole"] is (missing == 0)
    assert account["walked_through"]
    assert run.told[0] == "gantry release"


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
