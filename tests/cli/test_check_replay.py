"""An earlier rollout held against this computer, as a part of `onboard check`."""

import json
from pathlib import Path

import pytest

from onboard.cli import check
from onboard.cli.check_replay import ReplayChecks
from onboard.cli.run_options import run_config
from onboard.configs.errors import OnboardError
from onboard.runtime.assembly import make_plan
from onboard.runtime.preflight.report import Row, Verdict, run_checks
from tests.analysis.flown import write_flight
from tests.runtime.flight import POLICY, Flight, plan


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_flight(Flight().walk(ticks=40), tmp_path_factory.mktemp("walk"))


def rows(walk: Path, *overrides: str, policy: str = POLICY) -> list[Row]:
    the_plan = make_plan(run_config(policy=policy, policy_overrides=list(overrides)))
    return list(run_checks(ReplayChecks(walk, the_plan).checks()))


def test_what_was_recorded_here_comes_out_bit_by_bit(walk: Path, tmp_path: Path) -> None:
    arguments = [POLICY, "--only", "replay", "--replay", str(walk), "--interface", "eth77"]
    assert check.run([*arguments, "--out", str(tmp_path), "--json", str(tmp_path / "x.json")]) == 0
    found = json.loads((tmp_path / "x.json").read_text())["checks"]
    assert [row["check"] for row in found] == ["replay.observations", "replay.actions"]
    assert "recorded here: equal bit by bit" in found[0]["measured"]


def test_another_default_pose_is_found(walk: Path) -> None:
    observations, actions = rows(walk, f"default_rad={[0.01] * len(plan().bundle.contract.joints)}")
    assert observations.finding.verdict is Verdict.FAIL
    assert "joint_pos" in observations.finding.measured
    assert actions.finding.verdict is Verdict.FAIL


def test_another_policy_and_no_rollout_are_one_line(walk: Path, tmp_path: Path) -> None:
    (missing, _) = rows(tmp_path / "none.h5")
    assert missing.finding.verdict is Verdict.FAIL
    assert "none.h5" in missing.finding.measured
    try:
        (other, _) = rows(walk, policy="holosoma_wbt_ppo")
    except OnboardError as error:
        pytest.skip(f"holosoma_wbt_ppo is not installed: {error}")
    assert other.finding.measured.endswith("give the one that was run")
