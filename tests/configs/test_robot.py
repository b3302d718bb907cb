"""The robot descriptions against each other and against the table of the SDK."""

import numpy as np
import pytest

from onboard.configs.errors import ConfigError
from onboard.configs.robot import N_JOINTS, load_robot

HOLES = {13, 14, 20, 21, 27, 28}


def test_both_variants_have_the_same_slots() -> None:
    full, small = load_robot("g1_29dof"), load_robot("g1_23dof")
    assert full.joint_names == small.joint_names
    assert full.valid.all()
    assert set(np.flatnonzero(~small.valid)) == HOLES
    assert len(full.joint_names) == N_JOINTS


def test_left_and_right_mirror_each_other() -> None:
    robot = load_robot("g1_29dof")
    for slot, name in enumerate(robot.joint_names):
        if not name.startswith("left_"):
            continue
        other = robot.slot(name.replace("left_", "right_"))
        assert robot.effort[slot] == robot.effort[other]
        assert robot.speed[slot] == robot.speed[other]
        assert robot.armature[slot] == robot.armature[other]
        mirrored = "roll" in name or "yaw" in name
        ends = (
            (-robot.upper[other], -robot.lower[other])
            if mirrored
            else (robot.lower[other], robot.upper[other])
        )
        assert (robot.lower[slot], robot.upper[slot]) == pytest.approx(ends)


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("left_hip_pitch_joint", 0),
        ("left_ankle_roll_joint", 5),
        ("right_hip_pitch_joint", 6),
        ("waist_yaw_joint", 12),
        ("left_shoulder_pitch_joint", 15),
        ("right_wrist_yaw_joint", 28),
    ],
)
def test_slots_are_the_sdks(name: str, slot: int) -> None:
    assert load_robot("g1_29dof").slot(name) == slot


def test_a_joint_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'left_knee_joint'"):
        load_robot("g1_29dof").slot("left_knee")
    with pytest.raises(ConfigError, match="slot 13 is empty"):
        load_robot("g1_23dof").slot("waist_roll_joint")
