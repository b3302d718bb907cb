"""Presets whose published files can't be shared here, on small networks with the same interface."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onboard.configs.errors import OnboardError
from onboard.configs.robot import load_robot
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from tests.policies.models import JOINTS, ROBOT, random_state, save_graph, zeros_model


def write_motion(path: Path, frames: int = 20) -> None:
    rows = np.zeros((frames, 36))
    rows[:, 0] = 0.01 * np.arange(frames)
    rows[:, 2] = 0.8
    rows[:, 6] = 1.0
    rows[:, 7:] = 0.01 * np.arange(29)
    np.savetxt(path, rows, delimiter=",")


def test_twist2_is_told_by_its_widths_whatever_its_ports_are_called(tmp_path: Path) -> None:
    path = zeros_model(tmp_path / "twist2.onnx", 1432, 29, name="whatever", output="result")
    write_motion(tmp_path / "walk.csv")
    with pytest.raises(OnboardError, match=r"presets whose widths fit: twist2"):
        load_policy(path, ROBOT)
    with pytest.raises(OnboardError, match=r"missing 'motion\.file': the reference motion to follow"):
        load_policy(path, ROBOT, "twist2")
    overrides = ["motion.file=walk.csv", "motion.rate_hz=50"]
    policy = Policy(load_policy(path, ROBOT, "twist2", overrides), ROBOT)
    state = random_state(np.random.default_rng(0))
    policy.reset(state)
    obs = policy.observe(state, policy.neutral_command(), 3).copy()
    mimic = (0.5, 0.0, 0.8, 0.0, 0.0, 0.0, *(0.01 * np.arange(29)))
    assert obs[:35] == pytest.approx(mimic, abs=1e-5)
    assert obs[-35:] == pytest.approx(mimic, abs=1e-5)
    assert not obs[127:-35].any(), "ten past frames of zeros"
    ankles = [35 + 3 + 2 + 29 + slot for slot in (4, 5, 10, 11)]
    assert not obs[ankles].any(), "ankle velocities are blanked"
    assert obs[35 + 3 + 2 + 29] == pytest.approx(0.05 * state.dq[0])
    policy.commit(np.full(29, 40.0, np.float32))
    again = policy.observe(state, policy.neutral_command(), 4)
    assert np.array_equal(again[127 * 10 : 127 * 11], obs[:127]), "the frame before is the newest of the past"
    assert again[98:127].tolist() == [40.0] * 29, "the last action is the unclipped output"
    assert policy.target(np.full(29, 40.0, np.float32))[0] == pytest.approx(-0.2 + 0.5 * 10.0)


def beyondmimic_model(path: Path, frames: int = 7, metadata: Mapping[str, str] | None = None) -> Path:
    """Zero actions; joint i (Isaac order) of frame t at t + i/100; only body 7 stands upright."""
    joints = (np.arange(frames)[:, None] + np.arange(29) / 100).astype(np.float32)
    quats = np.full((frames, 14, 4), 0.5, np.float32)
    quats[:, 7] = (1, 0, 0, 0)
    value, constant = helper.make_tensor_value_info, numpy_helper.from_array
    nodes = [
        helper.make_node("Reshape", ["time_step", "one"], ["flat"]),
        helper.make_node("Cast", ["flat"], ["number"], to=TensorProto.INT64),
        helper.make_node("Clip", ["number", "first", "last"], ["row"]),
        helper.make_node("MatMul", ["obs", "w"], ["actions"]),
        helper.make_node("Gather", ["joints", "row"], ["joint_pos"], axis=0),
        helper.make_node("Gather", ["joints", "row"], ["joint_vel"], axis=0),
        helper.make_node("Gather", ["quats", "row"], ["body_quat_w"], axis=0),
    ]
    graph = helper.make_graph(
        nodes,
        "beyondmimic",
        [value("obs", TensorProto.FLOAT, [1, 154]), value("time_step", TensorProto.FLOAT, [1, 1])],
        [
            value("actions", TensorProto.FLOAT, [1, 29]),
            value("joint_pos", TensorProto.FLOAT, [1, 29]),
            value("joint_vel", TensorProto.FLOAT, [1, 29]),
            value("body_quat_w", TensorProto.FLOAT, [1, 14, 4]),
        ],
        [
            constant(np.array([1]), "one"),
            constant(np.array(0), "first"),
            constant(np.array(frames - 1), "last"),
            constant(np.zeros((154, 29), np.float32), "w"),
            constant(joints, "joints"),
            constant(quats, "quats"),
        ],
    )
    return save_graph(path, graph, metadata)


def test_beyondmimic_without_metadata_is_in_isaac_order(tmp_path: Path) -> None:
    path = beyondmimic_model(tmp_path / "dance.onnx")
    bundle = load_policy(path, ROBOT, "beyondmimic")
    assert len(bundle.motion_frames or ()) == 7
    policy = Policy(bundle, ROBOT)
    waist_yaw = JOINTS.index("waist_yaw_joint")
    assert policy.start_pose[waist_yaw] == pytest.approx(0.02), "third joint in Isaac order"
    state = State()
    policy.reset(state)
    obs = policy.observe(state, policy.neutral_command(), 4)
    assert obs[:29] == pytest.approx(4 + np.arange(29) / 100)
    assert obs[58:64] == pytest.approx([1, 0, 0, 1, 0, 0]), "the anchor is body 7, the torso"
    raw = np.zeros(29, np.float32)
    raw[2] = 1.0
    assert policy.target(raw)[waist_yaw] == pytest.approx(0.547546465)


def test_an_unknown_clip_of_asap_must_be_told_its_length(tmp_path: Path) -> None:
    path = zeros_model(tmp_path / "m.onnx", 380, 23, name="actor_obs", output="action")
    with pytest.raises(OnboardError, match=r"missing 'motion\.length_s': length of the clip in seconds"):
        load_policy(path, ROBOT, "asap_mimic")
    policy = Policy(load_policy(path, ROBOT, "asap_mimic", ["motion.length_s=2.0"]), ROBOT)
    policy.reset(State())
    obs = policy.observe(State(), policy.neutral_command(), 50)
    assert obs[379] == 0.5
    assert (policy.motion_index, policy.motion_done) == (50, False)
    policy.observe(State(), policy.neutral_command(), 100)
    assert policy.motion_done


def test_a_29_joint_preset_is_refused_on_the_23_joint_robot(tmp_path: Path) -> None:
    path = zeros_model(tmp_path / "m.onnx", 575, 29, name="actor_obs", output="action")
    with pytest.raises(OnboardError, match="g1_23dof has no joint 'waist_roll_joint'"):
        load_policy(path, load_robot("g1_23dof"), "falcon")
