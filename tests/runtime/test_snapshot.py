"""What an onlooker reads out of a run's shared memory."""

import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from onboard.cli import status
from onboard.cli.status_table import status_table
from onboard.configs.events import Event, Mode, Tier, bits
from onboard.logging.layout import PolicyShape, record_dtype
from onboard.runtime.gateway_core import GatewayState, Reason
from onboard.runtime.ports import CONTROL, GATEWAY, RECORDER, RUN, run_layout
from onboard.runtime.shm import Shared, ShmError
from onboard.runtime.snapshot import RunView, find_run

RECORD = record_dtype([PolicyShape("walker", 4, 2)])


class Run:
    """A mapping as a run fills it."""

    def __init__(self, folder: Path) -> None:
        self.shared = Shared.create(run_layout(RECORD), folder)
        self.now = 0

    def say(self, ring: str, dtype: np.dtype, **values: Any) -> None:
        row = np.zeros((), dtype)
        for name, value in values.items():
            row[name] = value
        self.shared[ring].push(row)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    run.say("run", RUN, robot=b"g1_29dof", policies=b"walker,dancer", interface=b"lo", period_ns=20_000_000)
    yield run
    run.shared.close()


@pytest.fixture
def view(run: Run) -> Iterator[RunView]:
    view = RunView(run.shared.path)
    yield view
    view.close()


def tick(run: Run, **values: Any) -> None:
    run.say("record", RECORD, **({"motor_temperature": 30} | values))


def test_the_newest_living_run_is_found(tmp_path: Path, run: Run) -> None:
    assert find_run(folder=tmp_path) == run.shared.path
    assert find_run(os.getpid(), tmp_path) == run.shared.path
    (tmp_path / "onboard-4194999-dead.shm").write_bytes(b"left behind")
    assert find_run(folder=tmp_path) == run.shared.path


def test_no_run_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ShmError, match="no run is going on here; start one with `onboard run POLICY`"):
        find_run(folder=tmp_path)
    with pytest.raises(ShmError, match="no run with process id 1 "):
        find_run(1, tmp_path)


def test_before_anything_happened_unknown_is_none_and_json_holds(view: RunView) -> None:
    look = view.look()
    json.dumps(look, allow_nan=False)
    assert look["timing"]["tick_us"] is None
    assert look["processes"]["control"]["heartbeat_ms"] is None
    assert look["link"]["rate_hz"] is None
    assert look["joints"] == {}
    assert status_table(look).row_count == 9


def test_mode_tier_and_process_health(run: Run, view: RunView) -> None:
    tier, events = Tier.DAMP, bits(Event.ROLL)
    run.say("control", CONTROL, mode=Mode.DAMP, tier=tier, events=events, reason=b"a safety event")
    run.say("gateway", GATEWAY, state=GatewayState.DAMPING, reason=Reason.TILT, heartbeat_ns=1)
    run.say("recorder", RECORDER, rows=12, lost=3, behind=4, full=1)
    look = view.look()
    state, processes = look["state"], look["processes"]
    assert (state["mode"], state["tier"], state["active_events"]) == ("damp", "damp", ["ROLL"])
    assert (processes["gateway"]["state"], processes["gateway"]["reason"]) == ("damping", "tilt")
    assert processes["gateway"]["heartbeat_ms"] > 1000
    recorder = processes["recorder"]
    assert (recorder["rows"], recorder["lost"], recorder["behind"], recorder["full"]) == (12, 3, 4, True)


def test_an_event_is_counted_when_it_rises_and_the_newest_comes_last(run: Run, view: RunView) -> None:
    for mask in (0, 1, 1, 0, bits(Event.PITCH), bits(Event.ROLL, Event.PITCH)):
        tick(run, safety_events=mask)
    for _ in range(2):  # a second look finds nothing new
        events = view.look()["events"]
        assert [(event["event"], event["times"]) for event in events] == [("PITCH", 1), ("ROLL", 2)]


def test_joints_near_their_limits_hot_ones_and_faults_are_named(run: Run, view: RunView) -> None:
    robot = view._robot
    knee = robot.slot("left_knee_joint")
    q, tau = (robot.lower + robot.upper) / 2, np.zeros(29, np.float32)
    q[knee], tau[knee] = robot.upper[knee] - 0.01, -0.5 * robot.effort[knee]
    heat, faults = np.full((29, 2), 30), np.zeros(29, np.uint32)
    heat[3], faults[knee] = (80, 90), 0x1
    tick(run, q=q, tau_est=tau, motor_temperature=heat, motor_fault=faults)
    joints = view.look()["joints"]
    first = {name: next(iter(values.items())) for name, values in joints.items()}
    assert first["nearest_limit_rad"] == ("left_knee_joint", pytest.approx(0.01, abs=1e-3))
    assert first["highest_torque_share"] == ("left_knee_joint", 0.5)
    assert first["hottest_casing_c"] == (robot.joint_names[3], 80.0)
    assert first["hottest_winding_c"] == (robot.joint_names[3], 90.0)
    assert joints["motor_faults"] == {"left_knee_joint": 1}


def test_a_view_that_slept_through_the_whole_ring_goes_on(run: Run, view: RunView) -> None:
    for number in range(1600):
        tick(run, tick=number, step=number)
    assert view.look()["state"]["step"] == 1599


def test_the_link_rate_comes_from_two_looks(run: Run, view: RunView) -> None:
    run.say("recorder", RECORDER, received=100)
    view.look()
    run.say("recorder", RECORDER, received=600, gaps=2)
    link = view.look()["link"]
    assert link["rate_hz"] > 500
    assert (link["received"], link["gaps"]) == (600, 2)


def test_the_battery_is_shown_where_it_is_published(run: Run, view: RunView) -> None:
    assert view.look()["battery_percent"] is None
    for charge, known in ((-1, None), (0, 0), (83, 83)):
        run.say("recorder", RECORDER, heartbeat_ns=1, battery=charge)
        assert view.look()["battery_percent"] == known


def shown(look: dict[str, Any]) -> str:
    console = Console(width=400, force_terminal=True, color_system="truecolor", file=io.StringIO())
    console.print(status_table(look))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_what_is_near_its_limit_is_lit(run: Run, view: RunView) -> None:
    robot = view._robot
    q, hot = (robot.lower + robot.upper) / 2, np.full((29, 2), 30)
    run.say("recorder", RECORDER, heartbeat_ns=1, battery=12)
    tick(run, q=q, motor_temperature=hot)
    (calm,) = [line for line in shown(view.look()).splitlines() if "nearest limit" in line]
    assert "\x1b[33m" not in calm
    q[3], hot[3] = robot.upper[3] - 0.01, (30, 125)
    tick(run, q=q, motor_temperature=hot)
    lines = shown(view.look()).splitlines()
    assert "\x1b[33m" in next(line for line in lines if "nearest limit" in line)
    assert "\x1b[1;31m" in next(line for line in lines if "hottest winding" in line)
    assert "\x1b[1;31m12 %" in next(line for line in lines if "battery" in line)


def test_an_onlooker_cannot_write(view: RunView) -> None:
    with pytest.raises((TypeError, ValueError)):
        view._shared["operator"].push(np.zeros((), view._shared["operator"].dtype))


def test_the_verb_looks_once_and_writes_json(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "find_run", lambda pid: find_run(pid, tmp_path))
    assert status.run(["--once", "--period", "0.01", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["policies"] == ["walker", "dancer"]
    assert status.run(["--once", "--period", "0.01"]) == 0
    assert "walker, dancer on g1_29dof" in capsys.readouterr().out


def test_the_verb_ends_with_the_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "find_run", lambda pid: find_run(pid, tmp_path))
    threading.Timer(0.1, run.shared.unlink).start()
    assert status.run(["--period", "0.02"]) == 0
    assert "the run has ended" in capsys.readouterr().err
