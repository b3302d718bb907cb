"""Statistics beside the model: applied to the last digit, never assumed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onboard.configs.errors import OnboardError
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from tests.policies.models import ROBOT, contract_data, random_state, write_bundle, zeros_model
from tests.policies.test_deploy_yaml import deploy, write

BLOCKS = [{"terms": [{"term": "gyro"}, {"term": "joint_vel"}]}]
RNG = np.random.default_rng(3)
MEAN, STD = RNG.normal(size=15).astype(np.float32), RNG.uniform(0.5, 2.0, 15).astype(np.float32)


def observed(folder: Path, overrides: tuple[str, ...] = (), **of_input: Any) -> tuple[Any, Any]:
    """Plain and normalised observation of one state."""
    zeros_model(folder / "policy.onnx", 15, 12)
    data = contract_data(BLOCKS)
    data["graphs"]["policy"]["inputs"]["obs"] |= of_input
    policy = Policy(load_policy(write_bundle(folder, data), ROBOT, overrides=overrides), ROBOT)
    state = random_state(np.random.default_rng(0))
    policy.reset(state)
    obs = policy.observe(state, policy.neutral_command(), 0)
    return np.concatenate([state.gyro_body, state.dq[:12]]), obs


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"mean": MEAN, "std": STD, "eps": 0.01}, STD + 0.01),
        ({"_mean": MEAN[None], "_std": STD[None], "epsilon": np.array([0.5])}, STD + 0.5),
        ({"running_mean": MEAN, "running_var": STD**2, "eps": 1e-5}, np.sqrt(STD**2 + 1e-5)),
    ],
    ids=["instinct", "rsl_rl", "rl_games"],
)
def test_a_normaliser_file_is_applied(tmp_path: Path, arrays: dict[str, Any], expected: Any) -> None:
    np.savez(tmp_path / "n.npz", **arrays)
    plain, obs = observed(tmp_path, normaliser={"file": "n.npz"})
    assert obs == pytest.approx((plain - MEAN) / expected, abs=1e-6)


def test_its_clip_and_an_epsilon_of_the_contract(tmp_path: Path) -> None:
    np.savez(tmp_path / "n.npz", mean=MEAN, std=STD, eps=0.01)
    plain, obs = observed(tmp_path, normaliser={"file": "n.npz", "epsilon": 0.0, "clip": 0.5})
    assert obs == pytest.approx(((plain - MEAN) / STD).clip(-0.5, 0.5), abs=1e-6)


def test_the_file_counts_among_what_decides(tmp_path: Path) -> None:
    np.savez(tmp_path / "n.npz", mean=MEAN, std=STD, eps=0.01)
    observed(tmp_path, normaliser={"file": "n.npz"})
    assert str(tmp_path / "n.npz") in load_policy(tmp_path, ROBOT).model_paths


def test_a_file_beside_a_model_is_found_and_said(tmp_path: Path) -> None:
    folder = write(tmp_path, deploy())
    np.savez(folder / "exported" / "policy_normalizer.npz", mean=np.ones(64), std=np.full(64, 2.0))
    key = "graphs.policy.inputs.obs.normaliser"
    with pytest.raises(OnboardError, match=rf"holds no epsilon, .* give --set {key}\.epsilon=VALUE"):
        load_policy(folder, ROBOT)
    bundle = load_policy(folder, ROBOT, overrides=[f"{key}.epsilon=0.0"])
    assert f"{key}: exported/policy_normalizer.npz lies beside the model and is applied" in bundle.defaults
    policy = Policy(bundle, ROBOT)
    policy.reset(State())
    assert policy.observe(State(), policy.neutral_command(), 0)[:3] == pytest.approx([-0.5] * 3)


def test_a_contract_of_our_own_must_name_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "normaliser.npz", mean=MEAN, std=STD, eps=0.01)
    with pytest.raises(OnboardError, match=r"normaliser\.npz lies beside the model, but no input has a norm"):
        observed(tmp_path)


def test_whose_it_is_must_be_clear(tmp_path: Path) -> None:
    folder = write(tmp_path, deploy())
    for name in ("a_normalizer.npz", "b_normalizer.npz"):
        np.savez(folder / "exported" / name, mean=np.ones(64), std=np.ones(64), eps=0.0)
    with pytest.raises(OnboardError, match=r"whose statistics a_normalizer\.npz, b_normalizer\.npz holds"):
        load_policy(folder, ROBOT)


@pytest.mark.parametrize(
    ("arrays", "described", "expected"),
    [
        ({"mean": MEAN, "eps": 0.1}, {}, "no mean and deviation in it; it has mean, eps"),
        ({"mean": MEAN, "std": STD[:3], "eps": 0.1}, {}, "15 means, 3 deviations"),
        ({"mean": MEAN[:3], "std": STD[:3], "eps": 0.1}, {}, "3 means for 15 numbers"),
        ({"mean": MEAN, "std": 0 * STD, "eps": 0.0}, {}, "a deviation is not positive"),
        ({"mean": MEAN, "std": STD * np.nan, "eps": 0.1}, {}, "is not finite"),
        ({"mean": MEAN, "std": STD, "eps": 0.1}, {"mean": [0.0]}, "both a file and numbers of its own"),
        ({"mean": np.array([{}])}, {}, "can't be read as a normaliser"),
        ({}, {"file": "absent.npz"}, "can't be read as a normaliser"),
    ],
)
def test_statistics_that_make_no_sense_are_refused(
    tmp_path: Path, arrays: dict[str, Any], described: dict[str, Any], expected: str
) -> None:
    np.savez(tmp_path / "n.npz", **arrays)
    with pytest.raises(OnboardError, match=expected):
        observed(tmp_path, normaliser={"file": "n.npz"} | described)
