from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.errors import ConfigError
from onboard.configs.sim import load_sim
from onboard.runtime.link import State
from onboard.sim.gap import Delay, play
from onboard.sim.physics import Physics
from onboard.sim.robot import SimRobot

Body = Callable[..., Physics]
ELBOW, KNEE = 18, 3


@given(st.lists(st.integers(0, 7), min_size=1, max_size=5), st.integers(1, 30))
def test_delay_shows_each_column_exactly_so_many_steps_later(steps: list[int], pushes: int) -> None:
    delay = Delay(np.array(steps), 2)
    delay.fill(np.full((2, len(steps)), -1.0))
    for now in range(pushes):
        value = np.array([[now] * len(steps), [1000 + now] * len(steps)], dtype=np.float64)
        seen = delay.push(value)
        for column, late in enumerate(steps):
            then = now - late
            assert seen[0, column] == (then if then >= 0 else -1)
            assert seen[1, column] == (1000 + then if then >= 0 else -1)


def test_play_swallows_what_lies_inside_and_shortens_what_lies_outside() -> None:
    error = np.array([-0.3, -0.04, 0.0, 0.05, 0.3])
    np.testing.assert_allclose(play(error, np.full(5, 0.1)), [-0.25, 0, 0, 0, 0.25], atol=1e-12)


def first_torque(body: Physics, joint: int, steps: int = 40) -> int:
    """Step at which a feed-forward torque shows up in the joint; -1 for never."""
    tau = np.zeros(29)
    tau[joint] = 1.0
    body.motors.set(0.0, 0.0, 0.0, tau=tau)
    for step in range(steps):
        body.step()
        if body.data.actuator_force[joint] > 0.5:
            return step
    return -1


@pytest.mark.parametrize("latency_steps", [0, 1, 5, 10])
def test_command_latency_is_exact_and_joint_by_joint(body: Body, latency_steps: int) -> None:
    late = f"gap.command_latency_s.left_elbow_joint={latency_steps * 0.002}"
    assert first_torque(body("gantry.attached=true", late), ELBOW) == latency_steps
    assert first_torque(body("gantry.attached=true", late), KNEE) == 0


def test_state_latency_is_exact_and_joint_by_joint(body: Body) -> None:
    robot = body("gantry.attached=true", "gap.state_latency_s.left_elbow_joint=0.01")
    robot.motors.set(robot.pose + 0.3, 50.0, 1.0)
    true, reported = [], []
    for _ in range(60):
        robot.step()
        true.append([robot.data.qpos[7 + ELBOW], robot.data.qpos[7 + KNEE]])
        reported.append([robot.sensors.joints[0, ELBOW], robot.sensors.joints[0, KNEE]])
    assert [row[0] for row in reported[5:]] == [row[0] for row in true[:-5]]
    assert [row[1] for row in reported] == [row[1] for row in true]


def test_imu_latency_is_exact(body: Body) -> None:
    robot = body("gap.imu_latency_s=0.02")
    true, reported = [], []
    for _ in range(50):
        robot.step()
        true.append(robot.data.qpos[3:7].copy())
        reported.append(robot.sensors.imu[0, :4].copy())
    np.testing.assert_allclose(reported[10:], true[:-10], atol=1e-12)


def test_gain_scales_the_torque_that_is_asked_for(body: Body) -> None:
    robot = body("gantry.attached=true", "gap.gain.left_elbow_joint=0.8")
    target = robot.pose.copy()
    target[ELBOW] += 0.1
    robot.motors.set(target, 50.0, 0.0)
    robot.step()
    assert robot.data.actuator_force[ELBOW] == pytest.approx(0.8 * 5.0)


def test_torque_limit_is_a_factor_of_the_joints_own(body: Body) -> None:
    robot = body("gantry.attached=true", "gap.torque_limit={'*_elbow_joint': 0.4}")
    target = robot.pose + 2.0
    robot.motors.set(target, 500.0, 0.0)
    robot.step()
    assert robot.data.actuator_force[ELBOW] == pytest.approx(0.4 * 25.0)
    assert robot.data.actuator_force[KNEE] == pytest.approx(139.0)


def test_dry_friction_holds_a_joint_against_less_torque(body: Body) -> None:
    moved = []
    for friction in (0.0, 3.0):
        robot = body("gantry.attached=true", f"gap.friction_nm.left_wrist_roll_joint={friction}")
        tau = np.zeros(29)
        tau[19] = 2.0
        robot.motors.set(robot.pose, np.where(tau, 0.0, 100.0), np.where(tau, 0.0, 5.0), tau=tau)
        robot.step(50)
        moved.append(abs(robot.data.qpos[7 + 19] - robot.pose[19]))
    assert moved[0] > 0.5
    assert moved[1] < 0.1  # MuJoCo's friction is soft: it creeps


def test_backlash_lets_a_joint_sag_by_half_its_width(body: Body) -> None:
    """Gravity pulls the shoulder's joint through the play; the motor holds it at the play's end."""
    at = []
    for width in (0.0, 0.1):
        robot = body("gantry.attached=true", f"gap.backlash_rad.left_shoulder_pitch_joint={width}")
        target = robot.pose.copy()
        target[15] = -1.5  # arm forward, level
        robot.reset(target)
        robot.motors.set(target, 300.0, 5.0)
        robot.step(1500)
        at.append(robot.data.qpos[7 + 15])
    assert at[1] - at[0] == pytest.approx(0.05, abs=0.01)


def test_added_mass_weighs(body: Body) -> None:
    plain, heavy = body(), body("gap.mass_kg.waist_pitch_joint=3.5")
    difference = heavy.model.mj.body_mass - plain.model.mj.body_mass
    assert difference[heavy.model.torso] == pytest.approx(3.5)
    assert difference.sum() == pytest.approx(3.5)
    assert heavy.model.mj.body_subtreemass[heavy.model.pelvis] == pytest.approx(33.34 + 3.5, abs=0.01)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("gap.gain.left_kneee=0.8", "'left_kneee' matches no joint"),
        ("gap.command_latency_s={'*': -0.1}", "gap.command_latency_s"),
        ("gap.mass_kg.left_wrist_roll_joint=-1.0", "at least 0.01 kg"),
        ("gap.slack=1", "unknown key 'slack'"),
        ("gap.quat_order=zyxw", "gap.quat_order: Invalid enum value 'zyxw'"),
        ("gap.imu_rotation_rad.pelvis=[0, 0]", "gap.imu_rotation_rad.pelvis"),
        ("gap.wiring.left_kneee=left_knee_joint", "gap.wiring: 'left_kneee' matches no joint"),
        ("gap.wiring.left_knee_joint=right_kneee", "means right_kneee, no joint"),
        ("gap.wiring.left_knee_joint=right_knee_joint", "two joints' commands reach right_knee_joint"),
    ],
)
def test_wrong_knobs_are_refused(body: Body, override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("*", r"\*")):
        body(override)


def test_a_turned_imu_reports_in_its_own_frame_and_the_other_does_not(body: Body) -> None:
    turned = body("gantry.attached=true", "gap.imu_rotation_rad.pelvis=[0, 0, 1.5707963]")
    plain = body("gantry.attached=true")
    for robot in (turned, plain):
        robot.gantry.tilt(0.0, 0.3)
        robot.step(200)
    for part in (slice(4, 7), slice(7, 10)):
        x, y, z = plain.sensors.imu[0, part]
        np.testing.assert_allclose(turned.sensors.imu[0, part], [y, -x, z], atol=1e-6)
    np.testing.assert_allclose(turned.sensors.imu[1], plain.sensors.imu[1], atol=1e-9)
    half = np.sqrt(0.5)
    w, x, y, z = plain.sensors.imu[0, :4]
    expected = half * np.array([w - z, x + y, y - x, z + w])
    np.testing.assert_allclose(turned.sensors.imu[0, :4], expected, atol=1e-6)


def test_quaternions_go_out_in_the_order_of_the_knob() -> None:
    plain, mixed = (SimRobot(load_sim("g1", [f"gap.quat_order={order}"])) for order in ("wxyz", "xyzw"))
    state = State()
    plain.sense(state)
    expected = np.roll(state.quat_wxyz, -1)
    mixed.sense(state)
    np.testing.assert_array_equal(state.quat_wxyz, expected)
    np.testing.assert_array_equal(mixed.torso_imu[:4], np.roll(plain.torso_imu[:4], -1))
    np.testing.assert_array_equal(mixed.torso_imu[4:], plain.torso_imu[4:])


def obeys(body: Physics, commanded: int) -> dict[int, float]:
    """Joints that a feed-forward torque on one joint's command reaches, and which torque they get."""
    tau = np.zeros(29)
    tau[commanded] = 1.0
    body.motors.set(0.0, 0.0, 0.0, tau=tau)
    body.step()
    force = body.data.actuator_force
    return {int(slot): float(force[slot]) for slot in np.flatnonzero(force)}


def test_wiring_leads_commands_to_other_motors(body: Body) -> None:
    legs = '"left_hip_*": "right_hip_*", "right_hip_*": "left_hip_*"'
    robot = body("gantry.attached=true", f"gap.wiring={{{legs}, left_knee_joint: -left_knee_joint}}")
    assert [obeys(robot, slot) for slot in (0, 1, 2)] == [{6: 1.0}, {7: 1.0}, {8: 1.0}]
    assert [obeys(robot, slot) for slot in (6, 7, 8)] == [{0: 1.0}, {1: 1.0}, {2: 1.0}]
    assert obeys(robot, KNEE) == {KNEE: -1.0}
    assert obeys(robot, ELBOW) == {ELBOW: 1.0}


def test_wiring_in_a_circle_and_with_the_gains_of_the_command(body: Body) -> None:
    ring = ["left_knee_joint", "left_elbow_joint", "waist_yaw_joint"]
    wires = ", ".join(f"{joint}: {ring[k - 2]}" for k, joint in enumerate(ring))
    robot = body("gantry.attached=true", f"gap.wiring={{{wires}}}")
    assert [obeys(robot, slot) for slot in (KNEE, ELBOW, 12)] == [{ELBOW: 1.0}, {12: 1.0}, {KNEE: 1.0}]
    kp = np.zeros(29)
    kp[KNEE] = 10.0
    target = robot.pose.copy()
    target[KNEE] = robot.pose[ELBOW] + 0.1
    robot.reset()
    robot.motors.set(target, kp, 0.0)
    robot.step()
    assert robot.data.actuator_force[ELBOW] == pytest.approx(1.0, abs=0.05)
    assert np.count_nonzero(robot.data.actuator_force) == 1
