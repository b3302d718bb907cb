from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from onboard.configs.errors import ConfigError, OnboardError
from onboard.configs.robot import load_robot
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.layout import place
from onboard.policies.policy import Policy
from tests.policies.models import JOINTS, ROBOT, two_inputs_model, zeros_model

ISAAC = [
    0,
    6,
    12,
    1,
    7,
    13,
    2,
    8,
    14,
    3,
    9,
    15,
    22,
    4,
    10,
    16,
    23,
    5,
    11,
    17,
    24,
    18,
    25,
    19,
    26,
    20,
    27,
    21,
    28,
]
G1_23DOF = [*range(13), *range(15, 20), *range(22, 27)]


def deploy(**changes: Any) -> dict[str, Any]:
    """A velocity policy in Isaac order; every per-joint number tells its joint."""
    data: dict[str, Any] = {
        "joint_ids_map": ISAAC,
        "step_dt": 0.02,
        "stiffness": [10.0 + slot for slot in range(29)],
        "damping": [1.0 + 0.1 * slot for slot in range(29)],
        "default_joint_pos": [0.01 * slot for slot in ISAAC],
        "commands": {
            "base_velocity": {"ranges": {"lin_vel_x": [-0.5, 1.0], "lin_vel_y": None, "heading": None}}
        },
        "actions": {
            "JointPositionAction": {
                "clip": None,
                "joint_names": [".*"],
                "scale": [0.25] * 29,
                "offset": [0.01 * slot for slot in ISAAC],
                "joint_ids": None,
            }
        },
        "observations": {
            "base_ang_vel": {"params": {}, "clip": None, "scale": [0.2] * 3, "history_length": 2},
            "joint_pos_rel": {"params": {}, "clip": [-1, 1], "scale": [2.0] * 29, "history_length": 2},
        },
    }
    return data | changes


def write(folder: Path, data: dict[str, Any], wide: int = 64, name: str = "params", narrow: int = 29) -> Path:
    zeros_model(folder / "exported" / "policy.onnx", wide, narrow)
    (folder / name).mkdir()
    (folder / name / "deploy.yaml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return folder


def load(folder: Path, data: dict[str, Any], wide: int = 64, **options: Any) -> PolicyBundle:
    return load_policy(write(folder, data, wide, **options), ROBOT)


def test_gains_are_in_motor_order_and_the_rest_in_policy_order(tmp_path: Path) -> None:
    bundle = load(tmp_path, deploy())
    policy = Policy(bundle, ROBOT)
    assert policy.kp.tolist() == [10.0 + slot for slot in range(29)]
    assert policy.kd == pytest.approx(1.0 + 0.1 * np.arange(29))
    assert policy.start_pose == pytest.approx(0.01 * np.arange(29))
    assert bundle.contract.observed_joints == tuple(JOINTS[slot] for slot in ISAAC)
    assert bundle.contract.commands.lin_vel_x == (-0.5, 1.0)
    raw = np.zeros(29, np.float32)
    raw[2] = 1.0  # third in policy order: the waist's yaw, motor 12
    assert policy.target(raw)[12] == pytest.approx(0.12 + 0.25)


@pytest.mark.parametrize("name", ["params", "param"])
def test_folder_and_onnx_path_name_the_same_bundle(tmp_path: Path, name: str) -> None:
    write(tmp_path, deploy(), name=name)
    by_folder = load_policy(tmp_path, ROBOT)
    by_file = load_policy(tmp_path / "exported" / "policy.onnx", ROBOT)
    assert by_folder.contract == by_file.contract
    assert by_folder.name == tmp_path.name


def test_history_is_term_major_unless_the_file_says_gym(tmp_path: Path) -> None:
    def layout(folder: Path, **changes: Any) -> list[tuple[str, int, int]]:
        bundle = load(folder, deploy(**changes))
        return [(item.term.term, item.age, item.start) for item in place(bundle.contract, "policy", {})]

    assert layout(tmp_path / "a") == [
        ("gyro", 1, 0),
        ("gyro", 0, 3),
        ("joint_pos", 1, 6),
        ("joint_pos", 0, 35),
    ]
    gym = [("gyro", 1, 0), ("joint_pos", 1, 3), ("gyro", 0, 32), ("joint_pos", 0, 35)]
    assert layout(tmp_path / "b", use_gym_history=True) == gym
    terms = deploy()["observations"]
    assert layout(tmp_path / "c", observations={"use_gym_history": True} | terms) == gym
    assert layout(tmp_path / "d", observations={"obs": {"use_gym_history": True} | terms}) == gym
    assert layout(tmp_path / "e", observations={"use_gym_history": True, "obs": terms}) == gym


def test_clip_comes_before_the_scale_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    def first(folder: Path, data: dict[str, Any]) -> bool:
        blocks = load(folder, data).contract.graphs["policy"].inputs["obs"].blocks
        return blocks[1].terms[0].clip_first

    assert first(tmp_path / "a", deploy())
    data = deploy()
    data["observations"]["joint_pos_rel"]["scale_first"] = True
    assert not first(tmp_path / "b", data)
    whole = deploy(observations={"scale_first": True} | deploy()["observations"])
    assert not first(tmp_path / "c", whole)
    whole["observations"]["joint_pos_rel"]["scale_first"] = False
    assert first(tmp_path / "d", whole), "a term's own word counts more than its group's"


def test_several_groups_are_several_inputs(tmp_path: Path) -> None:
    terms = deploy()["observations"]
    groups = {
        "state": {"joint_pos_rel": terms["joint_pos_rel"]},
        "imu": {"base_ang_vel": terms["base_ang_vel"]},
    }
    write(tmp_path, deploy(observations=groups))
    two_inputs_model(tmp_path / "exported" / "policy.onnx", {"imu": 6, "state": 58}, 29)
    inputs = load_policy(tmp_path, ROBOT).contract.graphs["policy"].inputs
    assert {name: spec.blocks[0].terms[0].term for name, spec in inputs.items()} == {
        "state": "joint_pos",
        "imu": "gyro",
    }
    (tmp_path / "params" / "deploy.yaml").write_text(yaml.safe_dump(deploy()), encoding="utf-8")
    with pytest.raises(
        OnboardError, match="one list of observations, but the model has the inputs imu, state"
    ):
        load_policy(tmp_path, ROBOT)


def test_a_term_of_two_parts_stays_together_in_each_frame(tmp_path: Path) -> None:
    terms = {"gait_phase": {"params": {"period": 0.8}, "scale": [1.0, 2.0], "history_length": 2}}
    bundle = load(tmp_path, deploy(observations=terms), wide=4)
    placed = place(bundle.contract, "policy", {})
    assert [(item.term.term, item.term.scale, item.age) for item in placed] == [
        ("gait_sin", (1.0,), 1),
        ("gait_cos", (2.0,), 1),
        ("gait_sin", (1.0,), 0),
        ("gait_cos", (2.0,), 0),
    ]
    assert bundle.contract.gait is not None
    assert bundle.contract.gait.period_s == 0.8


def test_python_tags_are_read_and_never_executed(tmp_path: Path) -> None:
    write(tmp_path, deploy())
    path = tmp_path / "params" / "deploy.yaml"
    text = path.read_text()
    tagged = text.replace(
        "joint_ids: null", "joint_ids: !!python/object/apply:builtins.slice [null, null, null]"
    )
    tagged = tagged.replace("clip:\n    - -1\n    - 1\n", "clip: !!python/tuple [-1, 1]\n")
    assert tagged.count("!!python") == 2
    path.write_text(tagged)
    plain = load(tmp_path / "plain", deploy())
    assert load_policy(tmp_path, ROBOT).contract.graphs == plain.contract.graphs
    marker = tmp_path / "executed"
    path.write_text(
        text.replace("joint_ids: null", f"joint_ids: !!python/object/apply:os.mkdir ['{marker}']")
    )
    with pytest.raises(
        ConfigError, match=r"deploy\.yaml: line \d+ not valid YAML: could not determine a constr"
    ):
        load_policy(tmp_path, ROBOT)
    assert not marker.exists()


def test_23_joints_go_to_their_slots_by_name(tmp_path: Path) -> None:
    robot = load_robot("g1_23dof")
    data = deploy(
        joint_ids_map=G1_23DOF,
        stiffness=[float(slot) for slot in G1_23DOF],
        damping=[1.0] * 23,
        default_joint_pos=[0.01 * slot for slot in G1_23DOF],
        observations={"joint_vel_rel": {"scale": [1.0] * 23}},
        actions={"JointPositionAction": {"scale": [0.25] * 23}},
    )
    folder = write(tmp_path, data, wide=23, narrow=23)
    policy = Policy(load_policy(folder, robot), robot)
    assert policy.kp[[13, 14, 20, 21, 27, 28]].tolist() == [0.0] * 6
    assert policy.kp[G1_23DOF].tolist() == [float(slot) for slot in G1_23DOF]
    raw = np.zeros(23, np.float32)
    raw[13] = 1.0  # fourteenth joint of the policy is the left shoulder's pitch, motor 15
    assert policy.target(raw)[15] == pytest.approx(0.15 + 0.25)
    with pytest.raises(OnboardError, match="no gains for waist_roll_joint"):
        load_policy(folder, ROBOT)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"stifness": []}, "unknown key 'stifness'"),
        ({"joint_ids_map": [*ISAAC[:28], 0]}, "is not a list of different motor slots, 0 to 28"),
        ({"default_joint_pos": [0.0] * 28}, "default_joint_pos has 28 numbers, joint_ids_map has 29"),
        ({"stiffness": [1.0] * 23}, "stiffness has 23 numbers for 29 joints out of motor order"),
        ({"observations": {"foot_contact": {"scale": [1.0]}}}, "unknown observation 'foot_contact'"),
        (
            {"observations": {"gait_phase": {"scale": [1.0, 1.0]}}},
            "params.period: expected a positive number",
        ),
        ({"observations": {"base_ang_vel": {"scale": [1.0] * 4}}}, "scale has 4 numbers, expected 3"),
        ({"observations": {"base_lin_vel": {"scale": [1.0] * 3}}}, "no provider is named"),
        ({"observations": {"obs": [1, 2]}}, r"observations\.obs: expected keys and values, found \[1, 2\]"),
        (
            {"observations": {"scale_first": "no", "base_ang_vel": {"scale": [1.0] * 3}}},
            "scale_first: Expected `bool`",
        ),
        ({"actions": {"A": {"scale": [1.0] * 29, "joint_names": ["nose"]}}}, "matches none of the joints"),
        ({"actions": {"A": {"scale": [1.0] * 29, "joint_ids": [29]}}}, "leaves 0 to 28"),
        ({"actions": {"A": {"scale": [1.0] * 29, "clip": [[-1, 1]]}}}, "clip has 1 pairs for 29 joints"),
        (
            {"commands": {"base_velocity": {"ranges": {"lin_vel_x": [1.0, -1.0]}}}},
            r"lin_vel_x \[1.0, -1.0\]: expected \[lower, upper\]",
        ),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(OnboardError, match=expected):
        load(tmp_path, deploy(**changes))


def test_processed_actions_are_clipped_where_the_file_says_so(tmp_path: Path) -> None:
    data = deploy()
    data["actions"]["JointPositionAction"] |= {"clip": [[-0.1, 0.1]] * 29}
    policy = Policy(load(tmp_path, data), ROBOT)
    assert policy.target(np.full(29, 9.0, np.float32)).max() == pytest.approx(0.1)


def test_a_tracking_policy_finds_its_only_csv(tmp_path: Path) -> None:
    terms = {
        "motion_command": {"scale": [1.0] * 58, "history_length": 1},
        "motion_anchor_ori_b": {"scale": [1.0] * 6, "history_length": 1},
    }
    folder = write(tmp_path, deploy(observations=terms), wide=64)
    with pytest.raises(OnboardError, match=r"missing 'motion\.file': the reference, one of the 0 CSV files"):
        load_policy(folder, ROBOT)
    rows = np.zeros((4, 36))
    rows[:, 6] = 1.0
    np.savetxt(folder / "params" / "dance.csv", rows, delimiter=",")
    bundle = load_policy(folder, ROBOT)
    assert bundle.contract.motion is not None
    assert bundle.contract.motion.file == "params/dance.csv"
    assert any("motion.file: not stated; params/dance.csv" in text for text in bundle.defaults)
    assert any("CSV at 30 Hz" in text for text in bundle.defaults)
