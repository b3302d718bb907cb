"""What the IMU checks find on a simulated robot: healthy, turned, in another order, in other units."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest

from onboard.runtime.preflight import tilt
from onboard.runtime.preflight.imu import (
    judge_gravity,
    judge_gyro_bias,
    judge_gyro_rate,
    judge_quaternion,
    judge_still,
    judge_torso,
    judge_upright,
)
from onboard.runtime.preflight.imu_track import Track, rotation_vector, turn_rates
from onboard.runtime.preflight.report import Finding, Verdict
from onboard.sim.robot import SimRobot
from tests.runtime.preflight.tracks import HANGING, LIMP, Hands, follow, heard, simulated

QUARTER, HALF = math.pi / 2, math.pi
PELVIS = "gap.imu_rotation_rad.pelvis"
XYZW = "gap.quat_order=xyzw"


@lru_cache(maxsize=32)
def at_rest(*overrides: str) -> Track:
    return heard(simulated(*overrides))


def findings(track: Track) -> dict[str, Finding]:
    of_pelvis = (
        judge_still,
        judge_gravity,
        judge_gyro_bias,
        judge_upright,
        judge_quaternion,
        judge_gyro_rate,
    )
    found = {judge.__name__.removeprefix("judge_"): judge(track.pelvis) for judge in of_pelvis}
    return found | {"torso": judge_torso(track)}


def failed(track: Track) -> set[str]:
    return {name for name, finding in findings(track).items() if finding.verdict is Verdict.FAIL}


@pytest.mark.parametrize("overrides", [(), (HANGING,), (HANGING, LIMP)])
def test_a_healthy_robot_passes_standing_hanging_and_limp(overrides: tuple[str, ...]) -> None:
    found = findings(at_rest(*overrides))
    assert {name: finding.verdict for name, finding in found.items()} == dict.fromkeys(found, Verdict.PASS)


@pytest.mark.parametrize(
    "turn", [(QUARTER, 0, 0), (0, QUARTER, 0), (HALF, 0, 0), (0, HALF, 0), (0, -QUARTER, 0)]
)
def test_an_imu_turned_about_a_level_axis_is_found_at_rest(turn: tuple[float, float, float]) -> None:
    assert failed(at_rest(f"{PELVIS}={list(turn)}")) == {"upright", "torso"}


@pytest.mark.parametrize("yaw", [QUARTER, HALF, -QUARTER])
def test_an_imu_turned_about_the_vertical_is_suspected_at_rest(yaw: float) -> None:
    track = at_rest(HANGING, f"{PELVIS}=[0, 0, {yaw}]")
    assert not failed(track)
    finding = judge_torso(track)
    assert finding.verdict is Verdict.WARN
    assert abs(finding.values["heading_rad"]) == pytest.approx(abs(yaw), abs=0.02)


@pytest.mark.parametrize("where", ["pelvis", "torso"])
@pytest.mark.parametrize("turn", [(0.087, 0, 0), (0, 0.087, 0), (0, 0, 0.087), (0.05, -0.05, 0.05)])
def test_a_mounting_error_of_five_degrees_is_none(where: str, turn: tuple[float, float, float]) -> None:
    found = findings(at_rest(HANGING, f"gap.imu_rotation_rad.{where}={list(turn)}"))
    assert {name: finding.verdict for name, finding in found.items()} == dict.fromkeys(found, Verdict.PASS)


@pytest.mark.parametrize("overrides", [(), (HANGING,)])
def test_a_quaternion_in_the_order_xyzw_is_found_at_rest(overrides: tuple[str, ...]) -> None:
    finding = judge_quaternion(at_rest(*overrides, XYZW).pelvis)
    assert finding.verdict is Verdict.FAIL
    assert finding.measured.startswith("order x, y, z, w")


def test_without_its_own_angles_a_tilted_robot_shows_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = simulated(HANGING, XYZW)
    robot.physics.gantry.tilt(0.0, 0.3)
    robot.advance(1000)
    pelvis = heard(robot).pelvis
    silent = pelvis._replace(rpy=np.zeros_like(pelvis.rpy))
    assert judge_quaternion(silent).verdict is Verdict.FAIL
    assert judge_quaternion(silent._replace(quat=np.roll(silent.quat, 1, axis=1))).verdict is Verdict.PASS


def test_other_units_are_found() -> None:
    pelvis = at_rest(HANGING).pelvis
    slow, fast = np.array([0.0, 0.05, 0.0]), np.array([0.0, 0.2, 0.0])
    assert judge_gravity(pelvis._replace(accel=pelvis.accel / 9.81)).verdict is Verdict.FAIL
    assert judge_gyro_bias(pelvis._replace(gyro=pelvis.gyro + slow)).verdict is Verdict.WARN
    assert judge_gyro_bias(pelvis._replace(gyro=pelvis.gyro + fast)).verdict is Verdict.FAIL
    assert judge_still(pelvis._replace(gyro=pelvis.gyro + fast)).verdict is Verdict.WARN
    assert judge_quaternion(pelvis._replace(quat=pelvis.quat * 1.01)).verdict is Verdict.WARN
    assert judge_quaternion(pelvis._replace(quat=pelvis.quat * 1.1)).verdict is Verdict.FAIL


def test_numbers_that_are_none_never_pass() -> None:
    track = at_rest(HANGING)
    for name in ("quat", "gyro", "accel"):
        spoiled = getattr(track.pelvis, name).copy()
        spoiled[7, 0] = np.nan
        pelvis = track.pelvis._replace(**{name: spoiled})
        assert failed(track._replace(pelvis=pelvis)), name
    assert track.torso is not None
    silent = track.torso._replace(quat=np.full_like(track.torso.quat, np.nan))
    assert judge_torso(track._replace(torso=silent)).verdict is Verdict.FAIL
    tilts = tilt.Tilts(track, {"forward": track._replace(torso=silent)}, track.pelvis)
    assert tilt.judge_tilt(tilts, "forward").verdict is Verdict.FAIL


def test_a_torso_that_is_not_heard_is_a_drawback() -> None:
    assert judge_torso(at_rest()._replace(torso=None)).verdict is Verdict.WARN


def test_a_turned_waist_is_taken_into_account() -> None:
    robot = simulated(HANGING)
    robot.physics.data.qpos[7 + 13 : 7 + 15] = 0.4, -0.3
    robot.physics.sensors.reset()
    track = heard(robot, 0.02)
    assert abs(float(track.waist[-1, 1])) > 0.2
    assert judge_torso(track).values["apart_rad"] < 0.02
    assert judge_torso(track._replace(waist=np.zeros_like(track.waist))).verdict is Verdict.FAIL


def swung(*overrides: str) -> Track:
    robot = simulated(HANGING, *overrides)
    robot.physics.gantry.tilt(-0.3, 0.3)
    return heard(robot, 0.5)


def test_the_gyro_is_held_against_the_turning_quaternion() -> None:
    pelvis = swung().pelvis
    assert judge_gyro_rate(pelvis).verdict is Verdict.PASS
    by_quat, by_gyro = turn_rates(pelvis)
    np.testing.assert_allclose(by_quat, by_gyro, atol=0.02)
    for wrong in (-pelvis.gyro, pelvis.gyro[:, [1, 0, 2]], pelvis.gyro * 57.3):
        assert judge_gyro_rate(pelvis._replace(gyro=wrong)).verdict is Verdict.FAIL


def test_rotation_vectors() -> None:
    turned = [math.cos(0.2), 0.0, math.sin(0.2), 0.0]
    np.testing.assert_allclose(rotation_vector([1, 0, 0, 0], turned), [0, 0.4, 0], atol=1e-12)
    np.testing.assert_allclose(rotation_vector([1, 0, 0, 0], [-v for v in turned]), [0, 0.4, 0], atol=1e-12)
    np.testing.assert_allclose(rotation_vector(turned, turned), 0, atol=1e-12)


def tilted(
    *overrides: str, obey: Callable[[str], str | None] = follow, robot: SimRobot | None = None
) -> dict[str, Finding]:
    """Findings of a guided tilt; time stands still, so nobody runs out of patience."""
    hands = Hands(robot or simulated(HANGING, *overrides), obey)
    checks = tilt.TiltChecks(None, hands.say, patience_s=4.0)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tilt, "ImuEar", lambda dds: hands)
        patch.setattr("time.monotonic", lambda: hands.robot.physics.time_s)
        return {check.name: check.look() for check in checks.checks()}


def test_a_healthy_robot_passes_the_tilt() -> None:
    found = tilted()
    assert {name: finding.verdict for name, finding in found.items()} == dict.fromkeys(found, Verdict.PASS)
    assert set(found) == {"tilt_forward", "tilt_left", "tilt_gyro"}
    assert "pelvis accelerometer forward" in found["tilt_forward"].measured


def test_a_limp_robot_whose_waist_hangs_turned_passes_the_tilt() -> None:
    robot = simulated(HANGING, LIMP)
    robot.physics.data.qpos[7 + 12] = 1.4
    found = tilted(robot=robot)
    assert {name: finding.verdict for name, finding in found.items()} == dict.fromkeys(found, Verdict.PASS), (
        found
    )


@pytest.mark.parametrize(
    ("turn", "word"),
    [
        ((0, 0, QUARTER), "right"),
        ((0, 0, HALF), "backward"),
        ((0, HALF, 0), "backward"),
    ],
)
def test_a_turned_imu_is_found_by_the_tilt(turn: tuple[float, float, float], word: str) -> None:
    found = tilted(f"{PELVIS}={list(turn)}")
    assert found["tilt_forward"].verdict is Verdict.FAIL
    assert f"pelvis accelerometer {word}" in found["tilt_forward"].measured
    assert "torso accelerometer forward" in found["tilt_forward"].measured


def test_a_quaternion_in_the_order_xyzw_is_found_by_the_tilt() -> None:
    found = tilted(XYZW)
    assert found["tilt_forward"].verdict is Verdict.FAIL
    assert "pelvis accelerometer forward" in found["tilt_forward"].measured
    assert "pelvis quaternion forward" not in found["tilt_forward"].measured


def test_a_mounting_error_of_five_degrees_passes_the_tilt() -> None:
    found = tilted(f"{PELVIS}=[0.05, 0.05, 0.087]")
    assert Verdict.FAIL not in {finding.verdict for finding in found.values()}


def test_a_tilt_that_nobody_gives_has_failed() -> None:
    found = tilted(obey=lambda prompt: None)
    assert found["tilt_forward"].verdict is Verdict.FAIL
    assert found["tilt_forward"].measured == "no tilt forward of 0.12 rad was held"
    assert found["tilt_left"].verdict is Verdict.FAIL
