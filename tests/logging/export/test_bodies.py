"""Links of whole stretches against MuJoCo's, on random states."""

from typing import Literal

import mujoco
import numpy as np
import pytest

from onboard.configs.bodies import load_bodies
from onboard.configs.errors import ConfigError
from onboard.logging.export import formats
from onboard.logging.export.beyondmimic import BODY_KEYS, arrays, orders
from onboard.logging.export.bodies import body_motion
from onboard.logging.export.clips import Clip
from onboard.sim.model import ROBOT_XML
from tests.logging.export.recorded import NAMES, data

ROWS = 12


def states() -> tuple[mujoco.MjModel, np.ndarray, np.ndarray]:
    model = mujoco.MjModel.from_xml_path(str(ROBOT_XML))
    random = np.random.default_rng(0)
    low, high = model.jnt_range[1:].T
    quat = random.normal(size=(ROWS, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    qpos = np.hstack([random.normal(size=(ROWS, 3)), quat, random.uniform(low, high, (ROWS, 29))])
    return model, qpos, random.normal(scale=3.0, size=(ROWS, 6 + 29))


@pytest.mark.parametrize("point", ["origin", "com"])
def test_positions_rotations_and_velocities_are_mujocos(point: Literal["origin", "com"]) -> None:
    model, qpos, qvel = states()
    found = body_motion(
        load_bodies("g1_29dof"),
        qpos[:, :3],
        qpos[:, 3:7],
        qvel[:, :3],
        qvel[:, 3:6],
        qpos[:, 7:],
        qvel[:, 6:],
        point,
    )
    mujoco_data = mujoco.MjData(model)
    kind = mujoco.mjtObj.mjOBJ_XBODY if point == "origin" else mujoco.mjtObj.mjOBJ_BODY
    for row in range(ROWS):
        mujoco_data.qpos[:], mujoco_data.qvel[:] = qpos[row], qvel[row]
        mujoco.mj_forward(model, mujoco_data)
        np.testing.assert_allclose(found.position_m[row], mujoco_data.xpos[1:], atol=1e-9)
        same = np.abs((found.quat_wxyz[row] * mujoco_data.xquat[1:]).sum(1))
        np.testing.assert_allclose(same, 1, atol=1e-9)
        for body in range(1, model.nbody):
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(model, mujoco_data, kind, body, velocity, 0)
            np.testing.assert_allclose(found.spin_rad_s[row, body - 1], velocity[:3], atol=1e-8)
            np.testing.assert_allclose(found.velocity_m_s[row, body - 1], velocity[3:], atol=1e-8)


def test_a_robot_without_a_table_has_joints_only_and_says_so() -> None:
    table = data()[100:150]
    track = {name: table[name] for name in table.dtype.names or ()}
    clip = Clip("walk_0", "walk.h5", 0, 0.02, "g1_23dof", "", NAMES, None, 0, track, [])
    found = arrays(clip, formats._bodies("g1_23dof"))
    assert found["missing"].tolist() == list(BODY_KEYS)
    assert not set(BODY_KEYS) & set(found)
    np.testing.assert_array_equal(found["joint_pos"], table["q"])
    assert '"order": "mjcf"' in str(found["about"])
    with pytest.raises(ConfigError):
        load_bodies("g1_23dof")


def test_orders_are_permutations() -> None:
    bodies = load_bodies("g1_29dof")
    for order in ("isaac", "mjcf"):
        joints, links = orders(bodies, "isaac" if order == "isaac" else "mjcf")
        assert sorted(joints.tolist()) == list(range(29))
        assert sorted(links.tolist()) == list(range(30))
