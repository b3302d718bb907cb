"""ONNX metadata as BeyondMimic, mjlab (old, new and in between) and legged_control2 write it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onboard.configs.errors import OnboardError
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.layout import place
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from tests.policies.models import JOINTS, ROBOT, random_state, zeros_model
from tests.policies.test_deploy_yaml import ISAAC
from tests.policies.test_presets import beyondmimic_model

ISAAC_JOINTS = [JOINTS[slot] for slot in ISAAC]
VELOCITY_TERMS = ("base_ang_vel", "projected_gravity", "joint_pos", "joint_vel", "actions", "command")


def csv(values: Sequence[Any]) -> str:
    """Comma-joined, numbers with three decimals, inner lists joined by `;`, as the exporters do it."""
    return ",".join(
        ";".join(f"{number:.3f}" for number in value)
        if isinstance(value, list | tuple)
        else f"{value:.3f}"
        if isinstance(value, int | float)
        else value
        for value in values
    )


def metadata(terms: Sequence[str] = VELOCITY_TERMS, **changes: str | None) -> dict[str, str]:
    """A velocity policy of mjlab in the robot's own order; None drops a key."""
    base: dict[str, str | None] = {
        "run_path": "local",
        "joint_names": csv(JOINTS),
        "joint_stiffness": csv([10.0 + slot for slot in range(29)]),
        "joint_damping": csv([1.0 + slot / 8 for slot in range(29)]),
        "default_joint_pos": csv([slot / 8 for slot in range(29)]),
        "command_names": "twist",
        "observation_names": csv(terms),
        "action_scale": "0.5",
    }
    return {key: value for key, value in (base | changes).items() if value is not None}


def load(folder: Path, wide: int = 96, overrides: Sequence[str] = (), **options: Any) -> PolicyBundle:
    zeros_model(folder / "policy.onnx", wide, 29, metadata=metadata(**options))
    return load_policy(folder / "policy.onnx", ROBOT, overrides=overrides)


def layout(bundle: PolicyBundle) -> list[tuple[str, int, int]]:
    return [(item.term.term, item.age, item.start) for item in place(bundle.contract, "policy", {})]


def test_the_old_form_in_the_robots_own_order(tmp_path: Path) -> None:
    bundle = load(tmp_path)
    assert bundle.format == "metadata"
    assert bundle.contract.kp == tuple(10.0 + slot for slot in range(29))
    assert layout(bundle) == [
        ("gyro", 0, 0),
        ("gravity", 0, 3),
        ("joint_pos", 0, 6),
        ("joint_vel", 0, 35),
        ("last_action", 0, 64),
        ("velocity", 0, 93),
    ]
    action = bundle.contract.graphs["policy"].action
    assert action is not None
    assert action.scale == 0.5, "a scalar stays one"
    assert [text.partition(":")[0] for text in bundle.defaults[:2]] == ["rate_hz", "imu"]
    assert any("rounded them to three decimals" in text for text in bundle.defaults)


def test_joints_are_taken_by_name_not_by_place(tmp_path: Path) -> None:
    reordered = load(
        tmp_path,
        joint_names=csv(ISAAC_JOINTS),
        joint_stiffness=csv([10.0 + slot for slot in ISAAC]),
        default_joint_pos=csv([slot / 8 for slot in ISAAC]),
        action_scale=csv([0.1 + slot / 100 for slot in ISAAC]),
    )
    policy = Policy(reordered, ROBOT)
    assert policy.kp == pytest.approx(10.0 + np.arange(29))
    assert policy.start_pose == pytest.approx(np.arange(29) / 8)
    raw = np.zeros(29, np.float32)
    raw[2] = 1.0
    assert policy.target(raw)[12] == pytest.approx(12 / 8 + 0.22)
    state = random_state(np.random.default_rng(0))
    policy.reset(state)
    obs = policy.observe(state, policy.neutral_command(), 0)
    assert obs[6 + 2] == pytest.approx(state.q[12] - 12 / 8, abs=1e-6)


@pytest.mark.parametrize(
    "keys",
    [
        {
            "observation_terms_scale": "0.250,1.000,1.000,0.050,1.000,2.000;2.000;0.250",
            "observation_terms_clip": "-inf;inf,-inf;inf,-1.000;1.000,-inf;inf,-inf;inf,-inf;inf",
            "observation_terms_history_length": csv([2, 0, 0, 0, 0, 0]),
            "observation_terms_flatten_history_dim": csv([1.0] * 6),
        },
        {
            "observation_term_scale": "0.25,1.0,1.0,0.05,1.0,[2.0, 2.0, 0.25]",
            "observation_term_clip": "[-inf, inf],[-inf, inf],[-1.0, 1.0],[-inf, inf],[-inf, inf],None",
            "observation_term_history_length": "2,0,0,0,0,0",
            "observation_term_flatten_history_dim": "True,True,True,True,True,True",
        },
    ],
    ids=["released", "in between"],
)
def test_scales_clips_and_histories_per_term(tmp_path: Path, keys: dict[str, str]) -> None:
    bundle = load(tmp_path, wide=99, **keys)
    assert layout(bundle)[:3] == [("gyro", 1, 0), ("gyro", 0, 3), ("gravity", 0, 6)]
    terms = {
        term.term: term
        for block in bundle.contract.graphs["policy"].inputs["obs"].blocks
        for term in block.terms
    }
    assert terms["gyro"].scale == 0.25
    assert terms["gyro"].clip is None, "an infinite clip is none"
    assert terms["joint_pos"].clip == (-1.0, 1.0)
    assert terms["joint_pos"].clip_first
    assert terms["velocity"].scale == (2.0, 2.0, 0.25)
    policy, state = Policy(bundle, ROBOT), random_state(np.random.default_rng(1))
    policy.reset(state)
    obs = policy.observe(state, policy.neutral_command(), 0)
    assert obs[:3] == pytest.approx(0.25 * state.gyro_body), "the first frame fills the history"


def test_histories_whose_axis_was_kept_are_frame_major(tmp_path: Path) -> None:
    keys = {
        "observation_terms_history_length": csv([2.0] * 2),
        "observation_terms_flatten_history_dim": csv([0.0] * 2),
    }
    bundle = load(tmp_path, wide=12, terms=("base_ang_vel", "projected_gravity"), **keys)
    assert layout(bundle) == [("gyro", 1, 0), ("gravity", 1, 3), ("gyro", 0, 6), ("gravity", 0, 9)]


def test_beyondmimics_history_lengths(tmp_path: Path) -> None:
    bundle = load(
        tmp_path, wide=12, terms=("base_ang_vel",), observation_history_lengths="4.000", command_names=""
    )
    assert [age for _, age, _ in layout(bundle)] == [3, 2, 1, 0]


def tracking(**changes: str | None) -> dict[str, str]:
    bodies = ["pelvis", *(f"link_{number}" for number in range(6)), "torso_link", *"abcdef"]
    return metadata(
        ("command", "motion_anchor_ori_b", "base_ang_vel", "joint_pos", "joint_vel", "actions"),
        **{
            "command_names": "motion",
            "joint_names": csv(ISAAC_JOINTS),
            "anchor_body_name": "torso_link",
            "body_names": csv(bodies),
            "action_scale": csv([0.25] * 29),
        }
        | changes,
    )


def test_a_tracking_policy_brings_its_reference(tmp_path: Path) -> None:
    path = beyondmimic_model(tmp_path / "dance.onnx", metadata=tracking())
    bundle = load_policy(path, ROBOT)
    motion = bundle.contract.motion
    assert motion is not None
    assert motion.embedded is not None
    assert (motion.anchor, motion.embedded.anchor_row, motion.quat_order) == ("torso", 7, "wxyz")
    assert len(bundle.motion_frames or ()) == 7
    policy = Policy(bundle, ROBOT)
    policy.reset(State())
    obs = policy.observe(State(), policy.neutral_command(), 4)
    assert obs[:29] == pytest.approx(4 + np.arange(29) / 100)
    assert obs[58:64] == pytest.approx([1, 0, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"action_scale": None},
            r"missing 'graphs\.policy\.action\.scale': the metadata has no 'action_scale'",
        ),
        (
            {"joint_stiffness": None},
            r"missing 'kp': the metadata has no 'joint_stiffness'; give --set kp=VALUE",
        ),
        ({"anchor_body_name": "left_hand"}, "anchor_body_name is 'left_hand', expected torso_link or pelvis"),
        ({"body_names": "pelvis"}, "body_names 'pelvis' lacks the anchor 'torso_link'"),
        ({"command_names": "motion,twist"}, "'command' with command_names 'motion,twist': expected one of"),
        ({"joint_damping": "1.0,two"}, "metadata 'joint_damping' can't be read"),
        ({"joint_damping": "1.0;2.0"}, "metadata 'joint_damping': expected one number per entry"),
        ({"observation_terms_scale": "1.0"}, "has 1 entries for 6 observation_names"),
        ({"observation_terms_clip": "[-1, 1"}, "unbalanced brackets"),
        ({"observation_terms_clip": "1,2,3,4,5,6"}, "expected lower;upper for every term"),
        ({"observation_history_lengths": csv([1.5] * 6)}, "expected whole numbers"),
        (
            {
                "observation_history_lengths": csv([2.0] * 6),
                "observation_terms_flatten_history_dim": csv([1.0, 0.0] * 3),
            },
            "their order can't be told",
        ),
        ({"observation_names": "command,footstep"}, "unknown observation 'footstep'"),
        ({"joint_names": csv(JOINTS[:23])}, "kp has 29 numbers, expected 23"),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_refused(
    tmp_path: Path, changes: dict[str, str | None], expected: str
) -> None:
    path = beyondmimic_model(tmp_path / "dance.onnx", metadata=tracking(**changes))
    with pytest.raises(OnboardError, match=expected):
        load_policy(path, ROBOT)


def test_a_missing_action_scale_can_be_given(tmp_path: Path) -> None:
    path = beyondmimic_model(tmp_path / "dance.onnx", metadata=tracking(action_scale=None))
    bundle = load_policy(path, ROBOT, overrides=["graphs.policy.action.scale=0.4"])
    action = bundle.contract.graphs["policy"].action
    assert action is not None
    assert action.scale == 0.4


def test_base_velocity_is_the_sensors_in_mjlab_and_the_pelvis_elsewhere(tmp_path: Path) -> None:
    def term(folder: Path, **changes: str | None) -> str:
        path = zeros_model(folder / "m.onnx", 3, 29, metadata=metadata(("base_lin_vel",), **changes))
        with pytest.raises(OnboardError, match="no provider is named"):
            load_policy(path, ROBOT)
        bundle = load_policy(path, ROBOT, provider="leg_odometry")
        return bundle.contract.graphs["policy"].inputs["obs"].blocks[0].terms[0].term

    assert term(tmp_path / "mjlab") == "base_lin_vel_imu"
    assert term(tmp_path / "isaac", joint_names=csv(ISAAC_JOINTS)) == "base_lin_vel"
    assert term(tmp_path / "legged_control2", run_path=None) == "base_lin_vel"


def test_legged_control2s_phase_needs_its_period(tmp_path: Path) -> None:
    names = ("base_lin_vel", "base_ang_vel", "projected_gravity", "command", "joint_pos", "joint_vel")
    path = zeros_model(
        tmp_path / "walk.onnx", 103, 29, metadata=metadata((*names, "actions", "phase"), run_path=None)
    )
    with pytest.raises(OnboardError, match=r"missing 'gait\.period_s': the term 'phase' reads a gait clock"):
        load_policy(path, ROBOT, provider="simulator_truth")
    bundle = load_policy(path, ROBOT, overrides=["gait.period_s=0.8"], provider="simulator_truth")
    policy = Policy(bundle, ROBOT)
    policy.reset(State())
    policy.provide_base_velocity((0.0, 0.0, 0.0))
    obs = policy.observe(State(), policy.neutral_command(), 10)  # a quarter of a period
    assert obs[99:] == pytest.approx([0.0, 0.0, 1.0, -1.0], abs=1e-6)


def test_a_format_can_be_asked_for(tmp_path: Path) -> None:
    path = beyondmimic_model(tmp_path / "dance.onnx", metadata=tracking())
    assert load_policy(path, ROBOT, format_name="metadata").format == "metadata"
    assert load_policy(path, ROBOT, "beyondmimic", format_name="preset").preset == "beyondmimic"
    with pytest.raises(OnboardError, match=r"--format deploy\.yaml: nothing of that format is there"):
        load_policy(path, ROBOT, format_name="deploy.yaml")
    with pytest.raises(OnboardError, match=r"unknown format; there are: contract\.yaml, deploy\.yaml"):
        load_policy(path, ROBOT, format_name="onnx")
    with pytest.raises(OnboardError, match="--preset beyondmimic: this policy has a metadata"):
        load_policy(path, ROBOT, "beyondmimic")
