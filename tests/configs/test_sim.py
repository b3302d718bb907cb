import numpy as np
import pytest

from onboard.configs.errors import ConfigError
from onboard.configs.robot import load_robot
from onboard.configs.sim import load_sim, per_joint


def test_shipped_configuration_is_nominal() -> None:
    config = load_sim()
    robot = load_robot(config.robot)
    gap = config.gap
    assert config.mode_machine in robot.mode_machine
    np.testing.assert_array_equal(per_joint(gap.gain, robot, "gain"), np.ones(29))
    np.testing.assert_array_equal(per_joint(gap.torque_limit, robot, "limit"), np.ones(29))
    for knob in (gap.command_latency_s, gap.state_latency_s, gap.friction_nm, gap.backlash_rad, gap.mass_kg):
        assert not per_joint(knob, robot, "knob").any()
    assert gap.imu_latency_s == 0


def test_later_patterns_win_and_unmatched_joints_get_the_default() -> None:
    robot = load_robot("g1_29dof")
    values = per_joint({"*_knee_joint": 1.0, "left_*": 2.0}, robot, "knob", default=7.0)
    assert values[robot.slot("left_knee_joint")] == 2.0
    assert values[robot.slot("right_knee_joint")] == 1.0
    assert values[robot.slot("waist_yaw_joint")] == 7.0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("start_pose=sitting", "start_pose 'sitting' is not one of zero, stand, crouch"),
        ("silence.action=freeze", "silence.action"),
        ("timestep_s=0.1", "timestep_s"),
        ("gantry.height=1.0", "unknown key 'height' at gantry"),
        ("floor_friction=0", "floor_friction"),
        ("gap.gain.left_knee_joint=strong", "gap.gain"),
    ],
)
def test_wrong_settings_are_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_sim(overrides=[override])
