"""Each process killed and stopped, and the disk filled, in every mode of a run on real DDS.

Checked is the order of events: nothing but damping follows, the run ends with the right code, and its rollout
has every row. How fast all that is, `make bench-gateway` and `make faults` measure.
"""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.gateway import CONTROL, GATEWAY
from onboard.configs.events import Mode
from onboard.logging.convert import convert
from onboard.logging.rollout import Rollout
from onboard.runtime.clock import wall_clock_ns
from tests.disks import UnavailableError, small_tmpfs
from tests.faults.stages import HELD_UP_S, RECORDER, SMALL_DISK_KIB, fill
from tests.runtime.real_run import RAMP, WALK, RealRun, real_run

pytestmark = pytest.mark.slow

SCRIPTS = {
    Mode.DAMP: "steps:\n  - {for_s: 60}\n",
    Mode.RAMP: RAMP,
    Mode.HOLD: "steps:\n  - {press: start, until: ramp}\n  - {until: hold, for_s: 60}\n",
    Mode.POLICY: WALK,
    Mode.LIMP: "steps:\n  - {press: limp, until: limp, for_s: 60}\n",
}
IN_EVERY_MODE = pytest.mark.parametrize("mode", SCRIPTS, ids=[mode.name.lower() for mode in SCRIPTS])
RELEASED = ("--released",)
"""Nobody has to press START for the release, which a run in damp would take for its own start."""
LATEST_NS = 600_000_000
"""From here on only damping may be heard, whatever had the machine busy."""
SOME_S = 0.4


def reach(run: RealRun, mode: Mode) -> None:
    """Wait until control does what the mode asks for, and a little longer."""
    run.until(lambda: run.mode is mode and run.ticking)
    until = time.monotonic() + SOME_S
    run.until(lambda: time.monotonic() > until)
    assert run.mode is mode


def assert_only_damping_follows(run: RealRun, fault_ns: int) -> None:
    frames = run.tap.listen()
    assert all(frame.valid for frame in frames)
    after = [frame for frame in frames if frame.time_ns > fault_ns + LATEST_NS]
    assert len(after) > 80, "less than a second of damping"
    assert all(frame.damping for frame in after)


def assert_every_row(path: Path) -> None:
    with Rollout(path) as rollout:
        number = rollout.column("number").tolist()
    assert number == list(range(1, len(number) + 1))
    assert number


@IN_EVERY_MODE
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("victim", ["control", "gateway"])
def test_control_and_gateway(tmp_path: Path, victim: str, number: signal.Signals, mode: Mode) -> None:
    with real_run(tmp_path, SCRIPTS[mode], sim_options=RELEASED) as run:
        reach(run, mode)
        fault_ns = wall_clock_ns()
        run.signal(number, {"control": CONTROL, "gateway": GATEWAY}[victim])
        code, result = run.end()
        assert (code, victim in result["end"]) == (4, True), result
        assert_only_damping_follows(run, fault_ns)
        assert_every_row(Path(result["rollout"]))


@IN_EVERY_MODE
def test_parent_killed(tmp_path: Path, mode: Mode) -> None:
    with real_run(tmp_path, SCRIPTS[mode], sim_options=RELEASED) as run:
        reach(run, mode)
        fault_ns = wall_clock_ns()
        run.signal(signal.SIGKILL)
        run.end()
        out, until = tmp_path / "out", time.monotonic() + 60.0
        while time.monotonic() < until and (list(out.glob("*.journal")) or not list(out.glob("*.h5"))):
            run.tap.listen()
            time.sleep(0.01)
        assert_only_damping_follows(run, fault_ns)
        (path,) = out.glob("*.h5")
        assert_every_row(path)


@IN_EVERY_MODE
def test_parent_held_up(tmp_path: Path, mode: Mode) -> None:
    with real_run(tmp_path, SCRIPTS[mode], sim_options=RELEASED) as run:
        reach(run, mode)
        fault_ns = wall_clock_ns()
        run.signal(signal.SIGSTOP)
        threading.Timer(HELD_UP_S, run.signal, [signal.SIGCONT]).start()
        code, result = run.end()
        assert (code, "PARENT_LOST" in result["events"]) == (3, True), result
        assert_only_damping_follows(run, fault_ns)
        assert_every_row(Path(result["rollout"]))


@IN_EVERY_MODE
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_recorder(tmp_path: Path, number: signal.Signals, mode: Mode) -> None:
    with real_run(tmp_path, SCRIPTS[mode], sim_options=RELEASED) as run:
        reach(run, mode)
        run.signal(number, RECORDER)
        until = time.monotonic() + 2 * SOME_S
        run.until(lambda: time.monotonic() > until)
        assert run.mode is mode or mode is Mode.RAMP  # which may be over meanwhile
        if number is signal.SIGSTOP:
            run.signal(signal.SIGCONT, RECORDER)
        run.signal(signal.SIGINT)
        code, result = run.end()
        assert code == 0, result
        assert_every_row(Path(result["rollout"]))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with small_tmpfs(tmp_path / "disk", SMALL_DISK_KIB) as folder:
            yield folder
    except UnavailableError as reason:
        pytest.skip(str(reason))


@IN_EVERY_MODE
def test_a_full_disk(tmp_path: Path, small_disk: Path, mode: Mode) -> None:
    with real_run(tmp_path, SCRIPTS[mode], "--out", str(small_disk), sim_options=RELEASED) as run:
        reach(run, mode)
        fill(small_disk)
        run.until(lambda: run.mode is not mode or "RECORDER_BEHIND" in run.events)
        assert run.mode is mode or mode is Mode.RAMP
        run.signal(signal.SIGINT)
        code, result = run.end()
        assert (code, result["rollout"]) == (0, None)
        assert "onboard log recover" in run.errors()
        (journal,) = small_disk.glob("*.journal")
        path = convert(journal, tmp_path)
        assert_every_row(path)
        with Rollout(path) as rollout:
            assert int(rollout.attributes["rows_lost"]) > 0


def test_a_new_run_waits_until_the_gateway_of_a_killed_one_is_quiet(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for folder in (first, second, third):
        folder.mkdir()
    with real_run(first, WALK, sim_options=RELEASED) as run:
        reach(run, Mode.POLICY)
        run.signal(signal.SIGKILL)  # its gateway damps for 5 s
        early = RealRun(second, RAMP, run.sim, run.tap)
        try:
            code, _ = early.end()
            assert (code, "somebody else commands the robot" in early.errors()) == (2, True)
        finally:
            early.close()
        until = time.monotonic() + 8.0
        while time.monotonic() < until:
            run.tap.listen()
            time.sleep(0.01)
        later = RealRun(third, RAMP, run.sim, run.tap)
        try:
            later.until_mode(Mode.RAMP)
            later.signal(signal.SIGINT)
            assert later.end()[0] == 0
        finally:
            later.close()
