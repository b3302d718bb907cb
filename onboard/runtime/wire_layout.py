"""Byte layouts of the messages: serialised form (CDR, little-endian) with its 4-byte header.

`LowState` and `LowCmd` have no variable parts, so each is one fixed layout and a numpy type can lie
over it. One irregularity: CDR does not pad the end of a nested struct, so the `mode` byte of motor 0
sits 2 bytes behind the place where the stride of the other motors would put it; it has a field of its
own, `mode_0`.

Offsets were measured against Cyclone's own serialisation, which the tests repeat.
"""

import numpy as np

N_MOTORS = 35
"""Motor slots on the wire; the first 29 are the robot's joints."""

HEADER = b"\x00\x01\x00\x00"
"""Encapsulation header that we write: CDR, little-endian."""

ACCEPTED_HEADERS = (HEADER, b"\x00\x07\x00\x00")
"""Ours, and XCDR2 plain, little-endian, which has the same layout for these types."""


def _packed(fields: list[tuple[str, object, int]], size: int) -> np.dtype:
    names, formats, offsets = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


_MOTOR_STATE = _packed(
    [
        ("mode", "u1", 0),  # not for motor 0: see `mode_0` of the message
        ("q", "<f4", 4),
        ("dq", "<f4", 8),
        ("ddq", "<f4", 12),
        ("tau_est", "<f4", 16),
        ("temperature", ("<i2", 2), 20),
        ("vol", "<f4", 24),
        ("sensor", ("<u4", 2), 28),
        ("motorstate", "<u4", 36),
        ("reserve", ("<u4", 4), 40),
    ],
    56,
)

LOW_STATE = _packed(
    [
        ("header", "V4", 0),
        ("version", ("<u4", 2), 4),
        ("mode_pr", "u1", 12),
        ("mode_machine", "u1", 13),
        ("tick", "<u4", 16),
        ("quaternion", ("<f4", 4), 20),
        ("gyroscope", ("<f4", 3), 36),
        ("accelerometer", ("<f4", 3), 48),
        ("rpy", ("<f4", 3), 60),
        ("imu_temperature", "<i2", 72),
        ("mode_0", "u1", 74),
        ("motor", (_MOTOR_STATE, N_MOTORS), 72),
        ("wireless_remote", ("u1", 40), 2032),
        ("reserve", ("<u4", 4), 2072),
        ("crc", "<u4", 2088),
    ],
    2092,
)
"""`rt/lowstate` with its header, 2092 bytes. Quaternion w, x, y, z; SI units; temperatures in °C."""

_MOTOR_CMD = _packed(
    [
        ("mode", "u1", 0),  # not for motor 0
        ("q", "<f4", 4),
        ("dq", "<f4", 8),
        ("tau", "<f4", 12),
        ("kp", "<f4", 16),
        ("kd", "<f4", 20),
        ("reserve", "<u4", 24),
    ],
    28,
)

LOW_CMD = _packed(
    [
        ("header", "V4", 0),
        ("mode_pr", "u1", 4),
        ("mode_machine", "u1", 5),
        ("mode_0", "u1", 6),
        ("motor", (_MOTOR_CMD, N_MOTORS), 4),
        ("reserve", ("<u4", 4), 984),
        ("crc", "<u4", 1000),
    ],
    1004,
)
"""`rt/lowcmd` with its header, 1004 bytes."""

IMU_STATE = _packed(
    [
        ("header", "V4", 0),
        ("quaternion", ("<f4", 4), 4),
        ("gyroscope", ("<f4", 3), 20),
        ("accelerometer", ("<f4", 3), 32),
        ("rpy", ("<f4", 3), 44),
        ("temperature", "<i2", 56),
    ],
    60,
)
"""`rt/secondary_imu` with its header; 58 bytes and 2 of padding, which not every sender adds."""

GROUND_TRUTH = _packed(
    [
        ("header", "V4", 0),
        ("tick", "<u4", 4),
        ("position", ("<f4", 3), 8),
        ("quaternion", ("<f4", 4), 20),
        ("linear_velocity", ("<f4", 3), 36),
        ("angular_velocity", ("<f4", 3), 48),
        ("contact_force", ("<f4", (2, 3)), 60),
    ],
    84,
)
"""`rt/sim/ground_truth`, the simulator's own topic: pelvis pose and velocities in the world frame,
force of the ground on the left and the right foot in the world frame, N; `tick` of the LowState
that was made from the same instant."""

EXTERNAL_POSE = _packed(
    [
        ("header", "V4", 0),
        ("stamp_ns", "<i8", 4),
        ("position", ("<f8", 3), 12),
        ("quaternion", ("<f8", 4), 36),
        ("linear_velocity", ("<f4", 3), 68),
    ],
    80,
)
"""`rt/external_pose` with its header: the pelvis as somebody outside sees it. `stamp_ns` by the sender's own
clock; position in m; quaternion w, x, y, z, world from pelvis; velocity in the pelvis frame, m/s, or NaN."""

POSE_DATAGRAM = _packed(
    [
        ("magic", "S4", 0),
        ("crc", "<u4", 4),
        ("stamp_ns", "<i8", 8),
        ("position", ("<f8", 3), 16),
        ("quaternion", ("<f8", 4), 40),
        ("linear_velocity", ("<f4", 3), 72),
    ],
    84,
)
"""The same as a UDP datagram; `crc` is zlib's CRC-32 of everything behind it."""
