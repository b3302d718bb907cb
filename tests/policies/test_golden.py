from pathlib import Path

import numpy as np
import pytest

from onboard.configs.errors import PolicyError
from onboard.policies.bundle import load_policy
from onboard.policies.golden import check_golden, read_golden
from tests.policies.models import ROBOT
from tests.shared import shared_folder

PRESETS = {
    "asap_dec_loco": "asap_dec_loco",
    "asap_mimic_cr7": "asap_mimic",
    "falcon": "falcon",
    "falcon_dec_loco": "falcon_dec_loco",
    "mujoco_playground_g1": "mujoco_playground_g1",
    "unitree_rl_lab_velocity": None,
    "unitree_rl_mjlab_velocity": None,
    "beyondmimic_deploy_yaml": None,
}
"""Shared policies, with the preset of those that say nothing themselves."""

SHIPPED = ("holosoma_loco_ppo", "holosoma_loco_fastsac", "holosoma_wbt_ppo", "holosoma_wbt_fastsac")
MIDWAY = ("beyondmimic_deploy_yaml_mid", "holosoma_wbt_ppo_mid", "holosoma_wbt_fastsac_mid")
"""The same policies, started at frame 150 of their motion."""


@pytest.mark.parametrize("name", [*SHIPPED, *PRESETS, *MIDWAY])
def test_every_published_policy_equals_the_independent_implementation(name: str) -> None:
    policy = name.removesuffix("_mid")
    path = policy if policy in SHIPPED else shared_folder("policies", policy)
    bundle = load_policy(path, ROBOT, PRESETS.get(policy), provider="simulator_truth")
    report = check_golden(bundle, ROBOT, shared_folder("golden", f"{name}.npz"))
    assert report.ticks == 20
    assert report.ok, report.findings
    assert report.obs_max_abs_diff <= 1e-5
    assert report.action_max_abs_diff <= 1e-4
    assert report.target_max_abs_diff <= 1e-4


def test_a_wrong_contract_is_caught_and_the_term_is_named() -> None:
    bundle = load_policy(
        "holosoma_loco_ppo", ROBOT, overrides=["default_rad=" + str([0.0] * 29), "name=wrong"]
    )
    report = check_golden(bundle, ROBOT, shared_folder("golden", "holosoma_loco_ppo.npz"))
    assert not report.ok
    assert report.findings[0].startswith("observation: differs from tick 0 on, there in 12 of 100 elements")
    assert "actor_obs: joint_pos left_knee_joint): 0.669" in report.findings[0]
    assert report.findings[1].startswith("raw action: differs from tick 0 on")
    assert report.findings[2].startswith("target: differs from tick 0 on")


def test_vectors_of_another_policy_are_refused() -> None:
    with pytest.raises(PolicyError, match="480 wide, the policy's is 100"):
        check_golden(
            load_policy("holosoma_loco_ppo", ROBOT),
            ROBOT,
            shared_folder("golden", "unitree_rl_lab_velocity.npz"),
        )


def test_a_golden_file_with_a_pickled_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npz"
    np.savez(path, obs=np.array([{"a": 1}], dtype=object))
    with pytest.raises(PolicyError, match="can't be read as golden vectors"):
        read_golden(path)


def test_a_golden_file_must_be_complete(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npz"
    np.savez(path, obs=np.zeros((1, 3)))
    with pytest.raises(PolicyError, match="no q, dq, quat_wxyz"):
        read_golden(path)
    with pytest.raises(PolicyError, match="absent"):
        read_golden(tmp_path / "absent.npz")
