"""Whole runs on real DDS: every way to end one, each with its frames, its file and its exit code.

What is checked here is the order of events; how fast they follow each other is measured elsewhere.
"""

import signal
from pathlib import Path

import numpy as np
import pytest

from onboard.analysis.replay import replay
from onboard.configs.events import Mode
from onboard.logging.convert import convert
from onboard.logging.layout import SafetyFlag
from onboard.logging.rollout import Rollout
from onboard.policies.policy import Policy
from onboard.runtime import idl
from onboard.runtime.wire import LowCmdWriter
from tests.policies.models import ROBOT
from tests.runtime.flight import plan
from tests.runtime.real_run import RAMP, WALK, RealRun, real_run

GATEWAY, CONTROL, RECORDER = "onboard.runtime.gateway", "onboard.runtime.control", "onboard.runtime.recording"


def assert_damped_for_good(run: RealRun) -> None:
    """Frames were tracked, then only damped, and all were valid."""
    frames = run.tap.frames
    assert all(frame.valid for frame in frames)
    tracking = [index for index, frame in enumerate(frames) if not frame.damping]
    assert tracking, "nothing was ever tracked"
    after = frames[tracking[-1] + 1 :]
    assert len(after) > 100, "less than a second of damping"
    assert after[-1].time_ns - after[0].time_ns > 0.9e9


FAULTS = {
    "frozen": "fault frozen 1000000",
    "backwards": "fault backwards 1000000",
    "corrupt": "fault corrupt 1000000",
    "lost": "fault lost 1000000",
    "mode_machine": "fault mode_machine 6",
    "motor": "fault motor left_knee_joint 1",
}


QUICK = {"corrupt"}
"""The others run in the long suite; every fault runs in lock-step in `test_loop.py`."""


@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in sorted(FAULTS)],
)
def test_a_fault_of_the_robot_damps_and_ends_the_run(tmp_path: Path, fault: str) -> None:
    with real_run(tmp_path) as run:
        run.until_mode(Mode.RAMP)
        run.sim.tell(FAULTS[fault])
        code, result = run.end()
        assert (code, result["ok"]) == (3, False)
        assert_damped_for_good(run)
        with Rollout(result["rollout"]) as rollout:
            assert rollout.column("safety_flag")[-1] == SafetyFlag.OTHER_STOP
            assert rollout.attributes["end_reason"]
            assert rollout.completeness == "complete"


def test_the_remotes_emergency_stop(tmp_path: Path) -> None:
    with real_run(tmp_path) as run:
        run.until_mode(Mode.RAMP)
        run.sim.tell("press damp")
        code, result = run.end()
        assert code == 3
        assert "EMERGENCY_STOP" in result["events"]
        assert_damped_for_good(run)
        with Rollout(result["rollout"]) as rollout:
            assert rollout.column("safety_flag")[-1] == SafetyFlag.EMERGENCY_STOP


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_stops_a_walking_robot_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with real_run(tmp_path, WALK) as run:
        run.until_mode(Mode.POLICY)
        run.signal(number)
        code, result = run.end()
        assert (code, result["end"]) == (0, number.name)
        assert_damped_for_good(run)
        with Rollout(result["rollout"]) as rollout:
            mode = rollout.column("mode")
            order = [int(mode[0]), *(int(m) for m in mode[1:][np.diff(mode.astype(int)) != 0])]
            assert order == [Mode.DAMP, Mode.RAMP, Mode.HOLD, Mode.POLICY, Mode.HOLD, Mode.DAMP]
            assert (mode == Mode.HOLD).sum() >= 50
            assert (rollout.column("safety_flag") == SafetyFlag.NORMAL).all()
            parity = replay(rollout, 0, Policy(plan().bundle, ROBOT))
            assert parity.rows > 0
            assert parity.holds, (parity.obs, parity.action)


@pytest.mark.slow
def test_two_interrupts_damp_at_once(tmp_path: Path) -> None:
    with real_run(tmp_path, WALK) as run:
        run.until_mode(Mode.RAMP)
        run.signal(signal.SIGINT)
        run.until(lambda: run.mode is not Mode.RAMP)
        run.signal(signal.SIGINT)
        code, result = run.end()
        assert (code, result["end"]) == (130, "SIGINT twice")
        assert_damped_for_good(run)


def test_control_killed(tmp_path: Path) -> None:
    with real_run(tmp_path, WALK) as run:
        run.until_mode(Mode.POLICY)
        run.signal(signal.SIGKILL, CONTROL)
        code, result = run.end()
        assert code == 4
        assert "control died" in result["end"]
        assert_damped_for_good(run)
        with Rollout(result["rollout"]) as rollout:
            number = rollout.column("number").astype(int)
            assert number.tolist() == list(range(1, len(number) + 1))  # every row handed over
            assert rollout.column("mode")[-1] == Mode.POLICY


def test_recorder_killed(tmp_path: Path) -> None:
    with real_run(tmp_path, WALK) as run:
        run.until_mode(Mode.HOLD)
        run.signal(signal.SIGKILL, RECORDER)
        run.until_mode(Mode.POLICY)
        run.signal(signal.SIGINT)
        code, result = run.end()
        assert code == 0
        assert any("recorder died" in fault for fault in result["faults"])
        with Rollout(result["rollout"]) as rollout:
            number = rollout.column("number").astype(int)
            assert number.tolist() == list(range(1, len(number) + 1))


@pytest.mark.slow
def test_a_recorder_that_hangs_is_replaced_and_loses_nothing(tmp_path: Path) -> None:
    with real_run(tmp_path) as run:
        run.until_mode(Mode.RAMP)
        hung = run.child(RECORDER)
        run.signal(signal.SIGSTOP, RECORDER)
        run.until(lambda: hung not in run.left_over())
        run.until(lambda: bool(run.left_over()))
        run.signal(signal.SIGINT)
        code, result = run.end()
        assert code == 0
        assert any("gave no sign of life" in fault for fault in result["faults"])
        with Rollout(result["rollout"]) as rollout:
            number = rollout.column("number").astype(int)
            assert number.tolist() == list(range(1, len(number) + 1))
            assert len(number) > 500  # ten seconds of them waited in the ring
            assert rollout.completeness == "complete"


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.slow)])
def test_gateway_killed_or_stopped(tmp_path: Path, number: signal.Signals) -> None:
    with real_run(tmp_path) as run:
        run.until_mode(Mode.RAMP)
        run.signal(number, GATEWAY)
        code, result = run.end()
        assert code == 4
        assert "gateway" in result["end"]
        assert_damped_for_good(run)
        assert len({frame.writer for frame in run.tap.frames}) == 2  # the standby writer took over


def test_parent_killed(tmp_path: Path) -> None:
    with real_run(tmp_path) as run:
        run.until_mode(Mode.RAMP)
        run.signal(signal.SIGKILL)
        run.end()
        out = tmp_path / "out"
        for _ in range(3000):
            run.tap.listen()
            if list(out.glob("*.h5")) and not list(out.glob("*.journal")):
                break
            signal.sigtimedwait([], 0.005)
        assert_damped_for_good(run)
        (path,) = out.glob("*.h5")
        with Rollout(path) as rollout:
            assert rollout.column("mode")[-1] == Mode.DAMP


def foreign_frame() -> bytearray:
    zeros = np.zeros(29, np.float32)
    return LowCmdWriter(np.ones(29, bool)).fill(zeros, zeros, zeros, 5)


def test_a_second_publisher_while_running(tmp_path: Path) -> None:
    with real_run(tmp_path) as run:
        run.until_mode(Mode.RAMP)
        writer = run.tap.dds.writer("rt/lowcmd", idl.LowCmd)

        def noticed() -> bool:
            writer.write(foreign_frame())  # again and again: nobody knows which readers it has already
            return run.mode is not Mode.RAMP

        run.until(noticed)
        code, result = run.end()
        assert code == 3
        assert "SECOND_PUBLISHER" in result["events"]
        ours = [frame for frame in run.tap.frames if frame.writer == run.tap.frames[0].writer]
        assert ours[-1].damping


def test_a_second_publisher_before_the_start(tmp_path: Path) -> None:
    with real_run(tmp_path, RAMP) as run:
        writer = run.tap.dds.writer("rt/lowcmd", idl.LowCmd)
        while run.running:
            writer.write(foreign_frame())
            signal.sigtimedwait([], 0.01)
        code, _ = run.end()
        assert code == 2
        lines = run.errors().strip().splitlines()
        assert "somebody else commands the robot" in lines[-1]
        assert {frame.writer for frame in run.tap.listen()} == {run.tap.frames[0].writer}  # ours said nothing
        assert not list((tmp_path / "out").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("tiny_disk", [700], indirect=True)
def test_a_full_disk_stops_nothing_and_loses_only_what_did_not_fit(tmp_path: Path, tiny_disk: Path) -> None:
    script = "steps:\n  - {press: start, until: ramp}\n  - {until: hold, for_s: 6.0}\n"
    with real_run(tmp_path, script, "--out", str(tiny_disk)) as run:
        code, result = run.end()
        assert code == 0
        assert result["rollout"] is None
        assert "RECORDER_BEHIND" in result["events"]
        assert "onboard log recover" in run.errors()
        (journal,) = tiny_disk.glob("*.journal")
        with Rollout(convert(journal, tmp_path)) as rollout:
            number = rollout.column("number").astype(int)
            assert number.tolist() == list(range(1, len(number) + 1))
            assert 100 < len(number) < 500
            assert rollout.completeness == "truncated"
            assert int(rollout.attributes["rows_lost"]) > 50


def test_a_dry_run_commands_nothing(tmp_path: Path) -> None:
    script = "steps:\n  - {press: start, until: hold}\n  - {press: go, until: policy, for_s: 0.5}\n"
    with real_run(tmp_path, script, "--dry") as run:
        code, result = run.end()
        assert code == 0
        assert not run.tap.frames
        assert not [p for p in run.tap.dds.publications() if p.topic == "rt/lowcmd"]
        assert result["rows"] > 20


def test_a_robot_of_another_type_is_refused(tmp_path: Path) -> None:
    with real_run(tmp_path) as run:
        run.sim.tell("fault mode_machine 6")
        code, _ = run.end()
        assert code == 2
        line = run.errors().strip().splitlines()[-1]
        assert "reports mode_machine 6, the description g1_29dof is for 2, 5" in line
        assert not run.tap.frames
