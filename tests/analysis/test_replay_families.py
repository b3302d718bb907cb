"""Every family of policies, flown in lock-step, replays bit by bit; with a residual and with a switch too."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onboard.analysis.replay import Parity, replay
from onboard.cli.recorded_trial import RecordedTrial
from onboard.cli.run_options import run_config
from onboard.configs.script import ScriptConfig, Step
from onboard.logging.rollout import Rollout
from onboard.policies.policy import Policy
from onboard.policies.residual.contract import Coefficients, Residual
from onboard.policies.residual.files import write_residual
from onboard.runtime.assembly import make_plan
from tests.shared import shared_folder

START = (Step(press="start", until="ramp"), Step(until="hold"))
WALK = Step(press="go", velocity=(0.3, 0.0, 0.1), until="policy", for_s=1.0)
FAMILIES = (
    {"policy": "asap_dec_loco", "preset": "asap_dec_loco"},
    {"policy": "asap_mimic_cr7", "preset": "asap_mimic"},
    {"policy": "beyondmimic_deploy_yaml"},
    {"policy": "falcon", "preset": "falcon"},
    {"policy": "falcon_dec_loco", "preset": "falcon_dec_loco"},
    {"policy": "mujoco_playground_g1", "preset": "mujoco_playground_g1", "provider": "leg_odometry"},
    {"policy": "unitree_rl_lab_velocity"},
    {"policy": "unitree_rl_mjlab_velocity"},
)


def fly(folder: Path, *steps: Step, **config: Any) -> list[Parity]:
    """Record one run and replay every policy of it."""
    plan = make_plan(run_config(gantry=True, **config))
    result = RecordedTrial(plan, ScriptConfig((*START, *steps)), (), folder).run(lambda seconds: None)
    with Rollout(result["rollout"]) as rollout:
        return [replay(rollout, k, Policy(bundle, plan.robot)) for k, bundle in enumerate(plan.bundles)]


def shared_policy(config: dict[str, str]) -> dict[str, str]:
    return config | {"policy": str(shared_folder("policies", config["policy"]))}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family["policy"])
def test_a_familys_rollout_rebuilds_its_observations(family: dict[str, str], tmp_path: Path) -> None:
    (found,) = fly(tmp_path, WALK, **shared_policy(family))
    assert found.rows >= 50
    assert found.unknown == 0
    assert found.holds, (found.obs, found.action)
    assert found.obs.largest == 0.0


@pytest.mark.parametrize(
    ("arm", "feedback"),
    [("keep", "base"), ("keep", "combined"), ("shadow", "base"), ("blocks", "combined")],
)
def test_a_residual_changes_nothing_about_that(arm: str, feedback: Any, tmp_path: Path) -> None:
    walker = shared_policy({"policy": "unitree_rl_lab_velocity"})
    joint = "left_ankle_pitch_joint"
    residual = Residual(
        schema=1,
        name="ankle",
        kind="linear",
        mode="invert",
        unit="rad",
        joints=(joint,),
        coefficients={joint: Coefficients(-0.3, 0.01)},
        feedback=feedback,
    )
    path = write_residual(residual, tmp_path / "ankle.yaml")
    steps = (WALK, Step(for_s=1.5)) if arm == "blocks" else (WALK,)
    (found,) = fly(tmp_path, *steps, residual=str(path), arm=arm, block_s=1.0, **walker)
    assert found.holds, (found.obs, found.action)
    with Rollout(next(tmp_path.glob("*.h5"))) as rollout:
        assert np.abs(rollout.policies[0].column("action_residual")).max() > 0.01


def test_walk_motion_walk_replays_both(tmp_path: Path) -> None:
    walker = shared_policy({"policy": "unitree_rl_lab_velocity"})
    dance = shared_policy({"policy": "beyondmimic_deploy_yaml"})
    steps = (WALK, Step(policy=1, for_s=3.0), Step(policy=0, for_s=2.0))
    found = fly(tmp_path, *steps, also=[dance], **walker)
    assert [parity.policy for parity in found] == ["unitree_rl_lab_velocity", "beyondmimic_deploy_yaml"]
    for parity in found:
        assert parity.rows > 50
        assert parity.holds, (parity.obs, parity.action)
