"""Typed configuration of the simulated robot."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from onboard.configs.errors import ConfigError
from onboard.configs.loader import load, shipped
from onboard.configs.robot import N_JOINTS, RobotConfig, Vector3, load_robot

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Latency = Annotated[float, Meta(ge=0, le=0.2)]
Number = Annotated[float, Meta(ge=-1e4, le=1e4)]


class Gantry(Struct, frozen=True, forbid_unknown_fields=True):
    """A frame above the robot that can hold its pelvis; `height_m` is the pelvis' height while held.

    At the start it is never held lower than standing on the floor, so 0 means standing.
    """

    attached: bool
    height_m: Annotated[float, Meta(ge=0, le=3.0)]
    speed_m_s: Positive


class Builtin(Struct, frozen=True, forbid_unknown_fields=True):
    """Stand-in for the robot's own controller; gains in N·m/rad and N·m·s/rad by joint."""

    active: bool
    name: Annotated[str, Meta(min_length=1)]
    kp: dict[str, NotNegative]
    kd: dict[str, NotNegative]


class Silence(Struct, frozen=True, forbid_unknown_fields=True):
    """What the robot does `after_s` without a command."""

    action: Literal["hold", "damp"]
    after_s: Positive
    damping_kd: dict[str, NotNegative]


class ImuRotation(Struct, frozen=True, forbid_unknown_fields=True):
    """How each IMU is turned against where it should be: roll, pitch, yaw in its body's frame, rad."""

    pelvis: Vector3
    torso: Vector3


class Gap(Struct, frozen=True, forbid_unknown_fields=True):
    """How the simulated robot differs from the nominal model; see the YAML for each knob's meaning."""

    gain: dict[str, NotNegative]
    torque_limit: dict[str, Positive]
    command_latency_s: dict[str, Latency]
    state_latency_s: dict[str, Latency]
    imu_latency_s: Latency
    friction_nm: dict[str, NotNegative]
    backlash_rad: dict[str, NotNegative]
    mass_kg: dict[str, Number]
    imu_rotation_rad: ImuRotation
    quat_order: Literal["wxyz", "xyzw"]
    wiring: dict[str, str]


class SimConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about the simulated robot that is not in its MJCF."""

    robot: str
    mode_machine: Annotated[int, Meta(ge=0, le=255)]
    timestep_s: Annotated[float, Meta(ge=0.0005, le=0.005)]
    floor_friction: Positive
    ambient_c: Annotated[float, Meta(ge=-40, le=60)]
    start_pose: str
    start_poses: dict[str, dict[str, Number]]
    gantry: Gantry
    builtin: Builtin
    silence: Silence
    gap: Gap

    def __post_init__(self) -> None:
        if self.start_pose not in self.start_poses:
            raise ValueError(f"start_pose '{self.start_pose}' is not one of {', '.join(self.start_poses)}")


def load_sim(name: str = "g1", overrides: list[str] | None = None) -> SimConfig:
    """Read the shipped description (`g1`) or a YAML path; `overrides` are `key=value`, dotted keys.

    Raises:
        ConfigError: unknown name, or the file or an override does not fit, or is of joints that the robot
            does not have.
    """
    path = shipped("sim", name)
    config = load(path, SimConfig, overrides)
    try:
        _check_joints(config, load_robot(config.robot))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return config


def _check_joints(config: SimConfig, robot: RobotConfig) -> None:
    """What names joints names some that there are, so that a wrong name is told with its file."""
    gap = config.gap
    given = {
        "builtin.kp": config.builtin.kp,
        "builtin.kd": config.builtin.kd,
        "silence.damping_kd": config.silence.damping_kd,
        "gap.gain": gap.gain,
        "gap.torque_limit": gap.torque_limit,
        "gap.command_latency_s": gap.command_latency_s,
        "gap.state_latency_s": gap.state_latency_s,
        "gap.friction_nm": gap.friction_nm,
        "gap.backlash_rad": gap.backlash_rad,
        "gap.mass_kg": gap.mass_kg,
        **{f"start_poses.{name}": pose for name, pose in config.start_poses.items()},
    }
    for key, values in given.items():
        per_joint(values, robot, key)
    wired(gap.wiring, robot)


def per_joint(
    values: Mapping[str, float], robot: RobotConfig, key: str, default: float = 0.0
) -> NDArray[np.float64]:
    """Spread a mapping from joint names or patterns over the joints.

    Args:
        values: name or pattern to value; later keys win.
        robot: whose joints.
        key: name of the setting, for errors.
        default: value of a joint that no key matches.

    Returns:
        (29,) SDK motor order.

    Raises:
        ConfigError: a key matches no joint.
    """
    out = np.full(N_JOINTS, default)
    for pattern, value in values.items():
        hit = np.array([fnmatchcase(name, pattern) for name in robot.joint_names])
        if not hit.any():
            raise ConfigError(
                f"{key}: '{pattern}' matches no joint of {robot.name}; use a joint's name such as "
                f"{robot.joint_names[3]}, or a pattern such as '*_knee_joint'"
            )
        out[hit] = value
    return out


def wired(wiring: Mapping[str, str], robot: RobotConfig) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Whose motor each joint's commands reach, and which way round.

    Args:
        wiring: `gap.wiring`; see the YAML.
        robot: whose joints.

    Returns:
        (29,) slot of the motor that obeys the commands of each slot, and (29,) 1 or -1.

    Raises:
        ConfigError: a key or value names no joint, or two joints' commands would reach the same motor.
    """
    names = list(robot.joint_names)
    motor, sign = np.arange(N_JOINTS), np.ones(N_JOINTS)
    for pattern, value in wiring.items():
        for slot in _slots(pattern, robot):
            goal = value.removeprefix("-").replace("*", _wildcard(pattern, names[slot]))
            if goal not in names:
                raise ConfigError(f"gap.wiring.{pattern}: '{value}' means {goal}, no joint of {robot.name}")
            motor[slot], sign[slot] = names.index(goal), -1.0 if value.startswith("-") else 1.0
    twice = [names[slot] for slot in range(N_JOINTS) if (motor == slot).sum() > 1]
    if twice:
        raise ConfigError(
            f"gap.wiring: two joints' commands reach {twice[0]}; say where its own go, as in "
            "{left_knee_joint: right_knee_joint, right_knee_joint: left_knee_joint}"
        )
    return motor, sign


def _slots(pattern: str, robot: RobotConfig) -> list[int]:
    found = [slot for slot, name in enumerate(robot.joint_names) if fnmatchcase(name, pattern)]
    if not found:
        raise ConfigError(f"gap.wiring: '{pattern}' matches no joint of {robot.name}")
    return found


def _wildcard(pattern: str, name: str) -> str:
    """What the first * of a pattern stands for in a name."""
    before, _, after = pattern.partition("*")
    return name[len(before) : len(name) - len(after)]
