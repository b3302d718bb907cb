"""What the timing checks say about figures, and that they measure."""

from pathlib import Path

import numpy as np
import pytest

from onboard.configs.errors import OnboardError
from onboard.policies.policy import Policy
from onboard.runtime.preflight.report import Check, Verdict, passed, run_checks
from onboard.runtime.preflight.timing import (
    TimingChecks,
    dry_loop,
    judge_disk,
    judge_inference,
    judge_loop,
    look_at_governor,
    sync_times_ms,
)
from tests.runtime.flight import plan

PERIOD_NS = 20_000_000


@pytest.mark.parametrize(
    ("late_ms", "verdict"),
    [
        (np.full(500, 0.1), Verdict.PASS),
        (np.r_[np.full(499, 0.1), 12.0], Verdict.WARN),
        (np.full(500, 3.0), Verdict.WARN),
        (np.full(500, 11.0), Verdict.FAIL),
        (np.r_[np.full(498, 0.1), 25.0, 25.0], Verdict.FAIL),
    ],
)
def test_a_late_loop(late_ms: np.ndarray, verdict: Verdict) -> None:
    assert judge_loop(late_ms, PERIOD_NS).verdict is verdict


@pytest.mark.parametrize(
    ("cost_ms", "verdict"), [(0.5, Verdict.PASS), (6.0, Verdict.WARN), (16.0, Verdict.FAIL)]
)
def test_a_slow_policy(cost_ms: float, verdict: Verdict) -> None:
    assert judge_inference(np.full(100, cost_ms), PERIOD_NS).verdict is verdict


def test_a_slow_disk_is_found() -> None:
    assert judge_disk(np.full(20, 3.0)).verdict is Verdict.PASS
    assert judge_disk(np.r_[np.full(19, 3.0), 150.0]).verdict is Verdict.WARN
    assert judge_disk(np.full(20, 200.0)).verdict is Verdict.FAIL


def test_the_disk_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    times = sync_times_ms(tmp_path / "not" / "yet")
    assert (times > 0).all()
    assert not list(tmp_path.iterdir())


def test_a_disk_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(OnboardError, match="--out /proc/none: can't be written"):
        sync_times_ms(Path("/proc/none"))


def test_governors(tmp_path: Path) -> None:
    assert look_at_governor(tmp_path).verdict is Verdict.PASS
    for core, name in enumerate(("performance", "powersave")):
        folder = tmp_path / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{name}\n")
    finding = look_at_governor(tmp_path)
    assert (finding.verdict, finding.measured) == (Verdict.WARN, "performance, powersave")


def test_the_dry_loop_measures_and_leaves_no_trace() -> None:
    policy = Policy(plan().bundle, plan().robot)
    late_ms, cost_ms = dry_loop(policy, PERIOD_NS, 0.2)
    assert late_ms.shape == cost_ms.shape == (10,)
    assert (cost_ms > 0).all()


def test_space_for_a_long_run_is_asked_for(tmp_path: Path) -> None:
    policy = Policy(plan().bundle, plan().robot)

    def space(minutes: float) -> Verdict:
        checks = TimingChecks(policy, PERIOD_NS, 0.1, tmp_path, 5000, minutes).checks()
        return next(check for check in checks if check.name == "disk_space").look().verdict

    assert space(0.1) is not Verdict.FAIL
    assert space(1e9) is Verdict.FAIL


def test_a_check_that_cannot_measure_has_failed_and_the_next_goes_on() -> None:
    def broken() -> None:
        raise OnboardError("no cable")

    rows = list(run_checks([Check("a", "b", broken), Check("a", "c", lambda: passed("fine"))]))  # type: ignore[arg-type]
    assert [(row.name, row.finding.verdict, row.finding.measured) for row in rows] == [
        ("a.b", Verdict.FAIL, "no cable"),
        ("a.c", Verdict.PASS, "fine"),
    ]
