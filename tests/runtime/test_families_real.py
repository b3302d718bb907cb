"""Other families over real DDS in real time: a walker, a tracker, and walk, motion, walk; a long suite."""

import json
from pathlib import Path

import numpy as np
import pytest

from onboard.cli.main import main
from onboard.logging.rollout import Rollout
from tests.shared import shared_folder

TO_HOLD = "steps:\n  - {press: start, until: ramp}\n  - {until: hold, for_s: 4.0}\n"
WALK = (
    TO_HOLD
    + "  - {press: go, velocity: [0, 0, 0], until: policy, for_s: 2}\n"
    + "  - {velocity: [0.5, 0, 0], for_s: 6}\n  - {velocity: [0, 0, 0], for_s: 2}\n"
)
TRACK = TO_HOLD + "  - {press: go, until: policy, for_s: 1}\n  - {until: hold, timeout_s: 30}\n"
WALK_MOTION_WALK = (
    TO_HOLD
    + "  - {press: go, velocity: [0, 0, 0], until: policy, for_s: 3}\n"
    + "  - {policy: 1, for_s: 7.5}\n"
    + "  - {velocity: [0.4, 0, 0], for_s: 4}\n  - {velocity: [0, 0, 0], for_s: 2}\n"
)


def demo(tmp_path: Path, script: str, *arguments: str) -> dict[str, object]:
    (tmp_path / "script.yaml").write_text(script)
    out = tmp_path / "out.json"
    fixed = ["--script", str(tmp_path / "script.yaml"), "--out", str(tmp_path), "--json", str(out)]
    code = main(["demo", *arguments, *fixed])
    result: dict[str, object] = json.loads(out.read_text())
    assert code == 0, result
    assert result["fell"] is False
    return result


@pytest.mark.slow
def test_a_walker_of_another_family(tmp_path: Path) -> None:
    folder = shared_folder("policies", "unitree_rl_lab_velocity")
    result = demo(tmp_path, WALK, "--policy", str(folder), "--min-walk-m", "2.0")
    assert 49.9 < result["rate_hz"] < 50.1  # type: ignore[operator]


@pytest.mark.slow
def test_a_tracking_policy(tmp_path: Path) -> None:
    folder = shared_folder("policies", "beyondmimic_deploy_yaml")
    result = demo(tmp_path, TRACK, "--policy", str(folder), "--min-walk-m", "0")
    with Rollout(str(result["rollout"])) as rollout:
        index = rollout.column("motion_index")
        assert index.max() > 240
        assert (np.diff(index[index >= 0]) <= 1).all()


@pytest.mark.slow
def test_walk_motion_walk_in_one_rollout(tmp_path: Path) -> None:
    loco = next(shared_folder("policies", "asap_dec_loco").glob("*.onnx"))
    motion = next(shared_folder("policies", "asap_mimic_cr7").glob("*.onnx"))
    chosen = ["--policy", str(loco), "--preset", "asap_dec_loco", "--also", f"{motion}@asap_mimic"]
    result = demo(tmp_path, WALK_MOTION_WALK, *chosen, "--min-walk-m", "0.8")
    with Rollout(str(result["rollout"])) as rollout:
        policy = rollout.column("policy")
        order = [int(policy[0]), *(int(p) for p in policy[1:][np.diff(policy) != 0])]
        assert order == [-1, 0, 1, 0, -1]
        assert [log.name for log in rollout.policies] == [loco.stem, motion.stem]
