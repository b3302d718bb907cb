import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from onboard.configs.errors import ConfigError
from onboard.configs.robot import load_robot
from onboard.configs.sim import load_sim
from onboard.sim.model import ROBOT_XML, explicit_pd, load_model
from onboard.sim.physics import Physics

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def ours() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(ROBOT_XML))


@pytest.fixture(scope="module")
def published() -> mujoco.MjModel:
    spec = importlib.util.find_spec("mjlab")
    if spec is None or spec.origin is None:
        pytest.skip("the mjlab wheel is not installed; it holds the published model")
    xml = Path(spec.origin).parent / "asset_zoo/robots/unitree_g1/xmls/g1.xml"
    return mujoco.MjModel.from_xml_path(str(xml))


def dynamics(model: mujoco.MjModel, q: Array, v: Array) -> tuple[Array, Array]:
    """Mass matrix without armature, and bias forces."""
    model.dof_armature[:] = 0
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    mass = np.zeros((model.nv, model.nv))
    for column, unit in zip(mass, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    return mass, data.qfrc_bias.copy()


def random_state(rng: np.random.Generator) -> tuple[Array, Array]:
    q = rng.uniform(-1.5, 1.5, 36)
    q[3:7] = rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    return q, rng.normal(0, 3, 35)


def relative(a: Array, b: Array) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def test_dynamics_equal_the_published_model(published: mujoco.MjModel) -> None:
    ours = mujoco.MjModel.from_xml_path(str(ROBOT_XML))
    rng = np.random.default_rng(2)
    for _ in range(100):
        q, v = random_state(rng)
        mass, bias = dynamics(ours, q, v)
        mass_published, bias_published = dynamics(published, q, v)
        assert relative(mass, mass_published) < 1e-6
        assert relative(np.diag(mass), np.diag(mass_published)) < 1e-6
        assert relative(bias, bias_published) < 1e-6


def sole_points(model: mujoco.MjModel, side: str) -> tuple[Array, Array]:
    """End points of a foot's round collision shapes in the foot's frame, and their radii."""
    body = model.body(f"{side}_ankle_roll_link").id
    points, radii = [], []
    for geom in np.flatnonzero((model.geom_bodyid == body) & (model.geom_contype > 0)):
        radius, half = model.geom_size[geom, :2]
        axis = np.zeros(9)
        mujoco.mju_quat2Mat(axis, model.geom_quat[geom])
        reach = half if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
        for sign in (-1, 1):
            points.append(model.geom_pos[geom] + sign * reach * axis.reshape(3, 3)[:, 2])
            radii.append(radius)
    return np.array(points), np.array(radii)


@pytest.mark.parametrize("side", ["left", "right"])
def test_feet_stand_on_the_published_support_points(
    ours: mujoco.MjModel, published: mujoco.MjModel, side: str
) -> None:
    rng = np.random.default_rng(3)
    directions = rng.normal(size=(500, 3))
    directions[:, 2] = -np.abs(directions[:, 2])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach = []
    for model in (ours, published):
        points, radii = sole_points(model, side)
        reach.append((directions @ points.T + radii).max(axis=1))
    assert np.abs(reach[0] - reach[1]).max() < 0.002
    mine, theirs = (sole_points(model, side)[0] for model in (ours, published))
    gaps = np.linalg.norm(mine[:, None] - theirs[None], axis=2)
    assert gaps.min(axis=0).max() < 0.002
    assert gaps.min(axis=1).max() < 0.002


def test_joints_are_those_of_the_robot_description(ours: mujoco.MjModel) -> None:
    robot = load_robot("g1_29dof")
    assert tuple(ours.joint(i).name for i in range(1, ours.njnt)) == robot.joint_names
    np.testing.assert_array_equal(ours.actuator_trnid[:, 0], np.arange(1, 30))
    np.testing.assert_allclose(ours.jnt_range[1:, 0], robot.lower, atol=1e-6)
    np.testing.assert_allclose(ours.jnt_range[1:, 1], robot.upper, atol=1e-6)
    np.testing.assert_allclose(ours.actuator_forcerange, np.stack([-robot.effort, robot.effort], 1))
    np.testing.assert_allclose(ours.dof_armature[6:], robot.armature)


def test_imus_sit_where_the_robot_description_says(ours: mujoco.MjModel) -> None:
    imu = load_robot("g1_29dof").imu
    for site, body, position in (
        ("pelvis_imu", "pelvis", imu.pelvis_m),
        ("torso_imu", "torso_link", imu.torso_m),
    ):
        number = ours.site(site).id
        assert ours.site_bodyid[number] == ours.body(body).id
        np.testing.assert_allclose(ours.site_pos[number], position)
        np.testing.assert_allclose(ours.site_quat[number], [1, 0, 0, 0])


def test_no_mesh_is_needed(ours: mujoco.MjModel) -> None:
    assert ours.nmesh == 0


def test_a_robot_with_missing_joints_is_refused() -> None:
    with pytest.raises(ConfigError, match="use g1_29dof"):
        load_model(load_sim(overrides=["robot=g1_23dof"]))


def test_explicit_pd_of_stiff_arms_is_unstable() -> None:
    """kd 10 on the arms: 5.1 at 2 ms, measured with another implementation on the published model."""
    body = Physics(load_sim())
    kd = np.concatenate([np.full(15, 2.0), np.full(14, 10.0)])
    verdict = explicit_pd(body.model, body.data, kd)
    assert verdict.eigenvalue == pytest.approx(5.1, abs=0.1)
    assert verdict.unstable
    assert "wrist" in verdict.joint
    assert "unstable" in verdict.warning(0.002)
    assert not explicit_pd(body.model, body.data, np.full(29, 2.0)).warning(0.002)


def test_explicit_pd_agrees_with_what_an_explicit_pd_does() -> None:
    """A damping torque held over each step makes the wrists chatter above the limit, and only there."""
    for kd_value, grows in ((3.5, False), (4.5, True)):
        body = Physics(load_sim(overrides=["gantry.attached=true"]))
        kd = np.full(29, kd_value)
        assert explicit_pd(body.model, body.data, kd).unstable is grows
        body.data.qvel[6:] = 1e-3 * np.random.default_rng(0).normal(size=29)
        for _ in range(200):
            body.motors.set(0.0, 0.0, 0.0, tau=-kd * body.data.qvel[6:])
            body.step()
        wrists = np.abs(body.data.qvel[6:][[19, 26]]).max()
        assert bool(wrists > 1.0) is grows
