"""The guided tilt: people tilt the robot forward, then to its left, and every sense must say the same.

At rest a frame that is turned about the vertical looks like the right one, and so may a quaternion in a
wrong order. In a tilt gravity moves forward or left in the frame of each sense, or that sense is wrong.
A tilt is recognised by itself: far enough, and held.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onboard.policies.rotations import Vector, conjugate, rotate_inverse, torso_from_pelvis
from onboard.runtime.dds import DdsDomain
from onboard.runtime.preflight.imu import judge_gyro_rate
from onboard.runtime.preflight.imu_track import Imu, ImuEar, Track, angle_between, joined
from onboard.runtime.preflight.report import Check, Finding, judged

TILTED_RAD = 0.12
"""From here on a tilt counts: beyond sway, short of what an operator shies from."""
UPRIGHT_RAD = 0.06
SLOW_RAD_S = 0.15
LISTEN_S = 0.25
HELD = 3
"""Stretches in a row for which a tilt is held."""
PATIENCE_S = 60.0
AZIMUTH = {"forward": 0.0, "left": math.pi / 2}
"""Where gravity goes in the body's frame, from x towards y."""
OFF_RAD = (math.radians(40), math.radians(55))
"""Warn, fail: people do not tilt straight, and limp legs swing; frames are wrong by 90 degrees or more."""
WORDS = ("forward", "left", "backward", "right")


class Tilts(NamedTuple):
    """What was heard.

    Attributes:
        base: upright.
        held: by the direction that was asked for; without those that nobody gave in time.
        whole: the pelvis' IMU from the first to the last moment.
    """

    base: Track
    held: dict[str, Track]
    whole: Imu


class TiltChecks:
    """The checks that need a person at the robot.

    Args:
        dds: where; closed by its owner.
        say: shows a line to that person.
        patience_s: how long to wait for each tilt.
    """

    def __init__(self, dds: DdsDomain, say: Callable[[str], object], patience_s: float = PATIENCE_S) -> None:
        self._dds = dds
        self._say = say
        self._patience_s = patience_s
        self._tilts: Tilts | None = None

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        looks: list[tuple[str, Callable[[], Finding]]] = [
            (f"tilt_{way}", lambda way=way: judge_tilt(self._made(), way))  # type: ignore[misc]
            for way in AZIMUTH
        ]
        looks.append(("tilt_gyro", lambda: judge_gyro_rate(self._made().whole)))
        return [Check("imu", name, look) for name, look in looks]

    def _made(self) -> Tilts:
        if self._tilts is None:
            ear = ImuEar(self._dds)
            try:
                self._tilts = self._guide(ear)
            finally:
                ear.close()
        return self._tilts

    def _guide(self, ear: ImuEar) -> Tilts:
        base = ear.hear(4 * LISTEN_S)
        heard = [base]
        held: dict[str, Track] = {}
        for way in AZIMUTH:
            self._say(f"tilt the robot {way.upper()} by 10 to 20 degrees and hold it there")
            found = self._wait(ear, heard, lambda track: _tilt_rad(base, track) > TILTED_RAD)
            if found is None:
                break
            held[way] = found
            self._say("seen; back upright")
            if self._wait(ear, heard, lambda track: _tilt_rad(base, track) < UPRIGHT_RAD) is None:
                break
        return Tilts(base, held, joined(heard))

    def _wait(self, ear: ImuEar, heard: list[Track], reached: Callable[[Track], bool]) -> Track | None:
        """The stretch in which an attitude was held; None where that did not happen in time."""
        until, count = time.monotonic() + self._patience_s, 0
        while time.monotonic() < until:
            track = ear.hear(LISTEN_S)
            heard.append(track)
            slow = float(np.abs(track.pelvis.gyro).mean()) < SLOW_RAD_S
            count = count + 1 if slow and reached(track) else 0
            if count == HELD:
                return track
        return None


def judge_tilt(tilts: Tilts, way: str) -> Finding:
    """Whether every sense saw a tilt go where it went."""
    if way not in tilts.held:
        return judged(
            f"no tilt {way} of {TILTED_RAD:g} rad was held",
            warn=False,
            fail=True,
            advice="tilt the robot by hand on the gantry when asked; leave --tilt out where nobody can",
        )
    seen = {
        name: _move(before, after) for name, (before, after) in _senses(tilts.base, tilts.held[way]).items()
    }
    off = {name: _off_rad(move, way) for name, move in seen.items()}
    angle = _tilt_rad(tilts.base, tilts.held[way])
    blind = [name for name, move in seen.items() if not math.hypot(*move) > TILTED_RAD / 2]  # NaN too
    worst = max(abs(value) for value in off.values())
    told = ", ".join(
        f"{name} not at all" if name in blind else f"{name} {_word(move)} ({math.degrees(off[name]):+.0f}°)"
        for name, move in seen.items()
    )
    return judged(
        f"tilted {angle:.2f} rad {way}; seen by {told}",
        warn=worst > OFF_RAD[0],
        fail=bool(blind) or worst > OFF_RAD[1],
        advice=f"if the robot was tilted {way}: that sense's frame is turned, mirrored or in another order",
        values={"tilt_rad": angle, "worst_off_rad": worst},
    )


def _senses(base: Track, held: Track) -> dict[str, tuple[Vector, Vector]]:
    """Unit gravity in the pelvis' frame before and in the tilt, by sense."""
    before, after = _gravities(base), _gravities(held)
    return {name: (before[name], after[name]) for name in before if name in after}


def _gravities(track: Track) -> dict[str, Vector]:
    """By sense; the torso's seen through the waist, which may hang turned on a limp robot."""
    seen = {
        "pelvis accelerometer": track.pelvis.gravity_by_accel,
        "pelvis quaternion": track.pelvis.gravity_by_quat,
    }
    if track.torso is not None:
        yaw, roll, pitch = (float(value) for value in track.waist.mean(axis=0))
        pelvis_from_torso = conjugate(torso_from_pelvis((1.0, 0.0, 0.0, 0.0), yaw, roll, pitch))
        seen["torso accelerometer"] = rotate_inverse(pelvis_from_torso, track.torso.gravity_by_accel)
        seen["torso quaternion"] = rotate_inverse(pelvis_from_torso, track.torso.gravity_by_quat)
    return seen


def _tilt_rad(base: Track, track: Track) -> float:
    """As the sense sees it that sees most; one that is turned may see none of it."""
    return max(angle_between(before, after) for before, after in _senses(base, track).values())


def _move(before: Vector, after: Vector) -> tuple[float, float]:
    return after[0] - before[0], after[1] - before[1]


def _off_rad(move: tuple[float, float], way: str) -> float:
    return math.remainder(math.atan2(move[1], move[0]) - AZIMUTH[way], 2 * math.pi)


def _word(move: tuple[float, float]) -> str:
    return WORDS[round(math.atan2(move[1], move[0]) / (math.pi / 2)) % 4]
