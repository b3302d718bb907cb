"""What the policy checks find: a healthy one passes, a first action one radian away does not."""

import json
from pathlib import Path

import pytest

from onboard.cli import check
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy
from onboard.runtime.preflight.policy import PolicyChecks
from onboard.runtime.preflight.report import Verdict, run_checks
from tests.runtime.flight import POLICY, plan


def verdicts(policy: Policy) -> dict[str, Verdict]:
    rows = run_checks(PolicyChecks(policy, plan().robot, ()).checks())
    return {row.name.removeprefix("policy."): row.finding.verdict for row in rows}


@pytest.fixture
def walker() -> Policy:
    return Policy(plan().bundle, plan().robot)


def test_a_healthy_policy_passes(walker: Policy) -> None:
    found = verdicts(walker)
    assert Verdict.FAIL not in found.values()
    assert set(found) == {"contract", "fingerprint", "first_action", "start_pose", "gains"}


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
