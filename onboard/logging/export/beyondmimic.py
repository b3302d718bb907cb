"""BeyondMimic's motion npz: `fps`, `joint_pos`, `joint_vel`, `body_{pos,quat,lin_vel,ang_vel}_w`.

Two orders of joints and bodies are in use. `isaac` is BeyondMimic's own, breadth-first as Isaac Lab counts,
with velocities of the links' centres of mass; `mjcf` is mjlab's, the order of the model (SDK motor order
for joints), with velocities of the links' origins. Both projects' loaders read only these keys.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onboard.configs.bodies import BodyTable
from onboard.configs.robot import N_JOINTS
from onboard.logging.export.bodies import BodyMotion, body_motion
from onboard.logging.export.clips import Clip
from onboard.logging.export.rootpose import RootPose, root_pose

Order = Literal["isaac", "mjcf"]

BODY_KEYS = ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")


def arrays(clip: Clip, bodies: BodyTable | None, order: Order = "isaac") -> dict[str, np.ndarray]:
    """One clip of T rows.

    Without an external pose `body_pos_w` and `body_lin_vel_w` are NaN; without a table of the robot's
    links there are no `body_*` at all, and joints stand in the order `mjcf`. `missing` names what is so.

    Args:
        clip: joints of all 29 slots.
        bodies: the robot's links; None where no table is shipped for it.
        order: `isaac` or `mjcf`.
    """
    root = root_pose(clip.track, clip.period_s)
    order = order if bodies is not None else "mjcf"
    joints, links = orders(bodies, order)
    names = np.array(clip.joint_names)
    common = {
        "fps": np.array([1.0 / clip.period_s]),
        "joint_pos": clip.track["q"][:, joints],
        "joint_vel": clip.track["dq"][:, joints],
        "joint_names": names[joints],
    }
    about = np.array(clip.account(order=order, **root.sources))
    if bodies is None:
        return {**common, "missing": np.array(BODY_KEYS), "about": about}
    moved = _moved(clip, bodies, root, "com" if order == "isaac" else "origin")
    missing = ("body_pos_w", "body_lin_vel_w") if root.position_from == "missing" else ()
    return {
        **common,
        "body_pos_w": moved.position_m[:, links].astype(np.float32),
        "body_quat_w": moved.quat_wxyz[:, links].astype(np.float32),
        "body_lin_vel_w": moved.velocity_m_s[:, links].astype(np.float32),
        "body_ang_vel_w": moved.spin_rad_s[:, links].astype(np.float32),
        "body_names": np.array([bodies.links[link].name for link in links]),
        "missing": np.array(missing, dtype=str),
        "about": about,
    }


def orders(bodies: BodyTable | None, order: Order) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of joints (SDK) and links (table) in the wanted order.

    Isaac Lab counts by depth in the tree, and within a depth as the model does.
    """
    if bodies is None or order == "mjcf":
        return np.arange(N_JOINTS), np.arange(1 + N_JOINTS)
    depth = [0] * len(bodies.links)
    for number, link in enumerate(bodies.links[1:], start=1):
        depth[number] = depth[link.parent] + 1
    links = np.argsort(depth, kind="stable")
    return links[1:] - 1, links


def _moved(clip: Clip, bodies: BodyTable, root: RootPose, point: Literal["origin", "com"]) -> BodyMotion:
    return body_motion(
        bodies,
        root.position_m,
        root.quat_wxyz,
        root.velocity(clip.period_s),
        clip.track["gyro_body"],
        clip.track["q"],
        clip.track["dq"],
        point,
    )
