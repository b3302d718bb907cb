"""Where the pelvis was in the world: from an external pose where the run had one, else marked as missing."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.logging.preprocess.pipeline import Track

MAX_AGE_S = 0.1
"""An older pose is none any more; nor is one whose own clock stands still for longer than this."""

Floats = NDArray[np.float64]


class RootPose(NamedTuple):
    """Pose of the pelvis over n rows.

    Attributes:
        position_m: (n, 3) world; NaN where missing.
        quat_wxyz: (n, 4) world from pelvis, of the external pose; of the robot's own IMU where the whole
            stretch has no external pose.
        valid: (n,) whether the position is known.
        position_from: `external` or `missing`.
        rotation_from: `external` or `imu`.
    """

    position_m: Floats
    quat_wxyz: Floats
    valid: NDArray[np.bool_]
    position_from: str
    rotation_from: str

    @property
    def sources(self) -> dict[str, object]:
        """For the account of an export."""
        return {
            "root_position": self.position_from,
            "root_rotation": self.rotation_from,
            "rows_without_root": int((~self.valid).sum()),
        }

    def velocity(self, period_s: float) -> Floats:
        """(n, 3) m/s in the world, central differences; NaN beside missing rows."""
        return _rate(self.position_m, period_s)

    def spin(self, period_s: float) -> Floats:
        """(n, 3) rad/s in the world from the external rotation; NaN where it is the IMU's or missing.

        The rotation over two periods, by its quaternion: exact for a constant rate.
        """
        spin = np.full((len(self.valid), 3), np.nan)
        if self.rotation_from != "external" or len(spin) < 3:
            return spin
        w0, v0 = self.quat_wxyz[:-2, :1], self.quat_wxyz[:-2, 1:]
        w1, v1 = self.quat_wxyz[2:, :1], self.quat_wxyz[2:, 1:]
        scalar = w1 * w0 + (v1 * v0).sum(1, keepdims=True)
        vector = v1 * w0 - v0 * w1 - np.cross(v1, v0)
        vector = np.where(scalar < 0, -vector, vector)
        sine = np.linalg.norm(vector, axis=1, keepdims=True)
        angle = 2 * np.arctan2(sine, np.abs(scalar))
        spin[1:-1] = vector * angle / np.where(sine > 0, sine, 1.0) / (2 * period_s)
        spin[0], spin[-1] = spin[1], spin[-2]
        return spin


def root_pose(track: Track, period_s: float) -> RootPose:
    """Take the external pose of a track, or say that there is none."""
    pose = track["external_pose"].astype(np.float64)
    stands_s = _age_rows(track["external_pose_ns"]) * period_s
    valid = is_fresh(pose, track["external_age_s"]) & (stands_s <= MAX_AGE_S)
    if not valid.any():
        nowhere = np.full((len(pose), 3), np.nan)
        return RootPose(nowhere, _unit(track["quat_wxyz"]), valid, "missing", "imu")
    pose[~valid] = np.nan
    return RootPose(pose[:, :3], _unit(pose[:, 3:]), valid, "external", "external")


def is_fresh(pose: np.ndarray, age_s: np.ndarray) -> NDArray[np.bool_]:
    """(n,) whether external poses (n, 7) are known and young enough to stand for the row that they are in."""
    fresh: NDArray[np.bool_] = np.isfinite(pose).all(1) & (age_s <= MAX_AGE_S)
    return fresh


def _age_rows(stamp_ns: np.ndarray) -> NDArray[np.int64]:
    """Rows since the stamp last changed."""
    rows = np.arange(len(stamp_ns))
    changed = np.where(np.diff(stamp_ns, prepend=stamp_ns[:1]) != 0, rows, 0)
    age: NDArray[np.int64] = rows - np.maximum.accumulate(changed)
    return age


def _unit(quat: np.ndarray) -> Floats:
    wide = quat.astype(np.float64)
    unit: Floats = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return unit


def _rate(values: Floats, period_s: float) -> Floats:
    if len(values) < 2:
        return np.full(values.shape, np.nan)
    return np.asarray(np.gradient(values, period_s, axis=0))
