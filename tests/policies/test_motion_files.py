"""Motions as npz and pickle, looked at ahead of time, and their refusals."""

import math
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from onboard.configs.errors import PolicyError
from onboard.policies.orders import ISAAC_SLOTS
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from tests.policies.models import JOINTS
from tests.policies.test_motion import CSV, TERMS, tracking_policy, write_csv

ISAAC_JOINTS = [JOINTS[slot] for slot in ISAAC_SLOTS]
NPZ = {"source": "file", "file": "m.npz", "quat_order": "wxyz", "anchor": "torso"}
PKL = {"source": "file", "file": "m.pkl", "quat_order": "xyzw", "anchor": "pelvis"}
G1_23DOF = [name for name in JOINTS if "wrist" not in name]


def waving(frames: int = 51) -> dict[str, NDArray[Any]]:
    """A second at 50 Hz as BeyondMimic writes it, in SDK order: the waist turns, the pelvis walks along x."""
    time = np.arange(frames) / 50.0
    joints = 0.1 * np.sin(np.arange(29)[None, :] + 3.0 * time[:, None])
    pelvis = Rotation.from_rotvec(0.4 * time[:, None] * (0.0, 0.0, 1.0))
    torso = pelvis * Rotation.from_euler("ZXY", joints[:, 12:15])
    quats = np.stack([np.roll(body.as_quat(), 1, axis=1) for body in (pelvis, pelvis.inv(), torso)], axis=1)
    position = np.zeros((frames, 3, 3))
    position[:, 0] = np.stack([0.5 * time, 0.0 * time, 0.8 + 0.0 * time], axis=1)
    return {
        "fps": np.array([50]),
        "joint_pos": joints,
        "joint_vel": np.full((frames, 29), 0.25),
        "body_pos_w": position,
        "body_quat_w": quats,
    }


def reordered(data: dict[str, NDArray[Any]], slots: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    return data | {key: data[key][:, list(slots)] for key in ("joint_pos", "joint_vel")}


def observed(policy: Policy, step: int) -> NDArray[np.float32]:
    policy.reset(State())
    obs: NDArray[np.float32] = policy.observe(State(), policy.neutral_command(), step).copy()
    return obs


def test_an_npz_of_mjlab_is_in_the_robots_own_order(tmp_path: Path) -> None:
    data = waving()
    np.savez(tmp_path / "m.npz", **data)  # type: ignore[arg-type]  # a name might be an option of savez
    obs = observed(tracking_policy(tmp_path, NPZ), 20)
    assert obs[:12] == pytest.approx(data["joint_pos"][20, :12], abs=1e-6)
    assert obs[12:24] == pytest.approx(0.25), "velocities are the file's where no frame is resampled"
    torso = Rotation.from_quat(np.roll(data["body_quat_w"][20, 2], -1))
    start = Rotation.from_quat(np.roll(data["body_quat_w"][0, 2], -1)).as_matrix()
    turn = Rotation.from_euler("z", -math.atan2(start[1, 0], start[0, 0]))
    assert obs[24:] == pytest.approx((turn * torso).as_matrix()[:, :2].reshape(-1), abs=1e-5)


def test_an_npz_of_beyondmimic_is_in_isaacs_order_and_a_wrong_one_is_noticed(tmp_path: Path) -> None:
    data = waving()
    np.savez(tmp_path / "m.npz", **reordered(data, ISAAC_SLOTS))  # type: ignore[arg-type]
    with pytest.raises(
        PolicyError, match=r"with its joints in SDK order, .* in Isaac order one is: name motion"
    ):
        tracking_policy(tmp_path, NPZ)
    obs = observed(tracking_policy(tmp_path, NPZ | {"joints": ISAAC_JOINTS}), 20)
    assert obs[:12] == pytest.approx(data["joint_pos"][20, :12], abs=1e-6)


def test_an_npz_that_names_its_joints_needs_no_order(tmp_path: Path) -> None:
    data = waving()
    np.savez(
        tmp_path / "m.npz",
        framerate=25.0,
        joint_names=np.array(ISAAC_JOINTS),
        joint_pos=data["joint_pos"][:, list(ISAAC_SLOTS)],
        base_pos_w=data["body_pos_w"][:, 0],
        base_quat_w=data["body_quat_w"][:, 0],
    )
    policy = tracking_policy(tmp_path, NPZ)
    assert len(policy.bundle.motion_frames or ()) == 101
    obs = observed(policy, 40)
    assert obs[:12] == pytest.approx(data["joint_pos"][20, :12], abs=1e-6)
    speed = (data["joint_pos"][21, :12] - data["joint_pos"][19, :12]) * 25 / 2
    assert obs[12:24] == pytest.approx(speed, abs=1e-4), "velocities follow from the positions"


def clip(frames: int = 31) -> dict[str, Any]:
    """A second at 30 Hz as ASAP and PHC write it, with parts that nobody reads."""
    time = np.arange(frames) / 30.0
    return {
        "root_trans_offset": np.stack([0.3 * time, 0.0 * time, 0.8 + 0.0 * time], axis=1),
        "pose_aa": np.zeros((frames, 27, 3), np.float32),
        "dof": (0.01 * np.arange(23)[None, :] * time[:, None]).astype(np.float32),
        "root_rot": Rotation.from_rotvec(0.5 * time[:, None] * (0.0, 0.0, 1.0)).as_quat(),
        "smpl_joints": np.zeros((frames, 24, 3), order="F"),
        "fps": 30,
    }


@pytest.mark.parametrize("compress", [0, ("zlib", 3), ("gzip", 3), ("bz2", 3), ("xz", 3)])
def test_a_pickle_of_asap_is_read_whatever_its_compression(tmp_path: Path, compress: Any) -> None:
    joblib.dump({"0-walk": clip()}, tmp_path / "m.pkl", compress=compress)
    policy = tracking_policy(tmp_path, PKL | {"joints": G1_23DOF})
    assert len(policy.bundle.motion_frames or ()) == 51
    obs = observed(policy, 50)
    assert obs[:12] == pytest.approx(0.01 * np.arange(12), abs=1e-6)
    assert obs[24:] == pytest.approx(Rotation.from_euler("z", 0.5).as_matrix()[:, :2].reshape(-1), abs=1e-5)
    assert policy.bundle.motion_frames is not None
    wrists = [slot for slot, name in enumerate(JOINTS) if "wrist" in name]
    assert not policy.bundle.motion_frames.joint_pos[:, wrists].any(), "joints that the file lacks are at 0"


def test_one_of_several_clips_is_chosen_by_name(tmp_path: Path) -> None:
    joblib.dump({"walk": clip(), "run": clip(61)}, tmp_path / "m.pkl")
    with pytest.raises(PolicyError, match=r"no motion 'None' in it; choose one with motion\.clip: walk, run"):
        tracking_policy(tmp_path, PKL | {"joints": G1_23DOF})
    policy = tracking_policy(tmp_path, PKL | {"joints": G1_23DOF, "clip": "run"})
    assert len(policy.bundle.motion_frames or ()) == 101


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dof": np.zeros((31, 29))}, "29 joints, but motion.joints names 23"),
        ({"fps": 0}, "its frame rate is 0, expected one positive number"),
        ({"root_rot": np.zeros((31, 4))}, "norms from 0 to 0"),
        ({"root_rot": np.ones((30, 4)) / 2}, "are not one motion"),
        ({"root_rot": np.zeros(4)}, "'root_rot' is a float64 array of shape"),
        ({"dof": np.full((31, 23), np.nan)}, "finite numbers throughout"),
        ({"dof": np.full((31, 23), 1e39)}, "finite numbers throughout, none beyond 1e\\+06"),
        ({"dof": None}, "'dof' is a object array"),
        ({"fps": [[30], [1, 2]]}, "its frame rate is .* expected one positive number"),
    ],
)
def test_a_clip_that_is_none_is_refused(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    joblib.dump({"walk": clip() | change}, tmp_path / "m.pkl")
    with pytest.raises(PolicyError, match=expected):
        tracking_policy(tmp_path, PKL | {"joints": G1_23DOF})


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (np.float64(3.0), "'joint_names' is a float64 array of shape"),
        (np.zeros((2, 2), "U3"), "'joint_names' is a <U3 array of shape"),
        (np.array(["\xff".encode("latin1")] * 29), "'joint_names' are no names"),
        (np.array(["elbow"] * 29), r"m\.npz: .* has no joint 'elbow'"),
    ],
)
def test_names_of_joints_that_are_none_are_refused(tmp_path: Path, names: Any, expected: str) -> None:
    np.savez(tmp_path / "m.npz", **waving(), joint_names=names)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match=expected):
        tracking_policy(tmp_path, NPZ)


def test_names_of_joints_may_be_bytes(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **waving(), joint_names=np.array(JOINTS, "S"))  # type: ignore[arg-type]
    assert tracking_policy(tmp_path, NPZ).bundle.motion_frames is not None


def test_two_frame_rates_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **waving())  # type: ignore[arg-type]
    with pytest.raises(
        PolicyError, match=r"own frame rate is 50 Hz, but motion\.rate_hz is 30; --set motion"
    ):
        tracking_policy(tmp_path, NPZ | {"rate_hz": 30.0})


def test_an_npz_with_a_pickled_object_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", joint_pos=np.array([{"a": 1}], dtype=object))
    with pytest.raises(PolicyError, match="can't be read as a motion"):
        tracking_policy(tmp_path, NPZ)


def test_a_term_that_looks_ahead_sees_the_frames_to_come(tmp_path: Path) -> None:
    write_csv(tmp_path)
    later = [dict(term, ahead=10) for term in TERMS]
    now = observed(tracking_policy(tmp_path, CSV), 30)
    policy = tracking_policy(tmp_path, CSV, terms=later)
    assert np.array_equal(observed(policy, 20), now)
    assert np.array_equal(observed(policy, 45), observed(policy, 60)), "the last frame is held"
    looped = tracking_policy(tmp_path, CSV | {"at_end": "loop"}, terms=later)
    assert observed(looped, 45)[:12] == pytest.approx(0.1 * np.arange(12) * 4 / 50, abs=1e-6)


def test_a_motion_shorter_than_the_horizon_is_refused(tmp_path: Path) -> None:
    write_csv(tmp_path)
    terms = [*TERMS[:2], {"term": "anchor_orientation", "ahead": 51}]
    with pytest.raises(PolicyError, match="51 frames long at 50 Hz, but 'anchor_orientation' looks 51 ticks"):
        tracking_policy(tmp_path, CSV, terms=terms)


def test_only_the_reference_can_be_looked_at_ahead(tmp_path: Path) -> None:
    write_csv(tmp_path)
    with pytest.raises(PolicyError, match="'gyro' is not about the reference motion; leave 'ahead' out"):
        tracking_policy(tmp_path, CSV, terms=[{"term": "gyro", "ahead": 1}])
