from collections.abc import Callable

import numpy as np
import pytest

from onboard.configs.errors import ConfigError
from onboard.configs.sim import per_joint
from onboard.sim.physics import Physics

Body = Callable[..., Physics]
G = 9.81


def hold(body: Physics) -> None:
    builtin, robot = body.config.builtin, body.model.robot
    body.motors.set(body.pose, per_joint(builtin.kp, robot, "kp"), per_joint(builtin.kd, robot, "kd"))


def test_starts_with_the_lowest_point_of_the_feet_on_the_floor(body: Body) -> None:
    for pose in ("zero", "stand", "crouch"):
        start = body(f"start_pose={pose}")
        soles = start.model.sole_geoms
        lowest = (start.data.geom_xpos[soles, 2] - start.model.mj.geom_size[soles, 0]).min()
        assert lowest == pytest.approx(0.0, abs=1e-9)


def test_stands_on_its_own_controller_and_weighs_what_it_weighs(body: Body) -> None:
    robot = body()
    hold(robot)
    robot.step(2500)
    truth = robot.truth()
    assert truth.position_m[2] > 0.75
    assert robot.tilt_rad() < 0.1
    weight = robot.model.mj.body_mass.sum() * G
    assert truth.foot_force_n[:, 2].sum() == pytest.approx(weight, rel=0.02)
    np.testing.assert_allclose(robot.sensors.imu[:, 7:] @ [0, 0, 1], G, rtol=0.02)


def test_falls_when_limp(body: Body) -> None:
    robot = body()
    robot.step(1000)
    assert robot.truth().position_m[2] < 0.4


def test_the_same_calls_give_the_same_numbers(body: Body) -> None:
    ends = []
    for _ in range(2):
        robot = body("gap.backlash_rad={'*': 0.01}", "gap.command_latency_s={'*': 0.006}")
        hold(robot)
        robot.push((40.0, 10.0, 0.0), 0.1)
        robot.step(400)
        ends.append(np.concatenate([robot.data.qpos, robot.data.qvel, robot.sensors.imu.ravel()]))
    np.testing.assert_array_equal(ends[0], ends[1])


def test_a_reset_gives_the_same_numbers_as_a_new_robot(body: Body) -> None:
    used, new = body(), body()
    hold(used)
    used.push((40.0, 10.0, 0.0), 10.0)
    used.step(300)
    used.reset()
    for robot in (used, new):
        hold(robot)
        robot.step(200)
    np.testing.assert_array_equal(used.data.qpos, new.data.qpos)
    assert used.steps == 500


def test_gantry_holds_a_limp_robot_where_it_is_told(body: Body) -> None:
    robot = body("gantry.attached=true", "gantry.height_m=1.1")
    robot.step(1000)
    assert robot.truth().position_m == pytest.approx([0, 0, 1.1], abs=0.01)
    robot.gantry.height_m = 0.9
    robot.step(500)
    assert robot.truth().position_m[2] == pytest.approx(1.0, abs=0.02)  # lowered at 0.1 m/s
    robot.step(1000)
    assert robot.truth().position_m[2] == pytest.approx(0.9, abs=0.01)
    assert np.abs(robot.truth().foot_force_n).max() == 0


def test_gantry_lets_go_and_picks_up_again(body: Body) -> None:
    robot = body("gantry.attached=true")
    robot.gantry.release()
    assert not robot.gantry.attached
    robot.step(1500)
    assert robot.truth().position_m[2] < 0.4
    robot.gantry.attach(0.95)
    robot.step(5000)
    assert robot.truth().position_m[2] == pytest.approx(0.95, abs=0.02)
    assert robot.tilt_rad() < 0.15


def test_a_push_changes_the_momentum_by_force_times_time(body: Body) -> None:
    """In free fall nothing else acts along x."""
    robot = body("gantry.attached=true", "gantry.height_m=2.5")
    robot.gantry.release()
    robot.step()  # its last step at the gantry
    robot.push((30.0, 0.0, 0.0), 0.1, "pelvis")
    robot.step(150)
    before = robot.data.subtree_com[robot.model.pelvis].copy()
    robot.step(50)
    speed = (robot.data.subtree_com[robot.model.pelvis] - before) / (50 * 0.002)
    assert speed[0] * robot.model.mj.body_mass.sum() == pytest.approx(30.0 * 0.1, rel=0.02)


def test_a_push_moves_the_standing_robot_and_ends(body: Body) -> None:
    robot = body()
    hold(robot)
    robot.step(500)
    x = robot.truth().position_m[0]
    robot.push((60.0, 0.0, 0.0), 0.1)
    robot.step(100)
    assert robot.truth().position_m[0] > x + 0.01
    assert not robot.data.xfrc_applied.any()


def test_pushing_an_unknown_link_names_the_links(body: Body) -> None:
    with pytest.raises(ConfigError, match=r"no link 'tail'.*torso_link"):
        body().push((1.0, 0.0, 0.0), 0.1, "tail")


def test_motors_track_their_targets(body: Body) -> None:
    robot = body("gantry.attached=true")
    target = robot.pose.copy()
    target[[15, 18, 19, 22, 25, 26]] += 0.3  # shoulders' pitch, elbows, wrists' roll: clear of the body
    robot.motors.set(target, 200.0, 10.0)
    robot.step(1500)
    assert np.abs(robot.sensors.joints[0] - target)[15:].max() < 0.03  # gravity against 200 N·m/rad


def test_feed_forward_and_target_velocity_make_torque(body: Body) -> None:
    robot = body("gantry.attached=true")
    tau = np.zeros(29)
    tau[18] = 2.0
    robot.motors.set(0.0, 0.0, 0.0, tau=tau)
    robot.step()
    assert robot.sensors.joints[2, 18] == pytest.approx(2.0)
    robot.reset()
    dq = np.zeros(29)
    dq[18] = 1.0
    robot.motors.set(0.0, 0.0, 1.5, dq=dq)
    robot.step()
    assert robot.sensors.joints[2, 18] == pytest.approx(1.5)


def test_torque_is_limited_and_counted(body: Body) -> None:
    robot = body("gantry.attached=true")
    target = robot.pose.copy()
    target[18] += 2.0
    robot.motors.set(target, 500.0, 1.0)
    robot.step(10)
    assert robot.sensors.joints[2, 18] == pytest.approx(25.0)
    assert robot.motors.saturated == 1.0
    assert robot.motors.saturated_steps[18] == 10
    assert robot.motors.saturated_steps[3] == 0


def test_pelvis_imu_turns_with_the_pelvis(body: Body) -> None:
    robot = body()
    roll = 0.3
    robot.reset(quat_wxyz=(np.cos(roll / 2), np.sin(roll / 2), 0, 0), angular_velocity_body_rad_s=(0, 0, 1.0))
    quat, gyro = robot.sensors.imu[0, :4], robot.sensors.imu[0, 4:7]
    np.testing.assert_allclose(quat, [np.cos(roll / 2), np.sin(roll / 2), 0, 0], atol=1e-9)
    np.testing.assert_allclose(gyro, [0, 0, 1.0], atol=1e-9)
    world = robot.truth().angular_velocity_rad_s
    np.testing.assert_allclose(world, [0, -np.sin(roll), np.cos(roll)], atol=1e-9)
    assert robot.tilt_rad() == pytest.approx(roll)


def test_torso_imu_turns_with_the_waist_too(body: Body) -> None:
    robot = body()
    q = np.zeros(29)
    q[12], q[13], q[14] = 0.5, 0.2, -0.3  # yaw, roll, pitch
    robot.reset(q)
    expected = np.array([1.0, 0, 0, 0])
    for axis, angle in ((2, q[12]), (0, q[13]), (1, q[14])):
        turn = np.zeros(4)
        turn[0], turn[1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
        w1, x1, y1, z1 = expected
        w2, x2, y2, z2 = turn
        expected = np.array(
            [
                w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
                w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
                w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
            ]
        )
    np.testing.assert_allclose(robot.sensors.imu[1, :4], expected, atol=1e-6)


def test_sensors_belong_to_the_instant_after_the_step(body: Body) -> None:
    robot = body("gantry.attached=true")
    robot.gantry.release()
    robot.motors.set(robot.pose + 0.3, 100.0, 2.0)
    robot.step(37)
    np.testing.assert_allclose(robot.sensors.imu[0, :4], robot.data.qpos[3:7], atol=1e-12)
    np.testing.assert_allclose(robot.sensors.imu[0, 4:7], robot.data.qvel[3:6], atol=1e-9)


def test_friction_of_the_floor_is_what_the_configuration_says(body: Body) -> None:
    """The most that a pushed robot's feet get from the floor is mu times what they press on it."""
    most = []
    for mu in (0.05, 1.0):
        robot = body(f"floor_friction={mu}")
        hold(robot)
        robot.step(500)
        robot.push((60.0, 0.0, 0.0), 0.2, "pelvis")
        ratios = []
        for _ in range(100):
            robot.step()
            force = robot.truth().foot_force_n
            standing = force[:, 2] > 10
            ratios.extend(np.linalg.norm(force[standing, :2], axis=1) / force[standing, 2])
        most.append(np.max(ratios))
    assert most[0] == pytest.approx(0.05, rel=0.05)
    assert most[1] > 0.08  # what the push needs, far from what would slide


def test_gantry_height_0_holds_it_standing(body: Body) -> None:
    robot = body("gantry.attached=true", "gantry.height_m=0", "start_pose=crouch")
    height = robot.truth().position_m[2]
    hold(robot)
    robot.step(500)
    assert robot.truth().position_m[2] == pytest.approx(height, abs=0.01)
    robot.gantry.release()
    robot.step(500)
    assert robot.truth().position_m[2] == pytest.approx(height, abs=0.03)
    assert robot.tilt_rad() < 0.15
