"""Loads the MJCF, fits it to a configuration, and finds what the simulator needs in it."""

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import ConfigError
from onboard.configs.robot import RobotConfig, load_robot
from onboard.configs.sim import SimConfig, per_joint

MODEL_FOLDER = Path(__file__).parent / "model"
ROBOT_XML = MODEL_FOLDER / "g1_29dof.xml"
SCENE_XML = MODEL_FOLDER / "scene.xml"

FREE_Q = 7
"""Positions of the pelvis in qpos: x, y, z, and the quaternion w, x, y, z; the joints follow."""
FREE_V = 6
"""Velocities of the pelvis in qvel: linear in the world frame, angular in the pelvis frame."""

EXPLICIT_LIMIT = 2.0
"""An explicit PD is unstable where max eig(M⁻¹·Kd)·dt is above this."""

Float64Array = NDArray[np.float64]


@dataclass(frozen=True)
class SimModel:
    """A compiled model and addresses in it.

    Attributes:
        mj: the MjModel; joints and actuators are in SDK motor order.
        robot: the description that it was checked against.
        effort_nm: (29,) torque limit in force, the gap's factor included.
        pelvis, torso: body numbers.
        feet: body numbers of the left and the right foot.
        gantry: number of the equality constraint that holds the pelvis.
        sole_geoms: collision geoms of both feet.
    """

    mj: mujoco.MjModel
    robot: RobotConfig
    effort_nm: Float64Array
    pelvis: int
    torso: int
    feet: tuple[int, int]
    gantry: int
    sole_geoms: NDArray[np.intp]


@dataclass(frozen=True)
class ExplicitPd:
    """Whether a PD that is computed from q and dq, and held over a step, would be stable.

    This simulator integrates the gains implicitly and does not suffer from it; simulators that
    do not, chatter or fall with the same gains.

    Attributes:
        eigenvalue: max eig(M⁻¹·Kd)·dt in the given pose.
        joint: the one that takes most part in that mode.
    """

    eigenvalue: float
    joint: str

    @property
    def unstable(self) -> bool:
        """Above the limit."""
        return self.eigenvalue > EXPLICIT_LIMIT

    def warning(self, timestep_s: float) -> str:
        """One line for people; empty where there is nothing to warn of."""
        if not self.unstable:
            return ""
        return (
            f"max eig(M^-1 Kd) dt is {self.eigenvalue:.2f} (most of it in {self.joint}): above "
            f"{EXPLICIT_LIMIT:g}, these gains are unstable wherever PD is computed explicitly at "
            f"{timestep_s * 1e3:g} ms; this simulator computes it implicitly"
        )


def load_model(config: SimConfig) -> SimModel:
    """Compile the scene and apply time step, floor and the gap's constant knobs.

    Raises:
        ConfigError: the robot is not the 29-joint one, or a joint pattern matches nothing.
    """
    robot = load_robot(config.robot)
    mj = mujoco.MjModel.from_xml_path(str(SCENE_XML))
    joints = tuple(mj.joint(i).name for i in range(1, mj.njnt))
    if joints != robot.joint_names or not robot.valid.all():
        raise ConfigError(f"robot '{robot.name}': the simulator has the G1 with all 29 joints; use g1_29dof")
    mj.opt.timestep = config.timestep_s
    mj.geom_friction[mj.geom("floor").id, 0] = config.floor_friction
    gap = config.gap
    effort = robot.effort * per_joint(gap.torque_limit, robot, "gap.torque_limit", 1.0)
    mj.actuator_forcerange[:] = np.stack([-effort, effort], axis=1)
    mj.dof_frictionloss[FREE_V:] = per_joint(gap.friction_nm, robot, "gap.friction_nm")
    _turn_site(mj, "pelvis_imu", gap.imu_rotation_rad.pelvis)
    _turn_site(mj, "torso_imu", gap.imu_rotation_rad.torso)
    added = per_joint(gap.mass_kg, robot, "gap.mass_kg")
    if added.any():
        _add_mass(mj, added, robot)
    feet = (mj.body("left_ankle_roll_link").id, mj.body("right_ankle_roll_link").id)
    return SimModel(
        mj=mj,
        robot=robot,
        effort_nm=effort,
        pelvis=mj.body("pelvis").id,
        torso=mj.body("torso_link").id,
        feet=feet,
        gantry=mj.equality("gantry").id,
        sole_geoms=np.flatnonzero(np.isin(mj.geom_bodyid, feet) & (mj.geom_contype > 0)),
    )


def _turn_site(mj: mujoco.MjModel, name: str, roll_pitch_yaw: tuple[float, ...]) -> None:
    """Turn a site against its body, about the body's fixed axes x, y, z one after the other, rad."""
    if any(roll_pitch_yaw):
        site = mj.site(name).id
        mujoco.mju_euler2Quat(mj.site_quat[site], np.array(roll_pitch_yaw), "XYZ")
        mj.site_sameframe[site] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE


def _add_mass(mj: mujoco.MjModel, added_kg: Float64Array, robot: RobotConfig) -> None:
    """Put point masses at the links' centres of mass; inertia tensors about those stay as they are."""
    bodies = mj.jnt_bodyid[1:]
    for name, body, kg in zip(robot.joint_names, bodies, added_kg, strict=True):
        if mj.body_mass[body] + kg <= 0.01:
            raise ConfigError(
                f"gap.mass_kg: {kg:g} kg at {name} leaves {mj.body_mass[body] + kg:.3f} kg of its link's "
                f"{mj.body_mass[body]:.3f}; at least 0.01 kg must remain"
            )
        mj.body_mass[body] += kg
    mujoco.mj_setConst(mj, mujoco.MjData(mj))


def start_pose(config: SimConfig, robot: RobotConfig) -> Float64Array:
    """(29,) joint positions at the start, rad, clipped to the joints' ranges."""
    key = f"start_poses.{config.start_pose}"
    pose = per_joint(config.start_poses[config.start_pose], robot, key)
    return np.clip(pose, robot.lower, robot.upper)


def explicit_pd(model: SimModel, data: mujoco.MjData, kd: NDArray[np.floating]) -> ExplicitPd:
    """Largest eigenvalue of M⁻¹·Kd·dt in the pose of `data`, whose mass matrix must be up to date.

    Args:
        model: the robot.
        data: its state.
        kd: (29,) damping gains, N·m·s/rad.
    """
    mj = model.mj
    damping = np.zeros((kd.size, mj.nv))
    damping[:, FREE_V:] = np.diag(np.asarray(kd, dtype=np.float64))
    columns = np.zeros_like(damping)
    mujoco.mj_solveM(mj, data, columns, damping)
    # Rows of M⁻¹·Kd that belong to the pelvis only add zeros to the spectrum: Kd does not act on it.
    values, vectors = np.linalg.eig(columns[:, FREE_V:].T)
    worst = int(np.argmax(values.real))
    joint = model.robot.joint_names[int(np.argmax(np.abs(vectors[:, worst])))]
    return ExplicitPd(float(values[worst].real * mj.opt.timestep), joint)
