"""Leg odometry over real DDS in real time: a policy that reads its own base velocity walks on it."""

import json
from pathlib import Path

import numpy as np
import pytest

from onboard.cli.main import main
from onboard.logging.rollout import Rollout
from tests.shared import shared_folder

WALK_20_S = (
    "steps:\n  - {press: start, until: ramp}\n  - {until: hold, for_s: 4.0}\n"
    "  - {press: go, velocity: [0, 0, 0], until: policy, for_s: 2}\n"
    "  - {velocity: [0.5, 0, 0], for_s: 20}\n"
)


@pytest.mark.slow
def test_playground_walks_20_s_on_its_own_estimate(tmp_path: Path) -> None:
    model = shared_folder("policies", "mujoco_playground_g1", "g1_policy.onnx")
    (tmp_path / "script.yaml").write_text(WALK_20_S)
    out = tmp_path / "out.json"
    chosen = ["--policy", str(model), "--preset", "mujoco_playground_g1", "--provider", "leg_odometry"]
    files = ["--script", str(tmp_path / "script.yaml"), "--out", str(tmp_path), "--json", str(out)]
    main(["demo", *chosen, *files, "--min-walk-m", "6"])
    result = json.loads(out.read_text())
    assert result["fell"] is False, result
    assert result["walked_m"] > 6.0
    with Rollout(result["rollout"]) as rollout:
        walking = (rollout.column("policy") == 0) & (np.abs(rollout.column("command")[:, 0]) > 0.3)
        velocity = rollout.column("base_velocity")[walking]
        contact, force = rollout.column("contact")[walking], rollout.column("contact_force")[walking]
    assert len(velocity) > 950
    assert np.isfinite(velocity).all(), "never older than 60 ms"
    assert velocity[50:, 0].mean() == pytest.approx(0.6, abs=0.15)
    assert (contact >= 0).all()
    assert 0.3 < contact.mean() < 0.95
    assert force.sum(1).mean() == pytest.approx(327.0, rel=0.1)
