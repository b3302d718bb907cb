"""Our own kinematics against MuJoCo's, on random states."""

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from onboard.configs.bodies import load_bodies
from onboard.policies.estimators.kinematics import Kinematics, cross, matrices, matrix, skew
from onboard.sim.model import ROBOT_XML

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(ROBOT_XML))


@pytest.fixture(scope="module")
def kinematics() -> Kinematics:
    return Kinematics(load_bodies("g1_29dof"))


def state(model: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """A robot somewhere, turned and moving."""
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    low, high = model.jnt_range[1:].T
    quat = rng.normal(size=4)
    data.qpos[:] = np.concatenate([rng.normal(size=3), quat / np.linalg.norm(quat), rng.uniform(low, high)])
    data.qvel[:] = np.concatenate([rng.normal(size=6), rng.normal(scale=5.0, size=29)])
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("seed", range(5))
def test_all_links_are_where_mujoco_has_them(
    model: mujoco.MjModel, kinematics: Kinematics, seed: int
) -> None:
    data = state(model, seed)
    turn, place = data.xmat[1].reshape(3, 3), data.xpos[1]
    pose = kinematics.pose(data.qpos[7:])
    np.testing.assert_allclose((data.xpos[1:] - place) @ turn, pose.origin, atol=1e-12)
    np.testing.assert_allclose((data.xipos[1:] - place) @ turn, pose.com, atol=1e-12)
    np.testing.assert_allclose(turn.T @ data.xmat[1:].reshape(-1, 3, 3), pose.rotation, atol=1e-12)
    np.testing.assert_allclose(data.xaxis[1:] @ turn, pose.axis[1:], atol=1e-12)
    np.testing.assert_array_equal(kinematics.mass, model.body_mass[1:])


@pytest.mark.parametrize("seed", range(5))
def test_all_links_move_as_in_mujoco(model: mujoco.MjModel, kinematics: Kinematics, seed: int) -> None:
    data = state(model, seed)
    turn = data.xmat[1].reshape(3, 3)
    motion = kinematics.motion(kinematics.pose(data.qpos[7:]), data.qvel[6:], data.qvel[3:6])
    for link in range(model.nbody - 1):
        jacobian, spin = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jacBodyCom(model, data, jacobian, spin, link + 1)
        velocity = jacobian @ data.qvel - data.qvel[:3]
        np.testing.assert_allclose(turn.T @ velocity, motion.com_velocity[link], atol=1e-11)
        principal = data.ximat[link + 1].reshape(3, 3)
        tensor = principal @ np.diag(model.body_inertia[link + 1]) @ principal.T
        np.testing.assert_allclose(turn.T @ tensor @ spin @ data.qvel, motion.momentum[link], atol=1e-11)


def test_whole_momentum_is_mujocos(model: mujoco.MjModel, kinematics: Kinematics) -> None:
    data = state(model, 11)
    mujoco.mj_subtreeVel(model, data)
    motion = kinematics.motion(kinematics.pose(data.qpos[7:]), data.qvel[6:], data.qvel[3:6])
    turn, mass = data.xmat[1].reshape(3, 3), kinematics.mass
    linear = turn @ (mass @ motion.com_velocity) + mass.sum() * data.qvel[:3]
    np.testing.assert_allclose(linear, model.body_subtreemass[1] * data.subtree_linvel[1], atol=1e-9)


def test_small_algebra() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 7, 3))
    np.testing.assert_allclose(cross(a, b), np.cross(a, b), atol=1e-14)
    np.testing.assert_allclose(skew(a[0]) @ b[0], np.cross(a[0], b[0]), atol=1e-14)
    quats = rng.normal(size=(4, 4))
    for quat, turn in zip(quats, matrices(quats), strict=True):
        expected = np.zeros(9)
        mujoco.mju_quat2Mat(expected, quat / np.linalg.norm(quat))
        np.testing.assert_allclose(turn.ravel(), expected, atol=1e-14)
        np.testing.assert_array_equal(matrix(quat), turn)
