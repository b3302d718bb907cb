"""Every mistake that is made with contracts, injected one by one into good ones.

Golden vectors catch each of them. Without vectors, a fingerprint names those marked with what it says, and
not the others: the table in docs/policies/README.md is this one.
"""

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

from onboard.configs.errors import OnboardError
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.export import contract_text
from onboard.policies.fingerprint import check_fingerprint
from onboard.policies.golden import check_golden
from tests.policies import mistakes as m
from tests.policies.models import ROBOT
from tests.policies.test_golden import PRESETS, SHIPPED
from tests.shared import shared_folder

RL_LAB, RL_MJLAB, BEYONDMIMIC = (
    "unitree_rl_lab_velocity",
    "unitree_rl_mjlab_velocity",
    "beyondmimic_deploy_yaml",
)
MIMIC, DEC_LOCO, PLAYGROUND = "asap_mimic_cr7", "asap_dec_loco", "mujoco_playground_g1"
LOCO, DANCE_PPO, DANCE_SAC = "holosoma_loco_fastsac", "holosoma_wbt_ppo", "holosoma_wbt_fastsac"
WITH_NORMALISER = (RL_MJLAB, PLAYGROUND, LOCO, DANCE_PPO, DANCE_SAC)


class Mistake(NamedTuple):
    """One mistake.

    Attributes:
        change: of the contract's data.
        policies: whose contracts are good before it.
        says: what a fingerprint says about it, for policies with a normaliser; None where it can't see it.
    """

    change: Callable[[m.Data], None]
    policies: tuple[str, ...]
    says: str | None = None


MISTAKES = {
    "gravity upside down": Mistake(
        m.rescale("gravity", -1.0), (RL_LAB, RL_MJLAB, LOCO, PLAYGROUND), "gravity: .* the sign is wrong"
    ),
    "joints in the other order": Mistake(
        m.observe_in_other_order,
        (RL_LAB, BEYONDMIMIC, *WITH_NORMALISER),
        "joint_pos: .* joint order is wrong",
    ),
    "actions in the other order": Mistake(
        m.act_in_other_order, (RL_LAB, BEYONDMIMIC, *WITH_NORMALISER), "last_action: .* joint order is wrong"
    ),
    "frame-major for term-major": Mistake(m.other_layout, (RL_LAB, MIMIC, "falcon")),
    "history reversed": Mistake(m.reversed_history, (RL_LAB, MIMIC, DEC_LOCO, "falcon")),
    "present frame in the history": Mistake(m.current_in_history, (MIMIC, DEC_LOCO)),
    "joint velocity twenty times too small": Mistake(
        m.rescale("joint_vel", 0.05), (RL_MJLAB, PLAYGROUND, DANCE_PPO), "joint_vel: with its scale of 0.05"
    ),
    "joint velocity twenty times too large": Mistake(
        m.rescale("joint_vel", 20.0), (RL_LAB, MIMIC, "falcon", LOCO), "joint_vel: with its scale of 1,"
    ),
    "gyro scale of another family": Mistake(m.rescale("gyro", 1.25), (RL_LAB, LOCO)),
    "height without its factor 2": Mistake(m.rescale("height", 0.5), (DEC_LOCO, "falcon")),
    "gains in the other order": Mistake(m.in_other_order("kp", "kd"), (RL_LAB, RL_MJLAB, LOCO)),
    "default pose in the other order (tracking)": Mistake(
        m.in_other_order("default_rad"),
        (DANCE_PPO, DANCE_SAC),
        "the same numbers in another order: the default pose was read in the wrong order",
    ),
    "default pose in the other order (walking)": Mistake(
        m.in_other_order("default_rad"), (RL_LAB, RL_MJLAB, LOCO, PLAYGROUND)
    ),
    "positions absolute (tracking)": Mistake(
        lambda data: data.update(default_rad=[0.0] * 29), (DANCE_PPO,), "default_rad: .* the contract says"
    ),
    "last action zero": Mistake(
        m.rescale("last_action", 0.0),
        (RL_LAB, MIMIC, *WITH_NORMALISER),
        "last_action: blanked by a scale of 0",
    ),
    "last action stored scaled": Mistake(
        m.rescale("last_action", 0.25),
        (RL_LAB, MIMIC, *WITH_NORMALISER),
        "last_action: the network's own answ",
    ),
    "action scale 1.0 for 0.25·effort/kp": Mistake(
        m.action_scale(1.0), (DANCE_PPO,), "the action scale is too large"
    ),
    "action scale 0.25·effort/kp for 1.0": Mistake(
        m.action_scale("effort"), (DANCE_SAC,), "the action scale is too small"
    ),
    "raw action cut at 5": Mistake(m.clip_raw, (MIMIC, LOCO, DANCE_PPO)),
    "pelvis for torso as anchor": Mistake(m.motion(anchor="pelvis"), (BEYONDMIMIC, DANCE_PPO)),
    "motion at 50 instead of 30 Hz": Mistake(m.motion(rate_hz=50.0), (BEYONDMIMIC,)),
    "reference velocity zero": Mistake(
        m.rescale("ref_joint_vel", 0.0), (BEYONDMIMIC, DANCE_PPO), "ref_joint_vel: blanked by a scale of 0"
    ),
    "base velocity zero": Mistake(
        m.rescale("base_lin_vel_imu", 0.0), (PLAYGROUND,), "base_lin_vel_imu: blanked by a scale of 0"
    ),
}
CASES = [(name, policy) for name, mistake in MISTAKES.items() for policy in mistake.policies]


@functools.cache
def good(name: str) -> PolicyBundle:
    path = name if name in SHIPPED else shared_folder("policies", name)
    return load_policy(path, ROBOT, PRESETS.get(name), provider="simulator_truth")


def copied(source: Path, folder: Path) -> str:
    """A file and what belongs to it (`model.onnx.data`) in a folder; its name there."""
    for path in source.parent.glob(f"{source.name}*"):
        shutil.copy(path, folder / path.name)
    return source.name


def injected(folder: Path, name: str, change: Callable[[m.Data], None]) -> PolicyBundle:
    """A good policy with one change in its contract, in a folder with copies of its files."""
    bundle = good(name)
    data = yaml.safe_load(contract_text(bundle.contract))
    for graph in data["graphs"].values():
        graph["model"] = copied(bundle.folder / graph["model"], folder)
    if (data.get("motion") or {}).get("file") is not None:
        data["motion"]["file"] = copied(bundle.folder / data["motion"]["file"], folder)
    change(data)
    (folder / "contract.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    return load_policy(folder, ROBOT, provider="simulator_truth")


@pytest.mark.parametrize(("mistake", "policy"), CASES)
def test_golden_vectors_catch_every_mistake(tmp_path: Path, mistake: str, policy: str) -> None:
    bundle = injected(tmp_path, policy, MISTAKES[mistake].change)
    report = check_golden(bundle, ROBOT, shared_folder("golden", f"{policy}.npz"))
    assert not report.ok
    assert report.findings


@pytest.mark.parametrize("policy", WITH_NORMALISER)
def test_good_contracts_have_a_good_fingerprint(policy: str) -> None:
    report = check_fingerprint(good(policy))
    assert report.inputs, "a normaliser was found"
    assert report.findings == ()


@pytest.mark.parametrize("policy", [RL_LAB, MIMIC, DEC_LOCO, "falcon", BEYONDMIMIC, "holosoma_loco_ppo"])
def test_without_a_normaliser_there_is_no_fingerprint(policy: str) -> None:
    assert check_fingerprint(good(policy)).inputs == ()


@pytest.mark.parametrize(("mistake", "policy"), [case for case in CASES if case[1] in WITH_NORMALISER])
def test_a_fingerprint_names_what_it_can_see_and_nothing_else(
    tmp_path: Path, mistake: str, policy: str
) -> None:
    report = check_fingerprint(injected(tmp_path, policy, MISTAKES[mistake].change))
    says = MISTAKES[mistake].says
    if says is None:
        assert report.findings == ()
    else:
        assert any(_matches(says, text) for text in report.findings), report.findings


def _matches(pattern: str, text: str) -> bool:
    first, _, last = pattern.partition(" .* ")
    return first in text and last in text


@pytest.mark.parametrize("policy", [RL_LAB, DANCE_PPO, MIMIC])
@pytest.mark.parametrize("change", [m.swapped_quaternions, m.world_gyro])
def test_a_state_handed_over_wrongly_is_caught(
    tmp_path: Path, policy: str, change: Callable[[m.Vectors], None]
) -> None:
    with np.load(shared_folder("golden", f"{policy}.npz")) as file:
        vectors: dict[str, Any] = dict(file)
    change(vectors)
    np.savez(tmp_path / "wrong.npz", **vectors)
    assert not check_golden(good(policy), ROBOT, tmp_path / "wrong.npz").ok


def test_the_wrong_quaternion_order_of_a_reference_does_not_even_load(tmp_path: Path) -> None:
    with pytest.raises(OnboardError, match=r"--set motion\.quat_order=xyzw"):
        injected(tmp_path, DANCE_PPO, m.motion(quat_order="wxyz"))


def test_a_network_that_wants_the_anchor_by_columns_is_caught(tmp_path: Path) -> None:
    with np.load(shared_folder("golden", f"{DANCE_PPO}_mid.npz")) as file:
        vectors: dict[str, Any] = dict(file)
    m.flattened_by_columns(vectors, slice(148, 154))
    np.savez(tmp_path / "wrong.npz", **vectors)
    report = check_golden(good(DANCE_PPO), ROBOT, tmp_path / "wrong.npz")
    assert "anchor_orientation" in report.findings[0]
