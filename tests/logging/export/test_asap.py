"""The ASAP pickle, read as ASAP's motion library reads it."""

import json
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from onboard.configs.bodies import load_bodies
from onboard.configs.errors import RolloutError
from onboard.logging.export import asap
from onboard.logging.export.clips import Cut
from onboard.logging.export.formats import Wish, export
from tests.logging.export.recorded import (
    FADE_ROWS,
    NAMES,
    ORDER,
    POLICY_START,
    contract,
    data,
    run_info,
    write,
)

KEPT = [*range(19), 22, 23, 24, 25]
ROWS = 300 - FADE_ROWS - 1
FIRST_STATE = POLICY_START + FADE_ROWS + 1


def load(path: Path, out: Path, **wish: Any) -> dict[str, dict[str, Any]]:
    export([path], "asap", out, Wish(**wish))
    motions: dict[str, dict[str, Any]] = joblib.load(out)
    return motions


def angles_as_asap_reads_them(motion: dict[str, Any]) -> np.ndarray:
    """Each joint turns about one axis, so ASAP sums the components: row 0 is the root, 3 rows are added."""
    angles: np.ndarray = motion["pose_aa"].sum(-1)[:, 1:24]
    return angles


def test_every_key_that_the_library_reads_has_its_shape(rollout: Path, tmp_path: Path) -> None:
    motions = load(rollout, tmp_path / "motions.pkl")
    assert list(motions) == [f"{rollout.stem}_{POLICY_START}"]
    motion = motions[f"{rollout.stem}_{POLICY_START}"]
    shapes = {
        "root_trans_offset": (ROWS, 3),
        "pose_aa": (ROWS, 27, 3),
        "dof": (ROWS, 23),
        "root_rot": (ROWS, 4),
        "action": (ROWS, 23),
    }
    for key, shape in shapes.items():
        assert motion[key].shape == shape, key
        assert motion[key].dtype == np.float32, key
        assert np.isfinite(motion[key]).all(), key
    assert motion["fps"] == 50
    assert asap.kept_joints(NAMES) == KEPT
    assert motion["joint_names"] == [NAMES[slot] for slot in KEPT]


def test_the_pickle_names_nothing_that_an_older_numpy_lacks(rollout: Path, tmp_path: Path) -> None:
    """ASAP runs on Python 3.8 with numpy 1.23, which knows no `numpy._core`."""
    load(rollout, tmp_path / "motions.pkl")
    assert b"numpy._core" not in (tmp_path / "motions.pkl").read_bytes()


def test_a_row_is_a_state_and_the_action_that_produced_it(rollout: Path, tmp_path: Path) -> None:
    (motion,) = load(rollout, tmp_path / "motions.pkl").values()
    table = data()
    states = table[FIRST_STATE : FIRST_STATE + ROWS]
    makers = table[FIRST_STATE - 1 : FIRST_STATE - 1 + ROWS]
    np.testing.assert_array_equal(motion["dof"], states["q"][:, KEPT])
    np.testing.assert_allclose(motion["root_trans_offset"], states["external_pose"][:, :3], rtol=1e-6)
    columns = [ORDER.index(slot) for slot in KEPT]
    np.testing.assert_array_equal(motion["action"], makers["action_combined"][:, columns])
    np.testing.assert_array_equal(motion["action_policy"], makers["action_policy"])
    cut = np.abs(makers["action_sent"] - makers["target"]).max(1) > 1e-6
    np.testing.assert_array_equal(motion["limited"], cut)
    assert 0 < cut.sum() < ROWS


def test_joint_angles_come_back_from_pose_aa_within_a_microradian(rollout: Path, tmp_path: Path) -> None:
    (motion,) = load(rollout, tmp_path / "motions.pkl").values()
    truth = data()["q"][FIRST_STATE : FIRST_STATE + ROWS][:, KEPT]
    assert np.abs(angles_as_asap_reads_them(motion) - truth).max() < 1e-6
    turns = Rotation.from_rotvec(motion["pose_aa"][:, 1:24].reshape(-1, 3).astype(np.float64))
    axes = np.tile(asap.joint_axes(load_bodies("g1_29dof"))[KEPT], (ROWS, 1))
    by_rotation = (turns.as_rotvec() * axes).sum(1).reshape(ROWS, 23)
    assert np.abs(by_rotation - truth).max() < 1e-6
    assert (motion["pose_aa"][:, 24:] == 0).all()


def test_large_angles_and_any_root_come_back_too() -> None:
    random = np.random.default_rng(0)
    dof = random.uniform(-3.1, 3.1, (200, 23)).astype(np.float32)
    turns = Rotation.random(200, rng=random)
    quat = np.roll(turns.as_quat(), 1, axis=1) * random.choice([-1, 1], (200, 1))
    quat[0] = [1, 0, 0, 0]
    axes = asap.joint_axes(load_bodies("g1_29dof"))[KEPT]
    pose = asap.pose_aa(dof, quat, axes)
    assert np.abs(pose.sum(-1)[:, 1:24] - dof).max() < 1e-6
    root = Rotation.from_rotvec(pose[:, 0].astype(np.float64))
    expected = Rotation.from_quat(np.roll(quat, -1, axis=1))
    assert (root.inv() * expected).magnitude().max() < 1e-6


def test_root_rotation_is_x_y_z_w_and_the_same_as_in_pose_aa(rollout: Path, tmp_path: Path) -> None:
    (motion,) = load(rollout, tmp_path / "motions.pkl").values()
    by_quat = Rotation.from_quat(motion["root_rot"])
    by_vector = Rotation.from_rotvec(motion["pose_aa"][:, 0])
    assert (by_quat.inv() * by_vector).magnitude().max() < 1e-5
    pose = data()["external_pose"][FIRST_STATE : FIRST_STATE + ROWS]
    np.testing.assert_allclose(motion["root_rot"][:, 3], pose[:, 3], atol=1e-6)


def test_a_run_without_an_external_pose_says_so_and_invents_nothing(poseless: Path, tmp_path: Path) -> None:
    made = export([poseless], "asap", tmp_path / "motions.pkl", Wish())
    (motion,) = joblib.load(tmp_path / "motions.pkl").values()
    assert np.isnan(motion["root_trans_offset"]).all()
    assert not motion["root_valid"].any()
    about = json.loads(motion["about"])
    assert (about["root_position"], about["root_rotation"]) == ("missing", "imu")
    assert made.missing == ["root_trans_offset"]
    assert np.isfinite(motion["pose_aa"]).all()


def test_sent_targets_in_asap_units_need_no_contract(tmp_path: Path) -> None:
    path = write(tmp_path / "foreign", info=run_info("terms: [gyro]\n"))
    (motion,) = load(path, tmp_path / "motions.pkl", action="sent").values()
    makers = data()[POLICY_START : POLICY_START + 299]
    back = motion["action"] * 0.25 + asap.default_pose(NAMES)[KEPT]
    np.testing.assert_allclose(back, makers["action_sent"][:, KEPT], atol=1e-6)
    expected = {0: -0.1, 3: 0.3, 4: -0.2, 6: -0.1, 9: 0.3, 10: -0.2}
    assert {k: pytest.approx(v) for k, v in enumerate(asap.default_pose(NAMES)) if v} == expected
    with pytest.raises(RolloutError, match=r"no readable contract.*--action sent"):
        load(path, tmp_path / "raw.pkl")


def test_a_policy_of_the_legs_alone_has_no_raw_action_for_asap(tmp_path: Path) -> None:
    path = write(tmp_path / "legs", info=run_info(contract(NAMES[:12])))
    with pytest.raises(RolloutError, match=r"no action for waist_yaw_joint.*--action sent"):
        load(path, tmp_path / "motions.pkl")


def test_another_rate_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "fast", _at_100_hz(), run_info(period_s=0.01))
    with pytest.raises(RolloutError, match="100 rows a second, ASAP reads 50"):
        load(path, tmp_path / "motions.pkl", cut=Cut(min_s=0.1))


def _at_100_hz() -> np.ndarray:
    table = data()
    table["robot_tick"] = 1000 + 10 * np.arange(len(table))
    table["recv_ns"] = table["recv_ns"][0] + 10_000_000 * np.arange(len(table))
    return table
