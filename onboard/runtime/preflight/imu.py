"""Do both IMUs say what a robot feels that stands or hangs upright at rest?

Nothing here moves the robot. A turned IMU agrees with itself: its quaternion and its accelerometer turn
together. So it is also held against upright, against the other IMU, and (`tilt`) against a real tilt. A
heading, however, is each IMU's own: that a pelvis IMU is turned about the vertical shows in a tilt alone.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from onboard.configs.errors import LinkError
from onboard.policies.rotations import (
    Quat,
    about_z,
    gravity_in_body,
    multiply,
    torso_from_pelvis,
    yaw_of,
)
from onboard.runtime.dds import DdsDomain
from onboard.runtime.preflight.imu_track import (
    Floats,
    Imu,
    ImuEar,
    Track,
    angle_between,
    rotation_vector,
    turn_rates,
)
from onboard.runtime.preflight.report import Check, Finding, judged

LISTEN_S = 2.0
G = 9.81
"""m/s²; on Earth 9.78 to 9.83."""
STILL_RAD_S = 0.15
"""A robot that its own controller balances sways by up to 0.1 rad/s."""
TILT_RAD = (0.2, 0.35)
"""Warn, fail: beyond 0.35 rad no robot counts as standing (safety table)."""
APART_RAD = (0.13, 0.26)
"""Warn, fail: two senses of up; a mounting error of 5° (0.087 rad) is none of these."""
NORM = (1e-3, 0.05)
"""Warn, fail: length of a quaternion less 1; the gate refuses the second."""
HEADING_RAD = 0.5
SAME_RAD, OTHER_RAD = 0.1, 0.3
"""Two orientations are the same one, or are not."""
AXES = ("+x", "-x", "+y", "-y", "+z", "-z")


class ImuChecks:
    """The checks of both IMUs at rest; they are heard once and looked at from several sides.

    Args:
        dds: where; closed by its owner.
    """

    def __init__(self, dds: DdsDomain) -> None:
        self._dds = dds
        self._track: Track | None = None
        self._silence: LinkError | None = None

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        looks: Sequence[tuple[str, Callable[[Track], Finding]]] = (
            ("still", lambda track: judge_still(track.pelvis)),
            ("gravity", lambda track: judge_gravity(track.pelvis)),
            ("gyro_bias", lambda track: judge_gyro_bias(track.pelvis)),
            ("upright", lambda track: judge_upright(track.pelvis)),
            ("quaternion", lambda track: judge_quaternion(track.pelvis)),
            ("gyro_rate", lambda track: judge_gyro_rate(track.pelvis)),
            ("torso", judge_torso),
        )
        return [Check("imu", name, lambda look=look: look(self.track())) for name, look in looks]  # type: ignore[misc]

    def track(self) -> Track:
        """What was heard, 2 s of it.

        Raises:
            LinkError: nothing was.
        """
        if self._silence is not None:
            raise self._silence
        if self._track is None:
            ear = ImuEar(self._dds)
            try:
                self._track = ear.hear(LISTEN_S)
            except LinkError as error:
                self._silence = error
                raise
            finally:
                ear.close()
        return self._track


def judge_still(imu: Imu) -> Finding:
    """The others need a robot at rest."""
    fastest = float(np.percentile(np.abs(imu.gyro), 99))
    return judged(
        f"turns at up to {fastest:.3f} rad/s",
        warn=fastest > STILL_RAD_S,
        fail=False,
        advice="let the robot come to rest and check again; what follows was measured while it moved",
        values={"gyro_p99_rad_s": fastest},
    )


def judge_gravity(imu: Imu) -> Finding:
    """Length of what the accelerometer feels."""
    length = float(np.linalg.norm(imu.accel.mean(axis=0)))
    return judged(
        f"{length:.2f} m/s² at rest",
        warn=abs(length - G) > 0.3,
        fail=abs(length - G) > 1.0,
        advice="the accelerometer speaks in other units, or is out of calibration",
        values={"gravity_m_s2": length},
    )


def judge_gyro_bias(imu: Imu) -> Finding:
    """What the gyro says of a robot that does not turn; less what it swayed in the meantime."""
    swayed = rotation_vector(imu.quat[0], imu.quat[-1]) / max(float(imu.time_s[-1] - imu.time_s[0]), 1e-3)
    swayed[2] = 0.0  # a heading drifts with the bias itself
    mean = imu.gyro.mean(axis=0) - swayed
    bias = float(np.linalg.norm(mean))
    return judged(
        f"{bias:.4f} rad/s at rest ({', '.join(f'{value:+.4f}' for value in mean)})",
        warn=bias > 0.03,
        fail=bias > 0.1,
        advice="switch the robot on while it does not move, so that it calibrates its gyro",
        values={"gyro_bias_rad_s": bias},
    )


def judge_upright(imu: Imu) -> Finding:
    """Where up is, as the accelerometer feels it; turned IMUs and lying robots look alike."""
    up = [-value for value in imu.gravity_by_accel]
    tilt = angle_between(up, (0.0, 0.0, 1.0))
    nearest = AXES[int(np.argmax([sign * value for value in up for sign in (1, -1)]))]
    return judged(
        f"up is {tilt:.2f} rad from the pelvis' z axis, nearest to {nearest}",
        warn=tilt > TILT_RAD[0],
        fail=tilt > TILT_RAD[1],
        advice="set or hang the robot upright; if it is, the IMU is turned (compare with another robot)",
        values={"tilt_rad": tilt},
    )


def judge_quaternion(imu: Imu) -> Finding:
    """Length and order w, x, y, z: against accelerometer, and reported roll, pitch and yaw."""
    norm = float(np.abs(np.linalg.norm(imu.quat, axis=1) - 1.0).max())
    quat, felt = imu.mean_quat, imu.gravity_by_accel
    apart = angle_between(gravity_in_body(quat), felt)
    reordered = (quat[3], *quat[:3])
    told = _told_orientation(imu)
    contradicts = told is not None and _angle(quat, told) > OTHER_RAD
    fits_xyzw = told is not None and _angle(reordered, told) < SAME_RAD
    by_feel = apart > APART_RAD[1] and angle_between(gravity_in_body(reordered), felt) < APART_RAD[0]
    xyzw = by_feel or (contradicts and fits_xyzw)
    order = "x, y, z, w" if xyzw else "w, x, y, z"
    note = "" if not contradicts or xyzw else "; its own roll, pitch and yaw say something else"
    return judged(
        f"order {order}, its up is {apart:.3f} rad from the accelerometer's, length off by {norm:.1g}{note}",
        warn=apart > APART_RAD[0] or norm > NORM[0] or contradicts,
        fail=xyzw or apart > APART_RAD[1] or norm > NORM[1],
        advice="this must be w, x, y, z of the pelvis in the world; look at what publishes LowState",
        values={"apart_rad": apart, "norm_error": norm},
    )


def judge_gyro_rate(imu: Imu) -> Finding:
    """The quaternion turns as the gyro says: same axes, same signs, same units."""
    by_quat, by_gyro = turn_rates(imu)
    moved, differ = _rms(by_quat), _rms(by_quat - by_gyro)
    share = differ / max(moved, 0.05)
    return judged(
        f"quaternion and gyro differ by {differ:.3f} rad/s at {moved:.3f} rad/s",
        warn=share > 0.3,
        fail=share > 0.7,
        advice="axes, signs or unit of the gyro are wrong (rad/s in the frame of the quaternion's body)",
        values={"differ_rad_s": differ, "moved_rad_s": moved},
    )


def judge_torso(track: Track) -> Finding:
    """Both IMUs agree on up, through the three waist joints between them."""
    if track.torso is None:
        return judged(
            "the torso's IMU is not heard",
            warn=True,
            fail=False,
            advice="policies that read it can't run; is rt/secondary_imu published?",
        )
    yaw, roll, pitch = (float(value) for value in track.waist.mean(axis=0))
    expected = torso_from_pelvis(track.pelvis.mean_quat, yaw, roll, pitch)
    found = track.torso.mean_quat
    apart = angle_between(gravity_in_body(expected), gravity_in_body(found))
    heading = _wrapped(yaw_of(found) - yaw_of(expected))
    return judged(
        f"up differs by {apart:.3f} rad through the waist, heading by {heading:+.2f} rad",
        warn=apart > APART_RAD[0] or abs(heading) > HEADING_RAD,
        fail=apart > APART_RAD[1],
        advice="one IMU or a waist encoder is turned; each IMU may have a heading of its own, --tilt tells",
        values={"apart_rad": apart, "heading_rad": heading},
    )


def _told_orientation(imu: Imu) -> Quat | None:
    """By the roll, pitch and yaw that the IMU reports; None where it reports none."""
    if not imu.rpy.any():
        return None
    roll, pitch, yaw = (float(value) for value in imu.rpy[-1])
    pitched = multiply(about_z(yaw), (math.cos(pitch / 2), 0.0, math.sin(pitch / 2), 0.0))
    return multiply(pitched, (math.cos(roll / 2), math.sin(roll / 2), 0.0, 0.0))


def _angle(a: Sequence[float], b: Sequence[float]) -> float:
    return float(np.linalg.norm(rotation_vector(a, b)))


def _rms(rates: Floats) -> float:
    return float(np.sqrt((rates**2).sum(axis=1).mean())) if len(rates) else 0.0


def _wrapped(angle_rad: float) -> float:
    return math.remainder(angle_rad, 2 * math.pi)
