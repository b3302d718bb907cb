"""A flight's rollout, replayed: equal bit by bit, and what is done where something is not."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from onboard.analysis.lock_step_sources import TruthSource, lock_step_sources
from onboard.analysis.replay import bring_to, replay
from onboard.analysis.replay_sim import closed_loop, open_loop, stretch
from onboard.analysis.replay_view import Window
from onboard.cli.main import main
from onboard.cli.run_options import run_config
from onboard.configs.errors import LinkError, RolloutError
from onboard.configs.loader import shipped
from onboard.logging.rollout import Rollout
from onboard.policies.estimators.provider import EXTERNAL, LEG_ODOMETRY
from onboard.policies.policy import Policy
from onboard.runtime.assembly import make_plan
from tests.analysis.flown import write_flight, write_journal
from tests.policies.models import ROBOT
from tests.runtime.flight import POLICY, Flight, plan
from tests.runtime.watched import Watched, playground

TICKS = 120


@pytest.fixture(scope="module")
def flight() -> Flight:
    """Walks, is sent to hold, walks again."""
    flown = Flight().walk(ticks=TICKS)
    flown.port.press("stop")
    flown.fly(60)
    return flown


@pytest.fixture(scope="module")
def walk(flight: Flight, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_flight(flight, tmp_path_factory.mktemp("walk"))


def policy() -> Policy:
    return Policy(plan().bundle, ROBOT)


def changed(walk: Path, folder: Path, column: str, row: int, value: float) -> Path:
    """A copy of the rollout with one number of a column changed."""
    path = folder / "changed.h5"
    path.write_bytes(walk.read_bytes())
    with h5py.File(path, "r+") as h5:
        h5[column][row, 3] = value
    return path


def test_observations_come_out_bit_by_bit_and_actions_with_them(walk: Path) -> None:
    with Rollout(walk) as rollout:
        found = replay(rollout, 0, policy())
    assert found.same_machine
    assert found.rows > TICKS
    assert (found.left_out, found.unknown) == (0, 0)
    assert found.obs.largest == 0.0
    assert found.action.largest <= 1e-6
    assert found.holds


def test_what_came_from_outside_is_replayed_and_not_the_robots_own_estimate(tmp_path: Path) -> None:
    flown = Flight(
        playground(EXTERNAL), sources=lambda link: [*lock_step_sources(link, {LEG_ODOMETRY}), Watched(link)]
    ).walk(ticks=TICKS)
    estimate, seen = flown.column("base_velocity", TICKS), flown.column("external_velocity", TICKS)
    assert np.abs(estimate - seen).max() > 0.001
    with Rollout(write_flight(flown, tmp_path)) as rollout:
        found = replay(rollout, 0, Policy(flown.plan.bundle, ROBOT))
    assert found.unknown == 0
    assert found.obs.largest == 0.0
    assert found.holds


def test_the_robots_description_is_that_of_the_run_whatever_became_of_its_file(tmp_path: Path) -> None:
    description = tmp_path / "robot.yaml"
    description.write_text(shipped("robots", "g1_29dof").read_text(encoding="utf-8"), encoding="utf-8")
    config = run_config(policy=POLICY, gantry=True, robot=str(description))
    plan()  # skips where the policy is not installed
    path = write_flight(Flight(make_plan(config)).walk(ticks=20), tmp_path / "rollouts")
    description.write_text("{ no: [longer, a robot", encoding="utf-8")
    assert main(["log", "replay", str(path)]) == 0
    assert main(["log", "verify", str(path)]) == 0
    with Rollout(path) as rollout:
        assert rollout.robot == ROBOT


def test_one_changed_number_is_found_and_named(walk: Path, tmp_path: Path) -> None:
    with Rollout(walk) as rollout:
        row = int(rollout.policies[0].rows[50])
    with Rollout(changed(walk, tmp_path, "rollout/q", row, 0.5), check=False) as rollout:
        found = replay(rollout, 0, policy())
    assert not found.holds
    assert found.obs.rows == 1
    assert f"row {row}, " in found.obs.where
    assert "left_knee_joint" in found.obs.where


def test_another_machine_is_given_its_tolerance(walk: Path, tmp_path: Path) -> None:
    with Rollout(walk) as rollout:
        row = int(rollout.policies[0].rows[50])
        at = float(rollout.column("q")[row, 3])
    path = changed(walk, tmp_path, "rollout/q", row, float(np.nextafter(np.float32(at), np.float32(1))))
    with Rollout(path, check=False) as rollout:
        assert not replay(rollout, 0, policy()).holds
    with h5py.File(path, "r+") as h5:
        h5.attrs["machine"] = json.dumps({**json.loads(h5.attrs["machine"]), "host": "somewhere-else"})
    with Rollout(path, check=False) as rollout:
        elsewhere = replay(rollout, 0, policy())
    assert not elsewhere.same_machine
    assert elsewhere.holds


def test_rows_behind_lost_records_are_left_out(flight: Flight, tmp_path: Path) -> None:
    first = next(k for k, row in enumerate(flight.rows) if row["policy"] == 0)
    with Rollout(write_flight(flight, tmp_path, lost=(first + 40, first + 42))) as rollout:
        found = replay(rollout, 0, policy())
    assert found.rows == 39
    assert found.left_out > 70
    assert found.holds


def test_what_a_cut_journal_still_holds_replays(flight: Flight, tmp_path: Path) -> None:
    path = write_journal(flight, tmp_path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 2 // 3)
    with Rollout(path) as rollout:
        assert rollout.completeness == "truncated"
        assert len(rollout) < len(flight.rows)
        found = replay(rollout, 0, policy())
    assert found.rows > 50
    assert found.left_out == 0
    assert found.obs.largest == 0.0
    assert found.holds


def test_a_policy_of_other_widths_is_refused(walk: Path) -> None:
    other = policy()
    other.raw = other.raw[:-1]
    with Rollout(walk) as rollout, pytest.raises(RolloutError, match="give the one that was run"):
        replay(rollout, 0, other)


def test_the_nominal_simulator_repeats_a_nominal_walk(tmp_path: Path) -> None:
    flown = Flight(sources=lambda link: [TruthSource(link)]).walk(ticks=TICKS)
    with Rollout(write_flight(flown, tmp_path)) as rollout:
        part = stretch(rollout, 1.0, 1.0, held=False)
        walker = policy()
        bring_to(rollout, 0, walker, part.first)
    again, sent = closed_loop(part, walker), open_loop(part)
    assert sent.rms_rad[0] == 0.0
    for drift in (again, sent):
        assert drift.rms_rad[:10].max() < 0.02
        assert drift.apart_s is None
        assert drift.fallen_s is None
    assert again.at_marks()["0.5"] < 0.02


def test_without_the_right_targets_it_falls(walk: Path) -> None:
    with Rollout(walk) as rollout:
        part = stretch(rollout, 0.5, 2.0, held=False)
    part.columns["action_sent"][:] = 0.0
    drift = open_loop(part)
    assert drift.apart_s is not None
    assert drift.apart_s < 0.5


def test_the_verb_says_it_in_a_line_and_draws_the_drift(
    walk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, figures = tmp_path / "drift.png", tmp_path / "replay.json"
    argv = ["log", "replay", str(walk), "--sim", "both", "--seconds", "1", "--out", str(out)]
    assert main([*argv, "--json", str(figures)]) == 0
    shown = capsys.readouterr().out
    assert "agrees over" in shown
    assert "closed loop: joints differ by" in shown
    found = json.loads(figures.read_text())
    assert found["policies"][0]["holds"] is True
    assert set(found["drift"]) == {"open loop", "closed loop"}
    assert out.stat().st_size > 10_000


def test_the_verb_fails_where_something_differs(
    walk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Rollout(walk) as rollout:
        row = int(rollout.policies[0].rows[50])
    path = changed(walk, tmp_path, "policies/0/action_policy", 50, 7.0)
    assert main(["log", "verify", str(path)]) == 1
    capsys.readouterr()
    assert main(["log", "replay", str(path), "--unchecked"]) == 1
    shown = capsys.readouterr().out
    assert "DIFFERS" in shown
    assert f"row {row}, " in shown


def test_a_window_shows_every_row_at_its_time(walk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[float] = []
    with Rollout(walk) as rollout:
        part = stretch(rollout, 0.5, 0.7, held=False)
    open_loop(part, lambda physics: shown.append(physics.time_s))
    assert len(shown) == len(part.kp) - 1
    assert np.diff(shown) == pytest.approx(0.02)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LinkError, match="needs a display"):
        Window(0.02)
