"""What the timing checks say about figures, and that they measure."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onboard.configs.errors import OnboardError
from onboard.policies.policy import Policy
from onboard.runtime.preflight import timing
from onboard.runtime.preflight.report import Check, Verdict, passed, run_checks
from onboard.runtime.preflight.timing import (
    TimingChecks,
    added_threads,
    dry_loop,
    judge_disk,
    judge_inference,
    judge_loop,
    judge_threads,
    look_at_governor,
    sustained_times_ms,
    sync_times_ms,
)
from tests.disks import UnavailableError, ext4
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
    fast, need = np.full(32, 20.0), 0.3e6
    assert judge_disk(np.full(20, 3.0), fast, need).verdict is Verdict.PASS
    assert judge_disk(np.r_[np.full(19, 3.0), 150.0], fast, need).verdict is Verdict.WARN
    assert judge_disk(np.r_[np.full(19, 3.0), 900.0], fast, need).verdict is Verdict.FAIL
    assert judge_disk(np.full(20, 200.0), fast, need).verdict is Verdict.FAIL
    assert judge_disk(np.full(20, 3.0), np.full(3, 1000.0) / 1.4, need).verdict is Verdict.WARN
    assert judge_disk(np.full(20, 3.0), np.full(1, 4000.0), need).verdict is Verdict.FAIL


def test_a_disk_that_hangs_again_and_again_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "DISK_BUDGET_S", 1.0)
    try:
        with ext4(tmp_path / "disk", tmp_path / "image", mib=96) as disk:
            healthy = judge_disk(sync_times_ms(disk.folder), sustained_times_ms(disk.folder), 0.3e6)
            with disk.slow(1.0, breath_s=0.005):
                finding = judge_disk(sync_times_ms(disk.folder), sustained_times_ms(disk.folder), 0.3e6)
    except UnavailableError as error:
        pytest.skip(str(error))
    assert healthy.values["sync_max_ms"] < 800 < finding.values["sync_max_ms"]
    assert finding.verdict is Verdict.FAIL, finding


THROTTLED = """
import os, sys
from pathlib import Path
Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
from onboard.runtime.preflight.timing import judge_disk, sustained_times_ms, sync_times_ms
folder = Path(sys.argv[2])
finding = judge_disk(sync_times_ms(folder), sustained_times_ms(folder), 0.3e6)
print(finding.verdict.name, finding.values["sustained_mb_s"])
"""


@pytest.mark.slow
def test_a_disk_that_the_kernel_throttles_is_found(tmp_path: Path) -> None:
    """The kernel itself lets this process write 200 kB a second to the disk under the folder."""
    number = tmp_path.stat().st_dev
    group = Path(f"/sys/fs/cgroup/blkio/onboard_{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no blkio control group can be made here ({error.strerror})")
    try:
        limit = f"{os.major(number)}:{os.minor(number)} 200000"
        try:
            (group / "blkio.throttle.write_bps_device").write_text(limit)
        except OSError as error:
            pytest.skip(f"this disk can't be throttled ({error.strerror})")
        command = [sys.executable, "-c", THROTTLED, str(group), str(tmp_path)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.split()
    finally:
        group.rmdir()
    assert told[0] == "FAIL"
    assert float(told[1]) < 0.3


def test_inference_adds_no_thread() -> None:
    policy = Policy(plan().bundle, plan().robot)
    assert judge_threads(added_threads(policy)).verdict is Verdict.PASS
    assert judge_threads(3).verdict is Verdict.WARN


def test_the_disk_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    times = sync_times_ms(tmp_path / "not" / "yet")
    assert (times > 0).all()
    assert (sustained_times_ms(tmp_path / "not" / "yet") > 0).all()
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
        checks = TimingChecks(policy, PERIOD_NS, 0.1, tmp_path, 250e3, minutes).checks()
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
