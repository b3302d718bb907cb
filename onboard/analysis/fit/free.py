"""The whole robot, free to fall, on a floor: for short stretches of walking.

Where it starts is what the log knows: joints, attitude and rates of the pelvis, its estimated velocity.
Its height is not measured well enough for a stiff floor, on which a millimetre more or less is a blow or a
foot that carries nothing: it is that of the lower sole on the ground, as deep in it as a standing robot's.
"""

import hashlib

import mujoco
import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.model import TIMESTEP_S, FitModel
from onboard.analysis.prediction import STANCE_DEPTH_M
from onboard.configs.robot import RobotConfig
from onboard.configs.sim import load_sim
from onboard.sim.model import FREE_Q, SCENE_XML, load_model

Float64Array = NDArray[np.float64]


def free_model(robot: RobotConfig) -> FitModel:
    """The nominal simulator as every run has it.

    Raises:
        ConfigError: it is not a robot that the simulator has.
    """
    mj = load_model(load_sim("g1", [f"robot={robot.name}", f"timestep_s={TIMESTEP_S}"])).mj
    digest = hashlib.sha256(SCENE_XML.with_name("g1_29dof.xml").read_bytes()).hexdigest()
    return FitModel(mj, np.arange(len(robot.joints), dtype=np.intp), digest, held=False)


def on_the_floor(
    model: FitModel, q: Float64Array, quat_wxyz: Float64Array, gyro_body: Float64Array, velocity: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Where the pelvis of robots in stance is, and how it moves.

    Args:
        model: from `free_model`.
        q: (n, 29) joint positions, rad.
        quat_wxyz: (n, 4) of the pelvis, world from body.
        gyro_body: (n, 3) rad/s.
        velocity: (n, 3) m/s, body frame.

    Returns:
        (n, 7) position and quaternion, (n, 6) velocity, world frame, and angular velocity, body frame.
    """
    pose, motion = np.zeros((len(q), 7)), np.zeros((len(q), 6))
    pose[:, 3:] = quat_wxyz / np.linalg.norm(quat_wxyz, axis=1, keepdims=True)
    motion[:, 3:] = gyro_body
    data, soles = mujoco.MjData(model.mj), _soles(model.mj)
    radius = model.mj.geom_size[soles, 0]
    for k in range(len(q)):
        data.qpos[:FREE_Q], data.qpos[FREE_Q:] = pose[k], q[k]
        mujoco.mj_kinematics(model.mj, data)
        pose[k, 2] = -float((data.geom_xpos[soles, 2] - radius).min()) - STANCE_DEPTH_M
        mujoco.mju_rotVecQuat(motion[k, :3], velocity[k], pose[k, 3:])
    return pose, motion


def _soles(mj: mujoco.MjModel) -> NDArray[np.intp]:
    feet = [mj.body(f"{side}_ankle_roll_link").id for side in ("left", "right")]
    return np.flatnonzero(np.isin(mj.geom_bodyid, feet) & (mj.geom_contype > 0))
