"""The robot's description: joints in SDK motor order, ranges, IMU placement, known machine modes."""

import difflib
from functools import cached_property
from typing import Annotated, Any, TypeVar

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from onboard.configs.errors import ConfigError
from onboard.configs.loader import load, shipped

N_JOINTS = 29
"""Motor slots that a G1 description names, whatever the variant; the wire has 35."""

Positive = Annotated[float, Meta(gt=0)]
Gains = Annotated[
    tuple[Annotated[float, Meta(ge=0, le=500)], ...], Meta(min_length=N_JOINTS, max_length=N_JOINTS)
]
Vector3 = Annotated[tuple[float, ...], Meta(min_length=3, max_length=3)]


class Joint(Struct, frozen=True, forbid_unknown_fields=True):
    """One motor slot. A slot with `valid` false does not exist on this variant and is never enabled."""

    name: str
    valid: bool
    lower_rad: float
    upper_rad: float
    effort_nm: Positive
    speed_rad_s: Positive
    armature_kg_m2: Positive


class Imu(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the two IMUs sit, in metres, each in its own body's frame."""

    pelvis_m: Vector3
    torso_m: Vector3


class Stand(Struct, frozen=True, forbid_unknown_fields=True):
    """Gains with which the runtime itself moves and holds the robot, SDK motor order."""

    kp: Gains
    kd: Gains


class RobotConfig(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A robot variant as data. Array properties are read-only, shape (29,), SDK motor order."""

    name: str
    mode_machine: Annotated[tuple[Annotated[int, Meta(ge=0, le=255)], ...], Meta(min_length=1)]
    imu: Imu
    stand: Stand
    joints: Annotated[tuple[Joint, ...], Meta(min_length=N_JOINTS, max_length=N_JOINTS)]

    def __post_init__(self) -> None:
        names = [joint.name for joint in self.joints]
        if len(set(names)) != len(names):
            raise ValueError("two joints share a name")
        for joint in self.joints:
            if not joint.lower_rad < joint.upper_rad:
                raise ValueError(f"{joint.name}: lower_rad {joint.lower_rad} not below {joint.upper_rad}")

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all 29 slots."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """True where the slot exists on this variant."""
        return _frozen(np.array([joint.valid for joint in self.joints]))

    @cached_property
    def lower(self) -> NDArray[np.float32]:
        """Lower end of each joint's physical range, rad."""
        return _frozen(np.array([joint.lower_rad for joint in self.joints], dtype=np.float32))

    @cached_property
    def upper(self) -> NDArray[np.float32]:
        """Upper end of each joint's physical range, rad."""
        return _frozen(np.array([joint.upper_rad for joint in self.joints], dtype=np.float32))

    @cached_property
    def effort(self) -> NDArray[np.float32]:
        """Torque limit, N·m."""
        return _frozen(np.array([joint.effort_nm for joint in self.joints], dtype=np.float32))

    @cached_property
    def speed(self) -> NDArray[np.float32]:
        """Rated speed, rad/s."""
        return _frozen(np.array([joint.speed_rad_s for joint in self.joints], dtype=np.float32))

    @cached_property
    def armature(self) -> NDArray[np.float64]:
        """Reflected rotor inertia, kg·m²."""
        return _frozen(np.array([joint.armature_kg_m2 for joint in self.joints]))

    @cached_property
    def stand_kp(self) -> NDArray[np.float32]:
        """Stiffness of ramp and hold, N·m/rad; 0 where the slot does not exist."""
        return _frozen(np.where(self.valid, np.array(self.stand.kp), 0).astype(np.float32))

    @cached_property
    def stand_kd(self) -> NDArray[np.float32]:
        """Damping of ramp and hold, N·m·s/rad; 0 where the slot does not exist."""
        return _frozen(np.where(self.valid, np.array(self.stand.kd), 0).astype(np.float32))

    def slot(self, joint_name: str) -> int:
        """SDK motor index of a joint.

        Raises:
            ConfigError: the robot has no such joint.
        """
        try:
            slot = self.joint_names.index(joint_name)
        except ValueError:
            close = difflib.get_close_matches(joint_name, self.joint_names, 1)
            hint = f"; did you mean '{close[0]}'?" if close else f"; it has: {', '.join(self.joint_names)}"
            raise ConfigError(f"{self.name} has no joint '{joint_name}'{hint}") from None
        if not self.joints[slot].valid:
            raise ConfigError(
                f"{self.name} has no joint '{joint_name}': slot {slot} is empty on this variant"
            )
        return slot


ArrayT = TypeVar("ArrayT", bound=NDArray[Any])


def _frozen(array: ArrayT) -> ArrayT:
    array.setflags(write=False)
    return array


def load_robot(name: str, overrides: list[str] | None = None) -> RobotConfig:
    """Read a shipped description (`g1_29dof`, `g1_23dof`) or a YAML path.

    Raises:
        ConfigError: unknown name, or the file does not fit.
    """
    return load(shipped("robots", name), RobotConfig, overrides)
