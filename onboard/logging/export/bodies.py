"""Where all links were in the world and how they moved, for whole stretches at once; numpy alone."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.bodies import BodyTable

Floats = NDArray[np.float64]


class BodyMotion(NamedTuple):
    """Links (B) over T rows, in the world.

    Attributes:
        position_m: (T, B, 3) of the links' frames.
        quat_wxyz: (T, B, 4) world from link.
        velocity_m_s: (T, B, 3) of the points that were asked for.
        spin_rad_s: (T, B, 3).
    """

    position_m: Floats
    quat_wxyz: Floats
    velocity_m_s: Floats
    spin_rad_s: Floats


def body_motion(
    bodies: BodyTable,
    position_m: np.ndarray,
    quat_wxyz: np.ndarray,
    velocity_m_s: np.ndarray,
    gyro_body: np.ndarray,
    q: np.ndarray,
    dq: np.ndarray,
    point: Literal["origin", "com"] = "origin",
) -> BodyMotion:
    """Walk through the tree, parents first.

    Args:
        bodies: the links; joint j moves link j + 1.
        position_m: (T, 3) of the pelvis in the world; NaN makes all positions and velocities NaN.
        quat_wxyz: (T, 4) world from pelvis.
        velocity_m_s: (T, 3) of the pelvis' origin in the world.
        gyro_body: (T, 3) rad/s of the pelvis in its own frame.
        q: (T, 29) rad.
        dq: (T, 29) rad/s.
        point: whose velocity is given: the links' origins or their centres of mass.
    """
    count, rows = len(bodies.links), len(q)
    position, velocity, spin = (np.zeros((rows, count, 3)) for _ in range(3))
    quat = np.zeros((rows, count, 4))
    position[:, 0], quat[:, 0], velocity[:, 0] = position_m, quat_wxyz, velocity_m_s
    spin[:, 0] = rotate(quat[:, 0], gyro_body)
    for number, link in enumerate(bodies.links[1:], start=1):
        parent = link.parent
        carried = multiply(quat[:, parent], np.array(link.quat_wxyz))
        axis = np.array(link.axis)
        half = 0.5 * q[:, number - 1, None].astype(np.float64)
        quat[:, number] = multiply(carried, np.hstack([np.cos(half), np.sin(half) * axis]))
        arm = rotate(quat[:, parent], np.array(link.position_m))
        position[:, number] = position[:, parent] + arm
        velocity[:, number] = velocity[:, parent] + np.cross(spin[:, parent], arm)
        spin[:, number] = spin[:, parent] + rotate(carried, axis) * dq[:, number - 1, None]
    if point == "com":
        arms = rotate(quat, np.array([link.com_m for link in bodies.links]))
        velocity = velocity + np.cross(spin, arms)
    return BodyMotion(position, quat, velocity, spin)


def multiply(a: np.ndarray, b: np.ndarray) -> Floats:
    """Hamilton product over the last axis, w x y z."""
    aw, av, bw, bv = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    scalar = aw * bw - (av * bv).sum(-1, keepdims=True)
    return np.concatenate([scalar, aw * bv + bw * av + np.cross(av, bv)], axis=-1)


def rotate(quat: np.ndarray, vector: np.ndarray) -> Floats:
    """Vectors of a body's frame in the world, over the last axis."""
    w, v = quat[..., :1], quat[..., 1:]
    twice = 2.0 * np.cross(v, vector)
    turned: Floats = vector + w * twice + np.cross(v, twice)
    return turned
