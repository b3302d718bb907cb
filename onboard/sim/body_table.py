"""Writes the table of links that the estimators use, from the simulator's own model.

    python -m onboard.sim.body_table

Run it after every change of the MJCF; a test compares the two.
"""

from pathlib import Path

import msgspec
import mujoco
import numpy as np
import yaml

from onboard.configs.bodies import BodyTable, Link
from onboard.configs.loader import CONFIG_ROOT
from onboard.configs.robot import N_JOINTS
from onboard.sim.model import ROBOT_XML, Float64Array

ROBOT = "g1_29dof"
TABLE = CONFIG_ROOT / "bodies" / f"{ROBOT}.yaml"
HEADER = "# Written by `python -m onboard.sim.body_table` from sim/model/g1_29dof.xml; do not edit by hand.\n"
FEET = ("left_ankle_roll_link", "right_ankle_roll_link")


def body_table(mj: mujoco.MjModel) -> BodyTable:
    """The table of a compiled model.

    Raises:
        ValueError: the soles differ, or links and joints do not follow each other in SDK order.
    """
    if not np.array_equal(mj.jnt_bodyid, np.arange(1, 2 + N_JOINTS)):
        raise ValueError("the model's links do not stand in the order of their joints")
    links = tuple(_link(mj, 1 + number, number) for number in range(1 + N_JOINTS))
    soles = [_sole(mj, foot) for foot in FEET]
    if not np.array_equal(soles[0], soles[1]):
        raise ValueError("the soles of the two feet differ; one outline stands for both")
    points, radii = soles[0][:, :3], soles[0][:, 3]
    return BodyTable(ROBOT, links, tuple(_tuple(point) for point in points), float(radii.max()))


def _link(mj: mujoco.MjModel, body: int, joint: int) -> Link:
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, mj.body_iquat[body])
    turn = rotation.reshape(3, 3)
    tensor = turn @ np.diag(mj.body_inertia[body]) @ turn.T
    free = joint == 0
    return Link(
        name=mj.body(body).name,
        parent=-1 if free else int(mj.body_parentid[body]) - 1,
        position_m=(0.0, 0.0, 0.0) if free else _tuple(mj.body_pos[body]),
        quat_wxyz=(1.0, 0.0, 0.0, 0.0) if free else _tuple(mj.body_quat[body]),
        axis=(0.0, 0.0, 0.0) if free else _tuple(mj.jnt_axis[joint]),
        mass_kg=float(mj.body_mass[body]),
        com_m=_tuple(mj.body_ipos[body]),
        inertia_kg_m2=_tuple(tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]),
    )


def _sole(mj: mujoco.MjModel, foot: str) -> Float64Array:
    """(n, 4) centre and radius of the spheres under a foot."""
    body, sphere = mj.geom_bodyid == mj.body(foot).id, mj.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE
    chosen = body & sphere & (mj.geom_contype > 0)
    return np.hstack([mj.geom_pos[chosen], mj.geom_size[chosen, :1]])


def _tuple(values: Float64Array) -> tuple[float, ...]:
    return tuple(float(value) + 0.0 for value in values)


def write_table(path: Path = TABLE) -> None:
    """Write the shipped table anew."""
    table = body_table(mujoco.MjModel.from_xml_path(str(ROBOT_XML)))
    path.parent.mkdir(exist_ok=True)
    plain = msgspec.json.decode(msgspec.json.encode(table))
    text = yaml.safe_dump(plain, default_flow_style=None, sort_keys=False, width=200)
    path.write_text(HEADER + text, encoding="utf-8")


if __name__ == "__main__":
    write_table()
