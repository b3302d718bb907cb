"""`onboard try`: figures, verdicts, folders."""

import json
from pathlib import Path

import pytest

from onboard.cli.main import main
from tests.runtime.flight import POLICY, plan
from tests.shared import shared_folder

KEYS = {
    "ok",
    "fell",
    "fall_s",
    "seconds",
    "walked_m",
    "vx_mean",
    "vx_abs_err",
    "mpjpe_rad",
    "action_rate",
    "torque_saturated",
    "max_dq",
    "max_gyro",
    "max_tilt",
    "speedup",
}


def trial(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    out = tmp_path / "out.json"
    code = main(["try", *arguments, "--json", str(out)])
    return code, json.loads(out.read_text())


@pytest.mark.parametrize(("policy", "vx"), [("holosoma_loco_ppo", 0.39), ("holosoma_loco_fastsac", 0.42)])
def test_the_shipped_walkers_walk_as_measured_elsewhere(tmp_path: Path, policy: str, vx: float) -> None:
    plan()
    code, result = trial(tmp_path, policy)
    assert code == 0
    assert result.keys() >= KEYS
    assert result["ok"] is True
    assert result["fell"] is False
    assert result["tripped"] == []
    assert result["mpjpe_rad"] is None
    assert result["vx_mean"] == pytest.approx(vx, abs=0.02)
    assert result["walked_m"] > 3.0  # type: ignore[operator]
    assert result["seconds"] == pytest.approx(20.0, abs=0.05)


def test_a_weak_robot_falls_and_the_verdict_says_so(tmp_path: Path) -> None:
    plan()
    code, result = trial(tmp_path, POLICY, "--gain", "0.4")
    assert code == 1
    assert result["ok"] is False
    assert result["fell"] or result["tripped"]


def test_perturbed_starts_are_reported_one_by_one(tmp_path: Path) -> None:
    plan()
    code, result = trial(
        tmp_path, POLICY, "--perturbed", "2", "--push-n", "40", "--plot", str(tmp_path / "x.png")
    )
    assert code == 0
    assert [each["seed"] for each in result["perturbed"]] == [1, 2]  # type: ignore[attr-defined]
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_every_direction(tmp_path: Path) -> None:
    plan()
    code, result = trial(tmp_path, POLICY, "--protocol", "directions")
    assert code == 0
    assert result["seconds"] == pytest.approx(21.0, abs=0.05)


def test_a_tracking_policy_runs_its_whole_motion(tmp_path: Path) -> None:
    folder = shared_folder("policies", "beyondmimic_deploy_yaml")
    code, result = trial(tmp_path, str(folder))
    assert code == 0
    assert result["end"] == "the motion is over"
    assert result["seconds"] == pytest.approx(4.96, abs=0.1)
    assert result["mpjpe_rad"] == pytest.approx(0.050, rel=0.2)


def test_no_policy_or_two_ways_of_naming_one(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["try"]) == 2
    assert main(["try", POLICY, "--all", str(tmp_path)]) == 2
    assert main(["try", "--all", str(tmp_path)]) == 2
    assert "no folder there holds an ONNX file" in capfd.readouterr().err
