"""The three npz formats, read as their consumers read them."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from onboard.logging.export.clips import Cut
from onboard.logging.export.formats import Name, Wish, export
from onboard.logging.preprocess.clock import align
from onboard.logging.preprocess.pipeline import Step
from tests.logging.export.recorded import FADE_ROWS, NAMES, POLICY_START, data

ROWS = 300
LISTENER_KEYS = {
    "time": (),
    "joint_pos": (29,),
    "joint_vel": (29,),
    "tau_est": (29,),
    "IMU_quaternion": (4,),
    "IMU_gyro": (3,),
    "IMU_acc": (3,),
    "joint_pos_cmd": (29,),
    "joint_vel_cmd": (29,),
    "kp": (29,),
    "kd": (29,),
    "tau_cmd": (29,),
    "pos": (3,),
    "quat": (4,),
    "lin_vel": (3,),
    "ang_vel": (3,),
}


def load(path: Path, form: Name, out: Path, wish: Wish | None = None) -> dict[str, np.ndarray]:
    export([path], form, out, wish or Wish())
    with np.load(out, allow_pickle=False) as file:
        return dict(file)


def test_plain_npz_has_what_a_delta_script_reads(rollout: Path, tmp_path: Path) -> None:
    found = load(rollout, "npz", tmp_path / "walk.npz")
    table = data()[POLICY_START : POLICY_START + ROWS]
    sources = {
        "q": "q",
        "dq": "dq",
        "target": "action_sent",
        "tau": "tau_est",
        "quat": "quat_wxyz",
        "gyro": "gyro_body",
        "contact": "contact",
    }
    for key, column in sources.items():
        np.testing.assert_array_equal(found[key], table[column])
    np.testing.assert_allclose(found["t"], np.arange(ROWS) * 0.02, atol=1e-9)
    assert found["joint_names"].tolist() == list(NAMES)
    assert np.isfinite(found["kp"][FADE_ROWS:]).all()
    assert float(found["period_s"]) == 0.02


def test_listener_npz_has_all_keys_and_the_command_that_was_in_force(rollout: Path, tmp_path: Path) -> None:
    found = load(rollout, "listener_deltaa", tmp_path / "motion_0.npz")
    table = data()[POLICY_START : POLICY_START + ROWS]
    for key, shape in LISTENER_KEYS.items():
        assert found[key].shape == (ROWS - 1, *shape), key
    np.testing.assert_array_equal(found["joint_pos"], table["q"][1:])
    np.testing.assert_array_equal(found["joint_pos_cmd"], table["action_sent"][:-1])
    np.testing.assert_array_equal(found["IMU_quaternion"], table["quat_wxyz"][1:])
    np.testing.assert_allclose(found["pos"], table["external_pose"][1:, :3])
    np.testing.assert_allclose(found["lin_vel"], np.tile([0.5, 0, 0], (ROWS - 1, 1)), atol=1e-9)
    np.testing.assert_allclose(found["ang_vel"], np.tile([0, 0, 0.4], (ROWS - 1, 1)), atol=1e-9)
    assert not found["joint_vel_cmd"].any()
    assert not found["tau_cmd"].any()
    assert found["missing"].tolist() == []


def test_listener_npz_without_motion_capture_marks_its_keys(poseless: Path, tmp_path: Path) -> None:
    found = load(poseless, "listener_deltaa", tmp_path / "motion_0.npz")
    assert found["missing"].tolist() == ["pos", "quat", "lin_vel", "ang_vel"]
    for key in found["missing"].tolist():
        assert np.isnan(found[key]).all()
        assert found[key].shape == (ROWS - 1, *LISTENER_KEYS[key])


@pytest.mark.parametrize("order", ["isaac", "mjcf"])
def test_beyondmimic_npz_has_what_both_loaders_read(rollout: Path, tmp_path: Path, order: str) -> None:
    wish = Wish(order="isaac" if order == "isaac" else "mjcf")
    found = load(rollout, "beyondmimic", tmp_path / "motion.npz", wish)
    assert float(found["fps"][0]) == 50
    for key in ("joint_pos", "joint_vel"):
        assert found[key].shape == (ROWS, 29)
    for key, width in {"body_pos_w": 3, "body_quat_w": 4, "body_lin_vel_w": 3, "body_ang_vel_w": 3}.items():
        assert found[key].shape == (ROWS, 30, width)
        assert np.isfinite(found[key]).all()
    table = data()[POLICY_START : POLICY_START + ROWS]
    slots = [NAMES.index(name) for name in found["joint_names"].tolist()]
    np.testing.assert_array_equal(found["joint_pos"], table["q"][:, slots])
    pelvis = found["body_names"].tolist().index("pelvis")
    np.testing.assert_allclose(found["body_pos_w"][:, pelvis], table["external_pose"][:, :3], atol=1e-6)
    turns = Rotation.from_quat(np.roll(found["body_quat_w"][:, pelvis], -1, axis=1))
    np.testing.assert_allclose(
        np.unwrap(turns.as_euler("zyx")[:, 0]), 0.4 * np.arange(220, 520) * 0.02, atol=1e-6
    )


def test_isaac_order_is_the_published_one(rollout: Path, tmp_path: Path) -> None:
    """The map of unitree_rl_lab's deploy.yaml from its own to the SDK's order."""
    published = [0, 6, 12, 1, 7, 13, 2, 8, 14, 3, 9, 15, 22, 4, 10, 16, 23, 5, 11]
    published += [17, 24, 18, 25, 19, 26, 20, 27, 21, 28]
    found = load(rollout, "beyondmimic", tmp_path / "motion.npz")
    assert [NAMES.index(name) for name in found["joint_names"].tolist()] == published
    links = [name.replace("_link", "_joint") for name in found["body_names"].tolist()[1:]]
    renamed = {"torso_joint": "waist_pitch_joint"}
    assert [renamed.get(name, name) for name in links] == found["joint_names"].tolist()


def test_beyondmimic_without_a_pose_keeps_what_is_known(poseless: Path, tmp_path: Path) -> None:
    found = load(poseless, "beyondmimic", tmp_path / "motion.npz")
    assert found["missing"].tolist() == ["body_pos_w", "body_lin_vel_w"]
    for key in ("body_pos_w", "body_lin_vel_w"):
        assert np.isnan(found[key]).all()
    for key in ("body_quat_w", "body_ang_vel_w", "joint_pos"):
        assert np.isfinite(found[key]).all()
    assert json.loads(str(found["about"]))["root_rotation"] == "imu"


def test_what_the_preprocessing_did_stands_in_the_file(rollout: Path, tmp_path: Path) -> None:
    found = load(rollout, "npz", tmp_path / "walk.npz", Wish(Cut(steps=[Step(align)])))
    (facts,) = json.loads(str(found["about"]))["preprocessing"]
    assert facts["step"] == "align"
    assert facts["period_s"] == pytest.approx(0.02)
