"""Exported motions are motions for a policy again: read by the runtime's own loader of references."""

from pathlib import Path

import numpy as np
import pytest

from onboard.configs.robot import load_robot
from onboard.logging.export.beyondmimic import Order
from onboard.logging.export.formats import Wish, export
from onboard.policies.contract import Motion
from onboard.policies.motion_bodies import check_bodies
from onboard.policies.motion_files import read_motion
from tests.logging.export.recorded import NAMES, POLICY_START, data

KEPT = tuple(name for name in NAMES if "wrist" not in name)


@pytest.mark.parametrize("order", ["isaac", "mjcf"])
def test_beyondmimic_npz_is_a_reference(rollout: Path, tmp_path: Path, order: Order) -> None:
    path = tmp_path / "motion.npz"
    export([rollout], "beyondmimic", path, Wish(order=order))
    motion = Motion(source="file", file=path.name, quat_order="wxyz", anchor="torso")
    raw = read_motion(path, motion, NAMES)
    assert raw.body_quat is not None
    check_bodies(path, raw, raw.root_quat, raw.body_quat, load_robot("g1_29dof"))
    table = data()[POLICY_START:][:300]
    np.testing.assert_array_equal(
        raw.joint_pos[:, [raw.joints.index(name) for name in NAMES]], table["q"].astype(np.float64)
    )
    np.testing.assert_allclose(raw.root_pos, table["external_pose"][:, :3], atol=1e-6)
    assert raw.rate_hz == 50


def test_asap_pickle_is_a_reference(rollout: Path, tmp_path: Path) -> None:
    path = tmp_path / "motion.pkl"
    export([rollout], "asap", path, Wish())
    motion = Motion(source="file", file=path.name, quat_order="xyzw", anchor="pelvis")
    raw = read_motion(path, motion, KEPT)
    assert raw.joint_pos.shape == (295, 23)
    assert raw.rate_hz == 50
    np.testing.assert_allclose(np.linalg.norm(raw.root_quat, axis=1), 1, atol=1e-6)
