"""The goals of the leg odometry over every walking policy at hand; a long suite."""

import json
from pathlib import Path

import pytest

from benchmarks.odometry import WALKERS, main
from onboard.cli.main import main as onboard
from tests.shared import shared_folder


@pytest.mark.slow
def test_every_walking_policy_meets_every_goal(tmp_path: Path) -> None:
    shared_folder("policies")
    code = main(["--json", str(tmp_path / "out.json")])
    result = json.loads((tmp_path / "out.json").read_text())
    assert code == 0, {name: one["misses"] for name, one in result["policies"].items()}
    assert set(result["policies"]) == {walker.name for walker in WALKERS}


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["simulator_truth", "leg_odometry"])
def test_playground_walks_in_lock_step(tmp_path: Path, provider: str) -> None:
    model = shared_folder("policies", "mujoco_playground_g1", "g1_policy.onnx")
    out = tmp_path / "out.json"
    chosen = ["try", str(model), "--preset", "mujoco_playground_g1", "--provider", provider]
    assert onboard([*chosen, "--json", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["fell"] is False
    assert result["seconds"] == pytest.approx(20.0, abs=0.1)
    assert result["vx_mean"] == pytest.approx(0.59, abs=0.1)
