"""`onboard ab` in the simulator: schedule first, episodes in its order, the same figures from recordings."""

import io
import json
import os
import signal
from pathlib import Path

import h5py
import msgspec
import numpy as np
import pytest
import yaml

from onboard.analysis.ab.metrics import make_subject
from onboard.analysis.ab.schedule import Slot
from onboard.analysis.ab.scores import Score
from onboard.cli import ab, ab_live
from onboard.cli.ab_flights import fly
from onboard.cli.ab_protocols import choose_protocols
from onboard.cli.ab_recorded import _episodes, _stretches, note_of, recorded_episodes
from onboard.cli.recorded_trial import RecordedTrial
from onboard.cli.run_options import run_config
from onboard.configs.errors import ConfigError, LinkError, OnboardError, RolloutError
from onboard.configs.events import Arm, Event, Mode, bits
from onboard.logging.layout import SafetyFlag
from onboard.logging.rollout import Rollout
from onboard.runtime.assembly import Plan, make_plan
from onboard.runtime.console import Console
from onboard.runtime.launch import Outcome
from onboard.runtime.preflight.record import plain_row, store_rows, subjects
from onboard.runtime.preflight.report import Finding, Row, Verdict
from tests.runtime.flight import POLICY
from tests.runtime.test_console import Desk

pytest.importorskip("mujoco")

ANKLES = [f"{side}_ankle_{axis}_joint" for side in ("left", "right") for axis in ("pitch", "roll")]
WEAK = "gap.gain={'*_ankle_*': 0.6}"


@pytest.fixture(scope="module")
def residual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plain = {
        "schema": 1,
        "name": "ankles",
        "kind": "linear",
        "mode": "invert",
        "unit": "rad",
        "joints": ANKLES,
        "coefficients": {joint: {"a": -0.4, "b": 0.02} for joint in ANKLES},
    }
    path = tmp_path_factory.mktemp("residual") / "residual.yaml"
    path.write_text(yaml.safe_dump({"residual": plain}))
    return path


def planned(residual: Path, arm: str) -> Plan:
    try:
        return make_plan(run_config(policy=POLICY, residual=str(residual), arm=arm, gantry=True, note="slow"))
    except OnboardError as error:
        pytest.skip(f"{POLICY} is not installed: {error}")


def test_an_experiment_in_the_simulator(residual: Path, tmp_path: Path) -> None:
    planned(residual, "keep")
    out = tmp_path / "out"
    options = [
        "--protocol",
        "slow",
        "--blocks",
        "3",
        "--seconds",
        "2.5",
        "--sim-set",
        WEAK,
        "--out",
        str(out),
    ]
    assert ab.run([POLICY, "--residual", str(residual), *options, "--json", str(out / "r.json")]) == 0
    result = json.loads((out / "r.json").read_text())
    slow = result["protocols"]["slow"]
    assert slow["falls"] == {"keep": 0, "drop": 0}
    assert slow["deciding"] == "tracking_rad"
    ankles = next(metric for metric in slow["metrics"] if metric["metric"] == "tracking_rad ankles")
    assert ankles["verdict"] == "keep"
    assert ankles["episodes"] == 12
    assert result["residual_used"]["largest_rad"] > 0.05
    schedule = json.loads((out / "schedule.json").read_text())["schedule"]["slow"]
    assert [slot["arm"] for slot in schedule].count("keep") == 6
    assert (out / "report.html").exists()


def test_recorded_arms_give_the_figures_of_the_flown_ones(residual: Path, tmp_path: Path) -> None:
    plans = {arm: planned(residual, arm) for arm in ("keep", "drop")}
    script = choose_protocols(("slow",), plans["keep"], 2.5)["slow"]
    subject = make_subject(plans["keep"].bundle, plans["keep"].robot)
    paths, flown = [], []
    for arm, plan in plans.items():
        slot = Slot(0, 0, 0, arm, 7)  # type: ignore[arg-type]
        flown.append(fly(plan, "slow", script, slot, (WEAK,), subject, lambda done_s: None).score)
        recorded = RecordedTrial(plan, script, (WEAK,), tmp_path, seed=7)
        paths.append(Path(recorded.run(lambda done_s: None)["rollout"]))
    found = recorded_episodes(paths, subject, plans["keep"])
    scores = [each.score for each in found]
    for now, then in zip(scores, flown, strict=True):
        assert (now.protocol, now.arm, now.failed, now.aborted) == ("slow", then.arm, False, "")
        for name in ("tracking_rad", "tracking_rad ankles", "action_rate", "torque_nm", "tilt_rad"):
            assert now.metrics[name] == pytest.approx(then.metrics[name], rel=0.05)
    assert found[0].largest_rad > 0.01, "what the residual did is read back too"
    with pytest.raises(RolloutError, match=f"no episode of {POLICY} with arm"):
        recorded_episodes([], subject, plans["keep"])


def test_the_schedule_alone_flies_nothing(residual: Path, tmp_path: Path) -> None:
    planned(residual, "keep")
    options = ["--schedule", "--blocks", "2", "--out", str(tmp_path)]
    assert ab.run([POLICY, "--residual", str(residual), *options]) == 0
    schedule = json.loads((tmp_path / "schedule.json").read_text())["schedule"]
    assert {name: len(order) for name, order in schedule.items()} == {"slow": 8, "fast": 8, "turn": 8}
    assert not (tmp_path / "report.html").exists()


def test_a_protocol_that_does_not_fit_is_refused(residual: Path) -> None:
    with pytest.raises(ConfigError, match="follows no motion"):
        choose_protocols(("motion",), planned(residual, "keep"), 5.0)


def test_on_the_robot_every_episode_waits_for_the_operator(
    residual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(residual, "drop")
    subject = make_subject(plan.bundle, plan.robot)
    script = choose_protocols(("slow",), plan, 2.5)["slow"]
    rollout = RecordedTrial(plan, script, (), tmp_path).run(lambda done_s: None)["rollout"]
    launched: list[Plan] = []

    def launch(the_plan: Plan, *rest: object) -> Outcome:
        launched.append(the_plan)
        if len(launched) == 2:
            raise LinkError("no state from the robot")
        return Outcome("control died", 0 if len(launched) == 1 else 4, Path(rollout), 125, [], 0)

    monkeypatch.setattr(ab_live, "launch", launch)
    asked: list[str] = []
    answers = iter(["", "", "", "skip"])

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    slots = [Slot(number, 1, 0, "drop", 3) for number in range(3)]
    scores = [ab_live.fly_live(plan, "turn", script, slot, 4, subject, ask).score for slot in slots]
    assert "episode 1 of 4: put the robot back" in asked[0]
    assert asked[1] == asked[2], "a run that did not start is asked for again"
    shown = capsys.readouterr().err
    assert "turn, episode 2 of 4 did not start: no state from the robot" in shown
    assert "drop" not in shown + "".join(asked), "the operator shall not know the arm"
    aborted = [score.aborted for score in scores]
    assert aborted == ["", "a process died: control died", "the operator left it out"]
    assert (scores[0].protocol, scores[0].block, scores[0].arm) == ("turn", 1, "drop")
    assert scores[0].metrics["tracking_rad"] > 0
    assert [each.config.note for each in launched] == ["turn block 1"] * 3


def test_a_signal_during_an_episode_ends_the_experiment_and_the_episode_does_not_count(
    residual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned_episode: Path
) -> None:
    """The run itself stops in order and ends with 0, as after its script."""
    flights: list[Path] = []

    def launch(the_plan: Plan, console: Console, *rest: object) -> Outcome:
        flights.append(Path(the_plan.config.out))
        if len(flights) == 2:
            with console.signals():
                os.kill(os.getpid(), signal.SIGINT)
                console.look_at_signals(Desk())
        return Outcome(console.end, 0, planned_episode, 125, [], 0)

    monkeypatch.setattr(ab_live, "launch", launch)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n" * 4))
    options = ["--live", "--protocol", "slow", "--blocks", "1", "--seconds", "2.5"]
    out = ["--out", str(tmp_path / "out"), "--json", str(tmp_path / "r.json")]
    assert ab.run([POLICY, "--residual", str(residual), *options, *out]) == 130
    assert flights == [tmp_path / "out/rollouts"] * 2
    slow = json.loads((tmp_path / "r.json").read_text())["protocols"]["slow"]
    assert slow["aborted"] == ["the operator ended the experiment"] * 3
    assert slow["episodes"] == 4


def test_a_failed_check_refuses_the_runs_of_an_experiment_too(
    residual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`onboard check` left its result in rollouts, the experiment's runs lie somewhere else."""
    monkeypatch.chdir(tmp_path)
    (subject,) = subjects(planned(residual, "keep"))
    late = Row("timing.loop", Finding(Verdict.FAIL, "200 ms", "another computer", {}), 0.1)
    store_rows(Path("rollouts"), subject, [plain_row(late)])
    monkeypatch.setattr("sys.stdin", io.StringIO("\nskip\n"))
    options = ["--live", "--protocol", "slow", "--blocks", "1", "--seconds", "2.5", "--out", "out"]
    assert ab.run([POLICY, "--residual", str(residual), *options]) == 130
    shown = capsys.readouterr().err
    assert "slow, episode 1 of 4 did not start: the last onboard check" in shown
    assert "give --waive timing.loop" in shown


def test_the_end_of_input_ends_the_experiment_and_everything_left_counts_as_aborted(
    residual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(residual, "keep")
    monkeypatch.setattr("sys.stdin", io.StringIO("skip\n"))
    options = ["--live", "--blocks", "1", "--seconds", "2", "--out", str(tmp_path / "out")]
    options += ["--protocol", "slow", "--protocol", "turn", "--json", str(tmp_path / "r.json")]
    assert ab.run([POLICY, "--residual", str(residual), *options]) == 130
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["ok"], result["verdict"]) == (False, "undecided")
    ended = "the operator ended the experiment"
    assert result["protocols"]["slow"]["aborted"] == ["the operator left it out", *[ended] * 3]
    assert result["protocols"]["turn"]["aborted"] == [ended] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--live", "--gain", "0.6"], "gap.gain"),
        (["--live", "--from", "a.h5"], "leave --live and --schedule out"),
        (["--live", "--out", "old"], "rollouts of another experiment"),
        (["--blocks", "0"], "give at least 1 and 2"),
    ],
)
def test_options_that_contradict_each_other(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old/rollouts").mkdir(parents=True)
    (tmp_path / "old/rollouts/a.h5").touch()
    with pytest.raises(ConfigError, match=message):
        ab.run([POLICY, "--residual", "r.yaml", *options])


def lengths(*columns: np.ndarray) -> list[tuple[int, bool]]:
    rows = np.arange(10, 30)
    return [(len(part), whole) for part, whole in _stretches(rows, *columns)]


def test_stretches_of_one_run_are_episodes_and_the_last_is_not_whole() -> None:
    episode, arm = np.zeros(40, int), np.full(40, int(Arm.KEEP))
    assert lengths(episode, arm) == [(20, True)]
    arm[18:24] = Arm.DROP
    assert lengths(episode, arm) == [(8, True), (6, True), (6, False)]
    episode[20:] = 1
    assert lengths(episode, np.full(40, int(Arm.KEEP))) == [(10, True), (10, True)]


def test_two_stretches_of_the_same_arm_in_a_row_are_two_episodes() -> None:
    place = np.repeat(np.arange(8), 5)
    arm = np.array([Arm.KEEP, Arm.DROP, Arm.DROP, Arm.KEEP, Arm.DROP, Arm.KEEP, Arm.KEEP, Arm.DROP])[place]
    assert lengths(np.zeros(40, int), arm, place) == [(5, True), (5, True), (5, True), (5, False)]


def test_arms_in_blocks_of_one_run(residual: Path, tmp_path: Path) -> None:
    """A fall in the stretch that the run's end cut short is the worst outcome too, and not left out."""
    plan = planned(residual, "keep")
    config = run_config(policy=POLICY, residual=str(residual), arm="blocks", block_s=1.0, gantry=True)
    script = choose_protocols(("slow",), plan, 5.6)["slow"]
    trial = RecordedTrial(make_plan(config), script, (), tmp_path)
    rollout = Path(trial.run(lambda done_s: None)["rollout"])

    def scores() -> list[Score]:
        with Rollout(rollout, check=False) as opened:
            found = _episodes(opened, make_subject(plan.bundle, plan.robot), plan)
            return [each.score for each in found]

    before = scores()
    assert [score.seconds for score in before] == pytest.approx([1.0] * 5)
    assert before[1].arm == before[2].arm != before[0].arm
    with h5py.File(rollout, "r+") as file:
        last = np.flatnonzero(file["rollout/mode"][:] == Mode.POLICY)[-1]
        file["rollout/safety_flag"][last + 1] = SafetyFlag.FALL
    assert [score.fell for score in scores()] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("change", "aborted"),
    [
        ("", ""),
        ("SIGINT", "the run ended early: SIGINT"),
        ("stop", "the run ended early: the operator pressed stop"),
        ("fall", ""),
        ("damped", "it never came to the policy: SIGINT"),
    ],
)
def test_an_episode_with_a_place_in_a_schedule_is_whole_or_none(
    residual: Path, tmp_path: Path, planned_episode: Path, change: str, aborted: str
) -> None:
    path = tmp_path / "episode.h5"
    path.write_bytes(planned_episode.read_bytes())
    with h5py.File(path, "r+") as file:
        rows = np.flatnonzero(file["rollout/mode"][:] == Mode.POLICY)
        if change in ("SIGINT", "damped"):
            file.attrs["end_reason"] = "SIGINT"
        if change == "stop":
            file["rollout/safety_events"][rows[60]] = bits(Event.OPERATOR_STOP)
        if change == "fall":
            file["rollout/safety_flag"][rows[-1]] = SafetyFlag.FALL
            file.attrs["end_reason"] = "a safety event (FALL)"
        if change == "damped":
            file["rollout/mode"][:] = Mode.DAMP
    plan = planned(residual, "keep")
    subject = make_subject(plan.bundle, plan.robot)
    (episode,) = recorded_episodes([path], subject, plan, check=False)
    score = episode.score
    assert (score.protocol, score.block, score.arm) == ("slow", 2, "keep")
    assert (score.aborted, score.fell) == (aborted, change == "fall")


@pytest.fixture(scope="module")
def planned_episode(residual: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a run of `--live` records it."""
    plan = planned(residual, "keep")
    noted = make_plan(msgspec.structs.replace(plan.config, note=note_of("slow", Slot(8, 2, 0, "keep", 1))))
    script = choose_protocols(("slow",), plan, 2.5)["slow"]
    trial = RecordedTrial(noted, script, (), tmp_path_factory.mktemp("planned"))
    return Path(trial.run(lambda done_s: None)["rollout"])
