"""What the policy checks find: a healthy one passes, a first action one radian away does not."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from onboard.cli import check
from onboard.configs.errors import OnboardError
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from onboard.runtime.preflight.policy import PolicyChecks, judge_limits, judge_observation
from onboard.runtime.preflight.report import Verdict, run_checks
from tests.runtime.flight import POLICY, plan
from tests.runtime.test_residual import ANKLES, planned


def verdicts(policy: Policy) -> dict[str, Verdict]:
    rows = run_checks(PolicyChecks(policy, plan()).checks())
    return {row.name.removeprefix("policy."): row.finding.verdict for row in rows}


@pytest.fixture
def walker() -> Policy:
    return Policy(plan().bundle, plan().robot)


def test_a_healthy_policy_passes(walker: Policy) -> None:
    found = verdicts(walker)
    assert Verdict.FAIL not in found.values()
    assert set(found) == {"contract", "fingerprint", "first_action", "start_pose", "gains", "limits"}


def test_a_first_action_one_radian_away_fails() -> None:
    """The same network started from another pose of the arms: it moves them back at once."""
    own = plan()
    contract = own.bundle.contract
    start = list(own.bundle.start_rad)
    for side in ("left", "right"):
        start[contract.joints.index(f"{side}_shoulder_pitch_joint")] += 1.2
    bundle = load_policy(POLICY, own.robot, None, [f"start_rad={start}"])
    assert verdicts(Policy(bundle, own.robot))["first_action"] is Verdict.FAIL


def test_a_start_pose_beyond_a_joints_stop_and_a_joint_without_damping_fail(walker: Policy) -> None:
    walker.start_pose[3] = 3.5
    walker.kd[4] = 0.0
    found = verdicts(walker)
    assert (found["start_pose"], found["gains"]) == (Verdict.FAIL, Verdict.FAIL)


def test_gains_that_are_not_the_contracts_or_beyond_the_gateways_limits_fail(walker: Policy) -> None:
    walker.kp[3] *= 1.1
    checks = {check.name: check for check in PolicyChecks(walker, plan()).checks()}
    finding = checks["gains"].look()
    assert finding.verdict is Verdict.FAIL
    assert finding.measured == "gains of left_knee_joint are not those of the contract"
    walker.kp[3] = 501.0
    assert "exceed the gateway's limits (kp 500, kd 40), which would damp" in checks["gains"].look().measured


@pytest.fixture
def known() -> Policy:
    """A walker whose normaliser tells what it saw in training."""
    plan()
    try:
        return Policy(load_policy("holosoma_loco_fastsac", plan().robot), plan().robot)
    except OnboardError as error:
        pytest.skip(f"holosoma_loco_fastsac is not installed: {error}")


def standing(policy: Policy) -> State:
    state = State()
    state.q[:] = policy.start_pose
    state.torso_quat_wxyz[:], state.torso_gyro[:] = (1, 0, 0, 0), 0
    return state


def test_a_standing_robot_looks_as_in_training(known: Policy, walker: Policy) -> None:
    for policy in (known, walker):
        finding = judge_observation(policy, standing(policy))
        assert finding.verdict is Verdict.PASS, finding
    assert "deviations from training" in judge_observation(known, standing(known)).measured
    assert "no normaliser" in judge_observation(walker, standing(walker)).measured


def test_a_robot_that_reports_itself_upside_down_does_not(known: Policy) -> None:
    state = standing(known)
    state.quat_wxyz[:] = 0.0, 1.0, 0.0, 0.0
    finding = judge_observation(known, state)
    assert finding.verdict is Verdict.FAIL
    assert "gravity" in finding.measured


def test_joints_that_the_ramp_will_move_are_judged_where_it_brings_them(known: Policy) -> None:
    state = standing(known)
    state.q[18] -= 0.9
    state.dq[18] = 30.0
    finding = judge_observation(known, state)
    assert finding.verdict is Verdict.PASS
    assert finding.measured.endswith("1 joints as after the ramp")
    state.q[3] = np.nan
    assert judge_observation(known, state).verdict is Verdict.FAIL


def test_room_for_the_actions_of_training(known: Policy, walker: Policy) -> None:
    assert judge_limits(walker, plan().robot).measured.startswith(
        "how far the actions went in training is not"
    )
    finding = judge_limits(known, plan().robot)
    assert "training's targets" in finding.measured
    joints = [
        msgspec.structs.replace(joint, lower_rad=-0.05, upper_rad=0.05)
        if joint.name == "left_knee_joint"
        else joint
        for joint in plan().robot.joints
    ]
    narrow = judge_limits(known, msgspec.structs.replace(plan().robot, joints=tuple(joints)))
    assert narrow.verdict is Verdict.WARN
    assert "left_knee_joint" in narrow.measured


@pytest.mark.parametrize(
    ("bound_rad", "width_rad", "verdict"),
    [
        (0.05, 0.5, Verdict.PASS),
        (0.2, 0.5, Verdict.FAIL),
        (None, 0.5, Verdict.WARN),
        (0.05, None, Verdict.WARN),
    ],
)
def test_a_residuals_bound_against_the_range_of_the_action(
    tmp_path: Path, walker: Policy, bound_rad: float | None, width_rad: float | None, verdict: Verdict
) -> None:
    changes: dict[str, Any] = {"bound_rad": bound_rad}
    if width_rad is not None:
        changes["action_range_rad"] = dict.fromkeys(ANKLES, width_rad)
    residual = planned(tmp_path, "keep", **changes)
    checks = {check.name: check for check in PolicyChecks(walker, residual).checks()}
    assert checks["residual"].look().verdict is verdict


def test_the_verb_says_what_failed_and_what_was_waived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan()  # skips where the policy is not installed
    arguments = [
        POLICY,
        "--interface",
        "eth77",
        "--only",
        "policy",
        "--only",
        "network",
        "--out",
        str(tmp_path),
    ]
    assert check.run([*arguments, "--json", str(tmp_path / "check.json")]) == 1
    result = json.loads((tmp_path / "check.json").read_text())
    assert (result["ok"], result["failed"]) == (False, ["network.interface"])
    assert "eth77" in capsys.readouterr().out
    assert check.run([*arguments, "--waive", "network.interface", "--json", "-"]) == 0
    rows = {row["check"]: row for row in json.loads(capsys.readouterr().out)["checks"]}
    assert rows["network.interface"]["waived"]
    assert rows["policy.contract"]["verdict"] == "pass"
