"""The part of the robot that a bench run needs: limbs on a pelvis that moves as it was recorded.

A pelvis in a gantry swings, and what the limbs feel of that can't be told from a delta. So it is made to
turn as the gyroscope says: its inertia is beyond anything that the limbs could move, and a moment of the
recorded angular acceleration acts on it. Limbs on such a pelvis do not feel each other: only those with
a joint of interest are simulated, with all their joints.
"""

import hashlib
from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.model import TIMESTEP_S, FitModel
from onboard.configs.robot import RobotConfig
from onboard.sim.model import ROBOT_XML

BASE_INERTIA_KG_M2 = 1e6


def held_model(robot: RobotConfig, slots: Sequence[int] | NDArray[np.intp]) -> FitModel:
    """Every limb that has one of the given motors, on a pelvis with a ball joint, without contacts.

    Args:
        robot: whose motor order counts.
        slots: SDK motor indices.
    """
    wanted = {robot.joint_names[int(slot)] for slot in slots}
    spec = mujoco.MjSpec.from_file(str(ROBOT_XML))
    spec.delete(spec.joint("pelvis"))
    spec.body("pelvis").add_joint(name="pelvis", type=mujoco.mjtJoint.mjJNT_BALL, armature=BASE_INERTIA_KG_M2)
    for sensor in list(spec.sensors):
        spec.delete(sensor)
    for limb in list(spec.body("pelvis").bodies):
        if not wanted & set(_joint_names(limb)):
            spec.delete(limb)
    spec.option.timestep = TIMESTEP_S
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    mj = spec.compile()
    names = [mj.joint(i).name for i in range(1, mj.njnt)]
    digest = hashlib.sha256(ROBOT_XML.read_bytes()).hexdigest()
    slots = np.array([robot.joint_names.index(name) for name in names], dtype=np.intp)
    return FitModel(mj, slots, digest, held=True)


def _joint_names(body: mujoco.MjsBody) -> Iterator[str]:
    for joint in body.joints:
        yield joint.name
    for child in body.bodies:
        yield from _joint_names(child)
