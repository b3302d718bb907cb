"""The pose from outside: taken where it is fresh, marked where it is not."""

import numpy as np
from scipy.spatial.transform import Rotation

from onboard.logging.export.rootpose import root_pose
from onboard.logging.preprocess.pipeline import Track
from tests.logging.export.recorded import data
from tests.logging.synthetic import PERIOD_S


def track(pose: bool = True) -> Track:
    table = data(pose)[100:200]
    names = ("external_pose", "external_pose_ns", "external_age_s", "quat_wxyz")
    return {name: table[name].copy() for name in names}


def test_velocity_and_spin_are_those_of_the_pose() -> None:
    root = root_pose(track(), PERIOD_S)
    assert (root.position_from, root.rotation_from) == ("external", "external")
    assert root.valid.all()
    np.testing.assert_allclose(root.velocity(PERIOD_S), np.tile([0.5, 0, 0], (100, 1)), atol=1e-9)
    np.testing.assert_allclose(root.spin(PERIOD_S), np.tile([0, 0, 0.4], (100, 1)), atol=1e-9)


def test_spin_of_any_rotation_whatever_the_signs() -> None:
    random = np.random.default_rng(0)
    rate, start = random.normal(0, 2, 3), Rotation.random(rng=random)
    turns = Rotation.from_rotvec(np.arange(50)[:, None] * PERIOD_S * rate) * start
    data = track()
    data = {name: column[:50] for name, column in data.items()}
    quat = np.roll(turns.as_quat(), 1, axis=1) * random.choice([-1, 1], (50, 1))
    data["external_pose"][:, 3:] = quat
    np.testing.assert_allclose(root_pose(data, PERIOD_S).spin(PERIOD_S), np.tile(rate, (50, 1)), atol=1e-9)


def test_no_pose_is_missing_and_the_rotation_the_imus() -> None:
    without = track(pose=False)
    root = root_pose(without, PERIOD_S)
    assert (root.position_from, root.rotation_from) == ("missing", "imu")
    assert np.isnan(root.position_m).all()
    length = np.linalg.norm(without["quat_wxyz"], axis=1, keepdims=True)
    np.testing.assert_allclose(root.quat_wxyz, without["quat_wxyz"] / length, atol=1e-6)
    assert np.isnan(root.velocity(PERIOD_S)).all()
    assert np.isnan(root.spin(PERIOD_S)).all()
    assert root.sources["rows_without_root"] == 100


def test_a_pose_that_stands_still_for_a_tenth_of_a_second_is_none() -> None:
    stale = track()
    stale["external_pose_ns"][40:60] = stale["external_pose_ns"][40]
    stale["external_pose"][80] = np.nan
    root = root_pose(stale, PERIOD_S)
    assert np.flatnonzero(~root.valid).tolist() == [*range(46, 60), 80]
    assert np.isnan(root.position_m[~root.valid]).all()
    assert np.isfinite(root.position_m[root.valid]).all()
    assert root.sources["rows_without_root"] == 15


def test_a_pose_that_came_more_than_a_tenth_of_a_second_late_is_none() -> None:
    late = track()
    late["external_age_s"][10:14] = [0.09, 0.101, 0.5, np.nan]
    root = root_pose(late, PERIOD_S)
    assert np.flatnonzero(~root.valid).tolist() == [11, 12, 13]
    assert np.isnan(root.quat_wxyz[11:14]).all()
