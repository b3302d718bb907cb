"""What a probe finds: one flight with a defect in every other joint, and judges on figures made up."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onboard.cli.check_gantry import describe
from onboard.configs.errors import ConfigError
from onboard.configs.events import Mode
from onboard.configs.robot import load_robot
from onboard.logging.rollout import Rollout
from onboard.runtime.preflight.gantry import Flown, GantryChecks
from onboard.runtime.preflight.latency import command_latency, judge_latency
from onboard.runtime.preflight.probe import Measured, Response, probe_protocol
from onboard.runtime.preflight.recording import Samples
from onboard.runtime.preflight.report import Finding, Row, Verdict, run_checks
from onboard.runtime.preflight.response import Fit
from onboard.runtime.preflight.robot import (
    judge_delay,
    judge_friction,
    judge_noise,
    judge_strength,
    judge_torque,
    judge_wiring,
)
from tests.policies.models import ROBOT
from tests.runtime.preflight.probed import fly, part_of_the_probe

pytest.importorskip("mujoco")

STEPPED = (
    "left_knee_joint",
    "left_hip_yaw_joint",
    "right_hip_yaw_joint",
    "left_ankle_roll_joint",
    "waist_roll_joint",
)
DEFECTS = (
    "gap.command_latency_s={'*': 0.02, right_elbow_joint: 0.06}",
    "gap.gain={'*': 1.0, left_knee_joint: 0.5, left_ankle_roll_joint: 0.0}",
    "gap.wiring={left_hip_yaw_joint: right_hip_yaw_joint, right_hip_yaw_joint: left_hip_yaw_joint, "
    "left_wrist_yaw_joint: -left_wrist_yaw_joint}",
)
MS = 1e-3


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    folder = tmp_path_factory.mktemp("probe")
    protocol = part_of_the_probe(*STEPPED)
    checks = GantryChecks(protocol, ROBOT, lambda: fly(protocol, folder, *DEFECTS)).checks()
    return {row.name: row for row in run_checks(checks)}


def test_every_defect_is_found_and_named(found: dict[str, Row]) -> None:
    wiring = found["robot.wiring"].finding
    assert wiring.verdict is Verdict.FAIL
    assert wiring.measured == (
        "left_hip_yaw_joint commands move right_hip_yaw_joint; "
        "right_hip_yaw_joint commands move left_hip_yaw_joint; "
        "left_ankle_roll_joint does not obey: dead, jammed, or its commands are lost; "
        "left_wrist_yaw_joint turns the wrong way"
    )
    strength = found["robot.strength"].finding
    assert strength.verdict is Verdict.FAIL
    assert strength.values["left_knee_joint_share"] == pytest.approx(0.5, abs=0.03)
    assert strength.measured.startswith("left_knee_joint 5")
    delay = found["robot.delay"].finding
    assert delay.verdict is Verdict.FAIL
    assert delay.values["right_elbow_joint_delay_s"] == pytest.approx(0.04, abs=0.002)
    assert delay.measured.startswith("right_elbow_joint 39")


def test_joints_without_a_defect_are_not_named(found: dict[str, Row]) -> None:
    strength, delay = (found[f"robot.{name}"].finding.values for name in ("strength", "delay"))
    for joint in ("right_shoulder_yaw_joint", "right_wrist_pitch_joint", "waist_roll_joint"):
        assert strength[f"{joint}_share"] == pytest.approx(1.0, abs=0.05)
        assert delay[f"{joint}_delay_s"] == pytest.approx(0.0, abs=0.002)
    for name in ("probe", "velocity_noise", "torque", "friction"):
        assert found[f"robot.{name}"].finding.verdict is Verdict.PASS, found[f"robot.{name}"]


def test_the_latency_is_that_of_the_simulator(found: dict[str, Row]) -> None:
    finding = found["latency.command"].finding
    assert finding.verdict is Verdict.PASS
    assert finding.values["latency_ms"] == pytest.approx(20.0, abs=2.0)
    assert 0.0 < finding.values["sigma_ms"] < 1.0


def response(
    joint: int, *, strength: float = 1.0, delay_s: float = 0.001, friction_nm: float = 0.0
) -> Response:
    return Response(joint, joint, False, 0.95, Fit(strength, delay_s, 1.0, friction_nm, 0.999))


def measured(*odd: Response) -> Measured:
    """Ten joints, some of them odd."""
    of_joint = {one.joint: one for one in odd}
    time_s: np.ndarray = np.arange(100) * 2 * MS
    rest = Samples(time_s, *(np.zeros((100, width)) for width in (29, 29, 29, 3, 3)))
    return Measured([of_joint.get(joint, response(joint)) for joint in range(10)], [], rest, [])


@pytest.mark.parametrize("judge", [judge_wiring, judge_strength, judge_delay, judge_friction])
def test_a_healthy_robot_passes(judge: Callable[[Measured, object], Finding]) -> None:
    finding = judge(measured(), ROBOT)
    assert (finding.verdict, finding.advice) == (Verdict.PASS, ""), finding


@pytest.mark.parametrize(
    ("judge", "odd", "verdict"),
    [
        (judge_strength, response(3, strength=0.81), Verdict.PASS),
        (judge_strength, response(3, strength=0.79), Verdict.WARN),
        (judge_strength, response(3, strength=0.69), Verdict.FAIL),
        (judge_strength, response(3, strength=1.4), Verdict.WARN),
        (judge_strength, response(3, strength=1.6), Verdict.FAIL),
        (judge_delay, response(3, delay_s=0.0105), Verdict.PASS),
        (judge_delay, response(3, delay_s=0.012), Verdict.WARN),
        (judge_delay, response(3, delay_s=0.022), Verdict.FAIL),
        (judge_friction, response(3, friction_nm=13.0), Verdict.PASS),
        (judge_friction, response(3, friction_nm=15.0), Verdict.WARN),
        (judge_friction, response(3, friction_nm=36.0), Verdict.FAIL),
    ],
)
def test_thresholds(judge: Callable[[Measured, object], Finding], odd: Response, verdict: Verdict) -> None:
    finding = judge(measured(odd), ROBOT)
    assert finding.verdict is verdict
    assert bool(finding.advice) is (verdict is not Verdict.PASS)
    assert "left_knee_joint" in finding.measured or verdict is Verdict.PASS


def test_a_robot_that_obeys_nobody_is_in_another_mode() -> None:
    dead = [Response(joint, None, False, 0.0, None) for joint in range(10)]
    finding = judge_wiring(measured(*dead), ROBOT)
    assert finding.measured == "no joint obeys at all"
    assert "mode_machine" in finding.advice
    assert judge_strength(measured(*dead), ROBOT).verdict is Verdict.FAIL


def test_noise_and_torque_at_rest() -> None:
    rest = measured().rest
    assert judge_noise(rest, ROBOT).verdict is Verdict.PASS
    rest.dq[::2, 4] = 0.4
    assert judge_noise(rest, ROBOT).verdict is Verdict.WARN
    load = np.zeros(29)
    assert judge_torque(rest, load, ROBOT).verdict is Verdict.PASS
    rest.tau_est[:, 3] = 0.2 * ROBOT.effort[3]
    assert judge_torque(rest, load, ROBOT).verdict is Verdict.WARN
    load[3] = -0.3 * ROBOT.effort[3]
    assert judge_torque(rest, load, ROBOT).verdict is Verdict.FAIL
    rest.tau_est[:] = load
    load[13] = 50.0  # the waist carries what hangs from the gantry, whatever that is
    assert judge_torque(rest, load, ROBOT).verdict is Verdict.PASS


def pieces(*delays_ms: float, explained: float = 0.99) -> list[Fit]:
    return [Fit(1.0, delay * MS, 1.0, 0.0, explained) for delay in delays_ms]


def test_a_latency_is_the_median_of_the_pieces_that_tell_it() -> None:
    found = command_latency([*pieces(9, 10, 11, 10, 108), *pieces(80.0, explained=0.5)])
    assert found is not None
    assert (found.pieces, found.delay_s) == (5, pytest.approx(11 * MS))
    assert found.sigma_s == pytest.approx(1.01 * MS, abs=0.01 * MS)
    assert command_latency(pieces(9, 10, 11)) is None


@pytest.mark.parametrize(
    ("delays_ms", "verdict"),
    [
        ((10, 10, 10, 10), Verdict.PASS),
        ((0, 20, 0, 20), Verdict.WARN),
        ((35,) * 4, Verdict.WARN),
        ((70,) * 4, Verdict.FAIL),
        ((), Verdict.FAIL),
    ],
)
def test_a_late_or_an_uncertain_robot(delays_ms: tuple[float, ...], verdict: Verdict) -> None:
    assert judge_latency(pieces(*delays_ms), "left_elbow_joint").verdict is verdict


def test_a_probe_that_ended_early_names_the_joint_that_was_behind(tmp_path: Path) -> None:
    """A dead arm turns farther than the ramp tolerates."""
    protocol = part_of_the_probe()
    dead = "gap.gain.left_shoulder_yaw_joint=0.0"
    checks = GantryChecks(protocol, ROBOT, lambda: fly(protocol, tmp_path, dead)).checks()
    rows = {row.name: row.finding for row in run_checks(checks)}
    assert rows["robot.probe"].verdict is Verdict.FAIL
    assert "left_shoulder_yaw_joint was 0.6" in rows["robot.probe"].measured
    assert rows["robot.wiring"].measured == "nothing was measured; see robot.probe"


def test_the_remotes_damp_button_ends_the_probe_and_what_was_played_is_judged(tmp_path: Path) -> None:
    protocol = part_of_the_probe("left_knee_joint", "left_ankle_roll_joint")
    checks = GantryChecks(protocol, ROBOT, lambda: fly(protocol, tmp_path, damp_at_s=3.2)).checks()
    rows = {row.name: row.finding for row in run_checks(checks)}
    assert rows["robot.probe"].verdict is Verdict.FAIL
    assert "ended too early" in rows["robot.probe"].measured
    assert rows["robot.wiring"].measured == "2 joints obey, each its own commands"
    assert rows["latency.command"].verdict is Verdict.FAIL
    with Rollout(next(tmp_path.glob("*.h5"))) as rollout:
        mode, kp_scale = rollout.column("mode"), rollout.column("kp_scale")
    stopped = int(np.flatnonzero(mode == Mode.POLICY)[-1]) + 1
    assert (mode[stopped:] == Mode.DAMP).all()
    assert not kp_scale[stopped:].any()


def test_a_run_without_a_rollout_says_so() -> None:
    protocol = part_of_the_probe()
    rows = list(run_checks(GantryChecks(protocol, ROBOT, lambda: Flown(False, "no disk", None)).checks()))
    assert rows[0].finding.measured == "no disk; no rollout"
    assert all(row.finding.verdict is Verdict.FAIL for row in rows)


def test_a_joint_that_does_not_exist_can_not_chirp() -> None:
    with pytest.raises(ConfigError, match="no joint 'left_tail_joint'"):
        probe_protocol(ROBOT, "left_tail_joint")


def test_a_robot_whose_masses_are_not_known_is_refused() -> None:
    smaller = load_robot("g1_23dof")
    protocol = probe_protocol(smaller, "left_elbow_joint")
    assert "waist_roll_joint" not in {name for part in protocol.segments for name in part.joints}
    with pytest.raises(ConfigError, match="masses of g1_23dof's links are not known"):
        GantryChecks(protocol, smaller, lambda: Flown(False, "not flown", None))


@pytest.mark.parametrize(
    ("done_s", "said"),
    [
        (0.5, "1/16 step left_hip_pitch, right_shoulder_pitch; 44 s left"),
        (37.0, "16/16 chirp left_elbow; 8 s left"),
        (60.0, "at rest"),
    ],
)
def test_the_line_says_what_moves_and_what_is_left(done_s: float, said: str) -> None:
    assert describe(probe_protocol(ROBOT, "left_elbow_joint"), done_s) == said
