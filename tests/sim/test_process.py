"""The simulated robot as a process on real DDS."""

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from onboard.configs.errors import ConfigError, LinkError
from onboard.configs.external_pose import UdpAddress
from onboard.configs.robot import N_JOINTS
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain, Sample
from onboard.runtime.dds_link import DdsLink
from onboard.runtime.external_pose import Pose, UdpPoses
from onboard.runtime.link import State
from onboard.runtime.motion_switcher import MotionSwitcher
from onboard.runtime.remote import START, keys
from onboard.runtime.wire import GROUND_TRUTH, LowCmdWriter, LowStateDecoder
from onboard.sim.process import Options, serve
from tests.dds_domain import domain_id  # noqa: F401 - a fixture

KP = np.full(N_JOINTS, 80.0, np.float32)
KD = np.full(N_JOINTS, 3.0, np.float32)


class Sim:
    """A running `onboard sim`, told what to do by lines."""

    def __init__(self, domain: int, folder: Path, *arguments: str) -> None:
        self._json = folder / "sim.json"
        command = [sys.executable, "-m", "onboard", "sim", "--domain", str(domain), "--with-parent"]
        self.process = subprocess.Popen(
            [*command, "--json", str(self._json), *arguments],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.greeting = self._stream(self.process.stderr).readline()

    def tell(self, line: str) -> None:
        stdin = self._stream(self.process.stdin)
        stdin.write(line + "\n")
        stdin.flush()

    def end(self, ask: bool = True) -> dict[str, object]:
        if ask:
            self.tell("quit")
        _, errors = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, errors
        summary: dict[str, object] = json.loads(self._json.read_text(encoding="utf-8"))
        return summary

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


StartSim = Callable[..., Sim]


@pytest.fixture
def start_sim(domain_id: int, tmp_path: Path) -> Iterator[StartSim]:  # noqa: F811
    started: list[Sim] = []

    def start(*arguments: str) -> Sim:
        started.append(Sim(domain_id, tmp_path, *arguments))
        return started[-1]

    yield start
    for sim in started:
        sim.close()


@pytest.fixture
def domain(domain_id: int) -> Iterator[DdsDomain]:  # noqa: F811
    with DdsDomain(domain_id, "lo") as domain:
        yield domain


def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return False


def steps(ticks: list[int]) -> list[int]:
    return [after - before for before, after in itertools.pairwise(ticks)]


def test_is_seen_released_commanded_and_moves(start_sim: StartSim, domain: DdsDomain) -> None:
    sim = start_sim("--gantry")
    assert "built-in controller 'ai' active" in sim.greeting
    link = DdsLink(domain)
    link.open()
    state = link.latest()
    assert state.mode_machine == 5
    assert state.crc_errors == 0
    switcher = MotionSwitcher(domain)
    assert switcher.check() == "ai"
    switcher.release()
    assert switcher.check() == ""

    target = link.latest().q.copy()
    target[18] = 1.2
    commands = domain.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
    frame = LowCmdWriter(np.ones(N_JOINTS, bool))

    def moved() -> bool:
        commands.write(frame.fill(target, KP, KD, link.latest().mode_machine))
        return abs(float(link.latest().q[18]) - 1.2) < 0.05

    assert until(moved)
    wrong = frame.fill(target, KP, KD, 6)
    commands.write(wrong)
    sim.tell("press start 5")
    assert until(lambda: keys(link.latest().remote.tobytes()) == START)
    assert np.linalg.norm(link.latest().torso_quat_wxyz) == pytest.approx(1.0, abs=1e-5)
    link.close()
    summary = sim.end()
    assert summary["end"] == "quit"
    assert summary["refused"] == {"mode_machine": 1}
    assert isinstance(summary["accepted"], int)
    assert summary["accepted"] > 0


def test_ticks_every_2_ms_with_valid_checksums(start_sim: StartSim, domain: DdsDomain) -> None:
    start_sim()
    states = domain.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=512)
    truths = domain.reader(idl.GROUND_TRUTH_TOPIC, idl.GroundTruth, depth=512)
    samples: list[Sample] = []
    ground: list[Sample] = []

    def enough() -> bool:
        samples.extend(states.take_all())
        ground.extend(truths.take_all())
        return len(samples) > 200 and len(ground) > 20

    assert until(enough)
    decoder, state = LowStateDecoder(), State()
    ticks = []
    for sample in samples:
        assert decoder.decode(sample.raw, state)
        ticks.append(state.robot_tick)
    assert set(steps(ticks)) == {2}
    truth = np.frombuffer(ground[-1].raw, GROUND_TRUTH)[0]
    assert truth["position"][2] == pytest.approx(0.785, abs=0.02)
    assert truth["contact_force"][:, 2].sum() == pytest.approx(33.34 * 9.81, rel=0.2)
    first, last = (int(np.frombuffer(ground[i].raw, GROUND_TRUTH)[0]["tick"]) for i in (0, -1))
    assert last - first == 10 * (len(ground) - 1)


def test_the_true_pose_goes_out_by_udp_too(start_sim: StartSim) -> None:
    poses = UdpPoses(UdpAddress("127.0.0.1", 0))
    with contextlib.closing(poses):
        start_sim("--pose-udp", f"127.0.0.1:{poses.address.port}")
        found: list[Pose | None] = []

        def enough() -> bool:
            found.extend(poses.take_all())
            return len(found) >= 20

        assert until(enough)
    heard = [pose for pose in found if pose is not None]
    assert len(heard) == len(found)
    assert all(before.stamp_ns < after.stamp_ns for before, after in itertools.pairwise(heard))
    assert heard[-1].position_m[2] == pytest.approx(0.785, abs=0.02)
    assert abs(heard[-1].quat_wxyz[0]) > 0.98
    assert np.isfinite(heard[-1].velocity_m_s).all()


def test_faults_are_on_the_wire(start_sim: StartSim, domain: DdsDomain) -> None:
    sim = start_sim()
    states = domain.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=512)
    decoder, state = LowStateDecoder(), State()
    bad = 0
    ticks: list[int] = []

    def listen(enough: Callable[[], bool]) -> bool:
        def look() -> bool:
            nonlocal bad
            for sample in states.take_all():
                good = decoder.decode(sample.raw, state)
                bad += not good
                if good:
                    ticks.append(state.robot_tick)
            return enough()

        return until(look)

    assert listen(lambda: len(ticks) > 10)
    sim.tell("fault corrupt 3")
    assert listen(lambda: bad == 3)
    sim.tell("fault frozen 4")
    assert listen(lambda: steps(ticks).count(0) == 4)
    sim.tell("fault backwards 5")
    assert listen(lambda: sum(step < 0 for step in steps(ticks)) >= 5)
    sim.tell("fault lost 6")
    assert listen(lambda: max(steps(ticks)) >= 14)
    sim.tell("fault mode_machine 6")
    assert listen(lambda: state.mode_machine == 6)


def test_a_fault_of_the_list_begins_at_its_time(start_sim: StartSim, domain: DdsDomain) -> None:
    start_sim("--fault", "mode_machine@0.3", "--fault", "motor_warning")
    states = domain.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=512)
    decoder, state = LowStateDecoder(), State()

    def faulty() -> bool:
        sample = states.take()
        if sample is not None and decoder.decode(sample.raw, state) and state.mode_machine == 6:
            assert state.robot_tick >= 300
            return True
        return False

    assert until(faulty)
    assert state.motor_fault[3] == 0x10


def test_a_script_plays_and_the_duration_ends_it(start_sim: StartSim, tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("0.0 gantry release\n0.1 mode none\n0.2 quit\n", encoding="utf-8")
    summary = start_sim("--script", str(script), "--gantry", "--duration", "30").end(ask=False)
    assert summary["end"] == "quit"
    assert summary["simulated_s"] == pytest.approx(0.2, abs=0.05)


def test_signals_end_it_in_order_with_a_summary(start_sim: StartSim) -> None:
    sim = start_sim()
    sim.process.send_signal(signal.SIGTERM)
    assert sim.end(ask=False)["end"] == "SIGTERM"


def test_commands_that_stop_damp_it_when_asked_to(start_sim: StartSim, domain: DdsDomain) -> None:
    sim = start_sim("--gantry", "--released", "--when-commands-stop", "damp", "--set", "silence.after_s=0.05")
    link = DdsLink(domain)
    link.open()
    commands = domain.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
    frame = LowCmdWriter(np.ones(N_JOINTS, bool))
    level = np.zeros(N_JOINTS, np.float32)

    def reached() -> bool:
        commands.write(frame.fill(level, KP, KD, 5))
        return abs(float(link.latest().q[18])) < 0.05

    assert until(reached)
    assert until(lambda: float(link.latest().q[18]) > 0.3)  # damped, the level forearm sinks
    link.close()
    damped = sim.end()["damped_by_silence"]
    assert isinstance(damped, int)
    assert damped >= 1


def test_a_bad_line_changes_nothing(start_sim: StartSim) -> None:
    sim = start_sim()
    sim.tell("jump 3")
    sim.tell("quit")
    _, errors = sim.process.communicate(timeout=20)
    assert "no command 'jump'" in errors
    assert sim.process.returncode == 0


def test_ends_with_its_parent(domain_id: int, domain: DdsDomain) -> None:  # noqa: F811
    """A shell starts it, and is gone at once."""
    python = f"exec {sys.executable} -m onboard sim --domain {domain_id} --with-parent </dev/null >/dev/null"
    shell = subprocess.Popen(["sh", "-c", f"({python}) & read wait"], stdin=subprocess.PIPE)
    states = domain.reader(idl.LOW_STATE_TOPIC, idl.LowState)
    assert until(lambda: states.take() is not None)
    shell.kill()
    shell.communicate()
    assert until(lambda: states.matched() == 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"interface": "nope0"}, LinkError, "no network interface 'nope0'"),
        ({"overrides": ("gap.gian=1",)}, ConfigError, "unknown key 'gian'"),
        ({"script": Path("/nowhere/script.txt")}, ConfigError, "can't be read"),
        ({"gamepad": Path("/nowhere/js0")}, LinkError, "gamepad /nowhere/js0"),
        ({"viewer": True}, LinkError, "needs a display"),
        ({"config": "g7"}, ConfigError, "'g7' is no shipped sim configuration"),
        ({"pose_udp": "mocap:9870"}, ConfigError, "--pose-udp mocap:9870: Expected 4 octets"),
    ],
)
def test_what_can_not_be_started_is_refused(
    domain_id: int,  # noqa: F811
    options: dict[str, object],
    error: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(error, match=message):
        serve(Options(domain=domain_id, **options), lambda line: line)  # type: ignore[arg-type]


def test_a_user_mistake_is_one_line_and_a_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "onboard", "sim", "--start-pose", "sitting"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "start_pose 'sitting' is not one of zero, stand, crouch" in done.stderr
