"""Where all links are and how they move, from joint angles and rates; numpy alone, a few dozen calls.

Links are processed by their depth in the tree, so that both legs and both arms cost one pass. Every
vector is in the pelvis frame unless its name says otherwise. Link 0 is the pelvis, link 1 + j the
one behind joint j (SDK motor order).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.bodies import BodyTable

Float64Array = NDArray[np.float64]


@dataclass(frozen=True)
class Pose:
    """All links at one instant, pelvis frame.

    Attributes:
        rotation: (30, 3, 3) of each link's frame.
        origin: (30, 3) m, of each link's frame, which is where its joint sits.
        com: (30, 3) m.
        axis: (30, 3) of each link's joint; zero for the pelvis.
    """

    rotation: Float64Array
    origin: Float64Array
    com: Float64Array
    axis: Float64Array


@dataclass(frozen=True)
class Motion:
    """How the links move against the pelvis' origin; vectors in the pelvis frame, of a turning pelvis.

    Attributes:
        com_velocity: (30, 3) m/s, of the centres of mass, less the velocity of the pelvis' origin.
        momentum: (30, 3) kg·m²/s, angular, about the own centre of mass.
    """

    com_velocity: Float64Array
    momentum: Float64Array


class Kinematics:
    """Forward kinematics of one table.

    Attributes:
        mass: (30,) kg.
        moves: (30, 30) 1 where the joint of the column moves the link of the row, 0 elsewhere.
    """

    def __init__(self, table: BodyTable) -> None:
        links = table.links
        count = len(links)
        self.mass: Float64Array = np.array([link.mass_kg for link in links])
        self._position: Float64Array = np.array([link.position_m for link in links])
        self._com: Float64Array = np.array([link.com_m for link in links])[:, :, None]
        self._axis: Float64Array = np.array([link.axis for link in links])[:, :, None]
        self._inertia = _tensors(np.array([link.inertia_kg_m2 for link in links]))
        # Rotation of a link's frame in its parent's: fixed · (1 + sin q · K + (1 - cos q) · K²).
        fixed = np.array([matrix(link.quat_wxyz) for link in links])
        cross = np.array([skew(np.array(link.axis)) for link in links])
        self._turn = np.stack([fixed, fixed @ cross, fixed @ cross @ cross])
        self._levels = _levels([link.parent for link in links])
        self.moves: Float64Array = np.zeros((count, count))
        for number, link in enumerate(links[1:], start=1):
            self.moves[number] = self.moves[link.parent]
            self.moves[number, number] = 1.0

    def pose(self, q: NDArray[np.floating]) -> Pose:
        """Place all links; `q` (29,) rad, SDK motor order."""
        angle: Float64Array = np.zeros((len(self.mass), 1, 1))
        angle[1:, 0, 0] = q
        local = self._turn[0] + np.sin(angle) * self._turn[1] + (1.0 - np.cos(angle)) * self._turn[2]
        rotation: Float64Array = np.empty_like(local)
        rotation[0] = np.eye(3)
        origin: Float64Array = np.zeros_like(self._position)
        for links, parents in self._levels:
            carried = rotation[parents]
            rotation[links] = carried @ local[links]
            origin[links] = origin[parents] + (carried @ self._position[links][:, :, None])[:, :, 0]
        com = origin + (rotation @ self._com)[:, :, 0]
        return Pose(rotation, origin, com, (rotation @ self._axis)[:, :, 0])

    def motion(self, pose: Pose, dq: NDArray[np.floating], gyro: NDArray[np.floating]) -> Motion:
        """Velocities in a pose.

        Args:
            pose: of the links.
            dq: (29,) rad/s, SDK motor order.
            gyro: (3,) rad/s, of the pelvis.
        """
        rate: Float64Array = np.zeros((len(self.mass), 6))
        rate[1:, :3] = pose.axis[1:] * np.asarray(dq, np.float64)[:, None]
        rate[1:, 3:] = cross(rate[1:, :3], pose.origin[1:])
        total = self.moves @ rate
        spin = total[:, :3] + gyro
        in_link = np.swapaxes(pose.rotation, 1, 2) @ spin[:, :, None]
        momentum = pose.rotation @ (self._inertia @ in_link)
        return Motion(cross(spin, pose.com) - total[:, 3:], momentum[:, :, 0])


def cross(a: NDArray[np.floating], b: NDArray[np.floating]) -> Float64Array:
    """Cross product over the last axis; numpy's own takes five times as long on a few rows."""
    out: Float64Array = np.empty(np.broadcast_shapes(a.shape, b.shape))
    ax, ay, az, bx, by, bz = a[..., 0], a[..., 1], a[..., 2], b[..., 0], b[..., 1], b[..., 2]
    out[..., 0] = ay * bz - az * by
    out[..., 1] = az * bx - ax * bz
    out[..., 2] = ax * by - ay * bx
    return out


def skew(vector: NDArray[np.floating]) -> Float64Array:
    """(3, 3) matrix of the cross product with a vector from the left."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def matrix(quat_wxyz: NDArray[np.floating] | tuple[float, ...]) -> Float64Array:
    """(3, 3) rotation of a quaternion w, x, y, z, which is normalised first."""
    turn: Float64Array = matrices(np.asarray(quat_wxyz, np.float64)[None])[0]
    return turn


def matrices(quats_wxyz: NDArray[np.floating]) -> Float64Array:
    """(n, 3, 3) rotations of (n, 4) quaternions w, x, y, z, which are normalised first."""
    q = np.asarray(quats_wxyz, np.float64)
    w, x, y, z = (q / np.sqrt((q * q).sum(1, keepdims=True))).T
    out: Float64Array = np.empty((len(q), 3, 3))
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    out[:, 0, 0], out[:, 0, 1], out[:, 0, 2] = 1 - 2 * (yy + zz), 2 * (xy - w * z), 2 * (xz + w * y)
    out[:, 1, 0], out[:, 1, 1], out[:, 1, 2] = 2 * (xy + w * z), 1 - 2 * (xx + zz), 2 * (yz - w * x)
    out[:, 2, 0], out[:, 2, 1], out[:, 2, 2] = 2 * (xz - w * y), 2 * (yz + w * x), 1 - 2 * (xx + yy)
    return out


def _tensors(six: Float64Array) -> Float64Array:
    """(n, 3, 3) from xx, yy, zz, xy, xz, yz."""
    return six[:, [0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(-1, 3, 3)


def _levels(parents: list[int]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Links of equal depth with their parents, from the pelvis outwards."""
    depth = [0] * len(parents)
    for number, parent in enumerate(parents[1:], start=1):
        depth[number] = depth[parent] + 1
    depths, numbers = np.array(depth), np.array(parents)
    return [(np.flatnonzero(depths == level), numbers[depths == level]) for level in range(1, max(depth) + 1)]
