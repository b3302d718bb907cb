import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from scipy.spatial.transform import Rotation, Slerp

from onboard.configs.errors import PolicyError
from onboard.policies.bundle import load_policy
from onboard.policies.contract import Motion
from onboard.policies.motion import MotionFrames, MotionPlayer
from onboard.policies.policy import Policy
from onboard.policies.resample import resample_linear, resample_rotation
from onboard.runtime.link import State
from tests.policies.models import JOINTS, LEGS, ROBOT, contract_data, save_graph, write_bundle, zeros_model

CSV = {"source": "file", "file": "m.csv", "rate_hz": 30.0, "quat_order": "xyzw", "anchor": "torso"}
TERMS: list[dict[str, Any]] = [
    {"term": "ref_joint_pos"},
    {"term": "ref_joint_vel"},
    {"term": "anchor_orientation"},
]


def wxyz(rotation: Rotation) -> NDArray[np.float64]:
    quat: NDArray[np.float64] = np.roll(rotation.as_quat(), 1)
    return quat


@given(st.integers(2, 40), st.sampled_from([24.0, 30.0, 50.0, 60.0, 120.0]), st.integers(0, 99))
def test_resampling_is_linear_and_slerp(frames: int, rate_hz: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(frames, 3))
    rotations = Rotation.from_rotvec(np.cumsum(rng.normal(size=(frames, 3)) * 0.3, axis=0))
    signs = rng.choice([-1.0, 1.0], size=(frames, 1))
    times = np.arange(frames) / rate_hz
    wanted = np.arange(int(np.floor((frames - 1) * 50.0 / rate_hz + 1e-9)) + 1) / 50.0
    moved = resample_linear(values, rate_hz, 50.0)
    assert len(moved) == len(wanted)
    for column in range(3):
        assert moved[:, column] == pytest.approx(np.interp(wanted, times, values[:, column]), abs=1e-9)
    turned = resample_rotation(np.roll(rotations.as_quat(), 1, axis=1) * signs, rate_hz, 50.0)
    expected = Slerp(times, rotations)(np.clip(wanted, 0, times[-1]))
    difference = Rotation.from_quat(np.roll(turned, -1, axis=1)) * expected.inv()
    assert difference.magnitude().max() < 1e-6


def write_csv(folder: Path, frames: int = 31, yaw: float = 0.0) -> NDArray[np.float64]:
    """One second at 30 Hz: joint j moves at j/10 rad/s, the root turns at 0.5 rad/s and walks along x."""
    time = np.arange(frames) / 30.0
    joints = 0.1 * np.arange(29)[None, :] * time[:, None]
    quats = Rotation.from_rotvec((yaw + 0.5 * time)[:, None] * (0.0, 0.0, 1.0)).as_quat()
    root = np.stack([0.3 * time, np.zeros(frames), np.full(frames, 0.8)], axis=1)
    rows: NDArray[np.float64] = np.hstack([root, quats, joints])
    np.savetxt(folder / "m.csv", rows, delimiter=",", fmt="%.8f")
    return rows


def tracking_policy(
    folder: Path, motion: dict[str, Any], terms: list[dict[str, Any]] = TERMS, **options: Any
) -> Policy:
    zeros_model(folder / "policy.onnx", 12 + 12 + 6, 12)
    data = contract_data([{"terms": terms}], motion=motion, **options)
    return Policy(load_policy(write_bundle(folder, data), ROBOT), ROBOT)


def test_a_csv_is_resampled_and_differentiated(tmp_path: Path) -> None:
    write_csv(tmp_path)
    policy = tracking_policy(tmp_path, CSV)
    state = State()
    policy.reset(state)
    obs = policy.observe(state, policy.neutral_command(), 10)
    assert policy.motion_index == 10
    assert obs[:12] == pytest.approx(0.1 * np.arange(12) * 0.2, abs=1e-6)
    assert obs[12:24] == pytest.approx(0.1 * np.arange(12), abs=1e-5)


def test_joints_of_the_motion_are_mapped_by_name(tmp_path: Path) -> None:
    write_csv(tmp_path)
    policy = tracking_policy(tmp_path, CSV | {"joints": JOINTS[::-1]})
    policy.reset(State())
    obs = policy.observe(State(), policy.neutral_command(), 10)
    assert obs[:12] == pytest.approx(0.1 * (28 - np.arange(12)) * 0.2, abs=1e-6)


@pytest.mark.parametrize("robot_yaw", [0.0, 0.7, -3.0])
def test_a_robot_that_stands_turned_sees_the_same_reference(tmp_path: Path, robot_yaw: float) -> None:
    """Aligned in yaw at the reset: only what happens afterwards shows."""
    write_csv(tmp_path, yaw=1.2)
    policy = tracking_policy(tmp_path, CSV)
    state = State()
    waist = (0.2, -0.1, 0.15)
    state.q[12:15] = waist
    torso = Rotation.from_euler("z", robot_yaw) * Rotation.from_euler("ZXY", waist)
    state.quat_wxyz[:] = wxyz(Rotation.from_euler("z", robot_yaw))
    policy.reset(state)
    seen = policy.observe(state, policy.neutral_command(), 20)[24:]
    # The reference's torso has a waist of its own: joints 12, 13, 14 of the CSV after 0.4 s.
    start = Rotation.from_euler("z", 1.2)
    reference = Rotation.from_euler("z", 1.2 + 0.2) * Rotation.from_euler(
        "ZXY", np.array([0.1 * 12, 0.1 * 13, 0.1 * 14]) * 0.4
    )
    heading = math.atan2(*torso.as_matrix()[[1, 0], 0]) - math.atan2(*start.as_matrix()[[1, 0], 0])
    relative = torso.inv() * Rotation.from_euler("z", heading) * reference
    assert seen == pytest.approx(relative.as_matrix()[:, :2].reshape(-1), abs=1e-5)


def test_the_motion_ends_where_it_ends_and_holds(tmp_path: Path) -> None:
    write_csv(tmp_path)
    policy = tracking_policy(tmp_path, CSV)
    policy.reset(State(), motion_index=30)
    policy.observe(State(), policy.neutral_command(), 19)
    assert (policy.motion_index, policy.motion_done) == (49, False)
    policy.observe(State(), policy.neutral_command(), 20)
    assert (policy.motion_index, policy.motion_done) == (50, True)
    policy.observe(State(), policy.neutral_command(), 99)
    assert (policy.motion_index, policy.motion_done) == (50, True)
    policy.reset(State())
    assert not policy.motion_done


def test_a_loop_starts_again(tmp_path: Path) -> None:
    write_csv(tmp_path)
    policy = tracking_policy(tmp_path, CSV | {"at_end": "loop"})
    policy.reset(State())
    policy.observe(State(), policy.neutral_command(), 51 + 3)
    assert (policy.motion_index, policy.motion_done) == (3, False)


def test_the_robot_starts_in_the_first_frame_unless_the_contract_says_otherwise(tmp_path: Path) -> None:
    rows = write_csv(tmp_path)
    rows[:, 7:] += 0.25
    np.savetxt(tmp_path / "m.csv", rows, delimiter=",")
    policy = tracking_policy(tmp_path, CSV, start_rad=None)
    assert policy.start_pose == pytest.approx(np.full(29, 0.25))
    assert tracking_policy(tmp_path, CSV).start_pose.any() == np.False_


def test_a_clock_counts_its_length() -> None:
    player = MotionPlayer(Motion(source="clock", length_s=2.0), None, ROBOT, 0.02)
    player.reset(State(), 0)
    player.seek(25)
    assert (player.phase, player.done) == (0.25, False)
    player.seek(100)
    assert (player.phase, player.done) == (1.0, True)


def test_root_terms_are_in_the_heading_of_the_root(tmp_path: Path) -> None:
    write_csv(tmp_path, yaw=math.pi / 2)
    zeros_model(tmp_path / "policy.onnx", 6, 12)
    names = ("ref_root_velocity_xy", "ref_root_height", "ref_root_roll_pitch", "ref_root_yaw_rate")
    data = contract_data([{"terms": [{"term": name} for name in names]}], motion=CSV | {"anchor": "pelvis"})
    policy = Policy(load_policy(write_bundle(tmp_path, data), ROBOT), ROBOT)
    policy.reset(State())
    obs = policy.observe(State(), policy.neutral_command(), 1)
    heading = math.pi / 2 + 0.01
    expected = (0.3 * math.cos(heading), -0.3 * math.sin(heading), 0.8, 0.0, 0.0, 0.5)
    assert obs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2,3\n4,5,6\n", "3 columns, expected 36: root x y z, quaternion, 29 joints"),
        ("x,y\n1,2\n", "not a table of numbers"),
        (",".join(["0"] * 6 + ["1"] + ["0"] * 29) + "\n", "1 rows; expected at least two"),
        ((",".join(["nan"] * 6 + ["1"] + ["0"] * 29) + "\n") * 2, "finite numbers throughout"),
        ((",".join(["0"] * 36) + "\n") * 2, "no quaternions"),
    ],
)
def test_a_csv_that_is_none_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(PolicyError, match=expected):
        tracking_policy(tmp_path, CSV)


def test_the_wrong_quaternion_order_is_noticed(tmp_path: Path) -> None:
    write_csv(tmp_path, yaw=2.0)
    with pytest.raises(
        PolicyError, match=r"read as wxyz, the reference lies .* --set motion\.quat_order=xyzw"
    ):
        tracking_policy(tmp_path, CSV | {"quat_order": "wxyz"})
    tracking_policy(tmp_path, CSV)


def test_a_missing_motion_and_a_missing_rate_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="motion file is missing"):
        tracking_policy(tmp_path, CSV)
    write_csv(tmp_path)
    with pytest.raises(PolicyError, match=r"frame rate is not stated; --set motion\.rate_hz=30"):
        tracking_policy(tmp_path, {key: value for key, value in CSV.items() if key != "rate_hz"})
    with pytest.raises(PolicyError, match="unknown kind of motion file"):
        tracking_policy(tmp_path, CSV | {"file": "m.bvh"})


def embedded_model(path: Path, poses: NDArray[np.float64]) -> Path:
    """Actions are zero; joint j of frame t is at poses[t] + j/100; the number is clamped to the end."""
    constant, frames = numpy_helper.from_array, len(poses)
    joints = poses[:, None] + np.arange(12)[None, :] / 100
    tables = {
        "pos": joints.astype(np.float32),
        "vel": np.full((frames, 12), 0.5, np.float32),
        "quat": np.tile(np.array([[9, 9, 9, 9, 0, 0, 0, 1]], np.float32), (frames, 1)),
    }
    nodes = [
        helper.make_node("Reshape", ["time_step", "shape"], ["flat"]),
        helper.make_node("Cast", ["flat"], ["number"], to=TensorProto.INT64),
        helper.make_node("Clip", ["number", "first", "last"], ["row"]),
        helper.make_node("MatMul", ["obs", "w"], ["actions"]),
    ]
    nodes += [
        helper.make_node("Gather", [f"table_{name}", "row"], [output], axis=0)
        for name, output in (("pos", "joint_pos"), ("vel", "joint_vel"), ("quat", "body_quat"))
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "embedded",
        [value("obs", TensorProto.FLOAT, [1, 30]), value("time_step", TensorProto.FLOAT, [1, 1])],
        [
            value("actions", TensorProto.FLOAT, [1, 12]),
            value("joint_pos", TensorProto.FLOAT, [1, 12]),
            value("joint_vel", TensorProto.FLOAT, [1, 12]),
            value("body_quat", TensorProto.FLOAT, [1, 8]),
        ],
        [
            constant(np.array([1]), "shape"),
            constant(np.array(0), "first"),
            constant(np.array(frames - 1), "last"),
            constant(np.zeros((30, 12), np.float32), "w"),
            *(constant(table, f"table_{name}") for name, table in tables.items()),
        ],
    )
    return save_graph(path, graph)


EMBEDDED = {
    "source": "onnx",
    "joints": LEGS,
    "quat_order": "xyzw",
    "anchor": "pelvis",
    "embedded": {
        "graph": "policy",
        "index": "time_step",
        "joint_pos": "joint_pos",
        "joint_vel": "joint_vel",
        "anchor_quat": "body_quat",
        "anchor_row": 1,
    },
}
STILL = np.zeros(600)


def test_an_embedded_reference_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    embedded_model(tmp_path / "policy.onnx", np.array([0.0, np.nan, 1.0]))
    data = contract_data([{"terms": TERMS}], motion=EMBEDDED)
    data["graphs"]["policy"]["inputs"]["time_step"] = {"carries": "motion_index"}
    with pytest.raises(PolicyError, match="its reference has numbers that are not finite"):
        load_policy(write_bundle(tmp_path, data), ROBOT)


@pytest.mark.parametrize(
    "poses",
    [np.arange(float(frames)) for frames in (1, 2, 3, 8, 100, 777)]
    + [
        np.concatenate([STILL[:400], np.arange(1.0, 50.0), STILL[:1]]),
        np.concatenate([[1.0, 2.0], STILL[:1]]),
    ],
    ids=lambda poses: f"{len(poses)} frames from {poses[0]} to {poses[-1]}",
)
def test_an_embedded_reference_is_read_to_its_last_frame(tmp_path: Path, poses: NDArray[np.float64]) -> None:
    embedded_model(tmp_path / "policy.onnx", poses)
    data = contract_data([{"terms": TERMS}], motion=EMBEDDED)
    data["graphs"]["policy"]["inputs"]["time_step"] = {"carries": "motion_index"}
    bundle = load_policy(write_bundle(tmp_path, data), ROBOT)
    assert isinstance(bundle.motion_frames, MotionFrames)
    assert len(bundle.motion_frames) == len(poses)
    policy = Policy(bundle, ROBOT)
    policy.reset(State())
    obs = policy.observe(State(), policy.neutral_command(), len(poses) + 5)
    assert obs[:12] == pytest.approx(poses[-1] + np.arange(12) / 100)
    assert obs[24:] == pytest.approx([1, 0, 0, 1, 0, 0])
