"""Closed forms for the few rotations that an observation needs. Quaternions are w, x, y, z.

Plain Python numbers: for four of them an array costs more than the arithmetic.
"""

import math
from collections.abc import Sequence

Quat = tuple[float, float, float, float]
Vector = tuple[float, float, float]


def gravity_in_body(quat: Sequence[float]) -> Vector:
    """Unit gravity `Rᵀ·(0, 0, -1)` in the frame of a body with orientation `quat` (world from body)."""
    w, x, y, z = quat
    return 2.0 * (w * y - x * z), -2.0 * (w * x + y * z), 2.0 * (x * x + y * y) - 1.0


def multiply(a: Sequence[float], b: Sequence[float]) -> Quat:
    """Hamilton product `a·b`."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def conjugate(quat: Sequence[float]) -> Quat:
    """Inverse of a unit quaternion."""
    w, x, y, z = quat
    return w, -x, -y, -z


def yaw_of(quat: Sequence[float]) -> float:
    """Heading of the body's x axis in the world, rad."""
    w, x, y, z = quat
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def roll_pitch_of(quat: Sequence[float]) -> tuple[float, float]:
    """Roll and pitch of the z-y-x Euler angles, rad."""
    w, x, y, z = quat
    roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x))))
    return roll, pitch


def about_z(angle_rad: float) -> Quat:
    """Rotation about the vertical."""
    return math.cos(0.5 * angle_rad), 0.0, 0.0, math.sin(0.5 * angle_rad)


def torso_from_pelvis(pelvis: Sequence[float], yaw: float, roll: float, pitch: float) -> Quat:
    """Orientation of the torso: the G1's waist turns about z, then x, then y (joints 12, 13, 14), rad."""
    turned = multiply(pelvis, about_z(yaw))
    rolled = multiply(turned, (math.cos(0.5 * roll), math.sin(0.5 * roll), 0.0, 0.0))
    return multiply(rolled, (math.cos(0.5 * pitch), 0.0, math.sin(0.5 * pitch), 0.0))


def first_two_columns(quat: Sequence[float]) -> tuple[float, float, float, float, float, float]:
    """R00, R01, R10, R11, R20, R21 of the rotation matrix."""
    w, x, y, z = quat
    return (
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
    )


def rotate_inverse(quat: Sequence[float], vector: Sequence[float]) -> Vector:
    """A world vector in the frame of a body with orientation `quat`."""
    w, x, y, z = quat
    vx, vy, vz = vector
    tx, ty, tz = 2.0 * (vy * z - vz * y), 2.0 * (vz * x - vx * z), 2.0 * (vx * y - vy * x)
    return (
        vx + w * tx + (ty * z - tz * y),
        vy + w * ty + (tz * x - tx * z),
        vz + w * tz + (tx * y - ty * x),
    )
