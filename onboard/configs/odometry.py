"""Typed numbers of the leg odometry: what it assumes about noise, forces and contact."""

from typing import Annotated

from msgspec import Meta, Struct

from onboard.configs.loader import load, shipped
from onboard.configs.robot import Vector3

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0, lt=1)]


class Forces(Struct, frozen=True, forbid_unknown_fields=True):
    """Standard deviations of the balance of momentum.

    Attributes:
        torque_nm: of a leg joint's torque, plus `torque_share` of it.
        ankle_torque_nm: the same for ankle pitch and roll.
        torque_share: of the torque's amount.
        stop_nm: more of it where a joint is nearer than `stop_rad` to an end of its range.
        stop_rad: that distance.
        force_n: prior of the ground's force on a foot, x, y, z of the foot's frame.
        moment_nm: prior of the ground's moment about the middle of the sole.
        sum_share: of the sum of both vertical forces, as a share of body weight.
    """

    torque_nm: Positive
    ankle_torque_nm: Positive
    torque_share: NotNegative
    stop_nm: NotNegative
    stop_rad: NotNegative
    force_n: Vector3
    moment_nm: Vector3
    sum_share: Positive


class Support(Struct, frozen=True, forbid_unknown_fields=True):
    """When the legs carry the robot, and not a gantry.

    Attributes:
        window_s: time constant of the mean of the share that the feet carry by the joint torques alone.
        lost_below: a smaller share: something else carries it.
        found_above: a larger share: the legs do.
    """

    window_s: Positive
    lost_below: Share
    found_above: Share


class Contact(Struct, frozen=True, forbid_unknown_fields=True):
    """Contact flag: vertical force with hysteresis, and never much higher than the other foot.

    Attributes:
        on_n: a greater force begins contact.
        off_n: a smaller one ends it.
        hanging_factor: on both, as long as the feet do not carry the robot: without the sum of both
            feet the forces are less sure, and a foot in the air must not count as standing.
        height_m: a foot higher above the other one is in the air, whatever its force.
    """

    on_n: Positive
    off_n: Positive
    hanging_factor: Annotated[float, Meta(ge=1)]
    height_m: Positive


class Velocity(Struct, frozen=True, forbid_unknown_fields=True):
    """Filter of the base velocity.

    Attributes:
        accel_m_s2: standard deviation of the predicted acceleration over one tick.
        leg_m_s: of the velocity from a foot that carries everything; divided by the foot's share.
        roll_lever_m: how far off the point may be about which a turning foot rolls; times the rate of
            its turning, one more deviation of the velocity from that leg.
        sole_m_n: how far a sole gives, m/N; times the rate of the load's change, one more deviation of
            the vertical velocity.
        slip_m_s: an innovation beyond it makes the leg doubtful with its square.
        rest_m_s: of the assumption "at rest", all that is left while no foot carries anything.
    """

    accel_m_s2: Positive
    leg_m_s: Positive
    roll_lever_m: NotNegative
    sole_m_n: NotNegative
    slip_m_s: Positive
    rest_m_s: Positive


class OdometryConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that the leg odometry assumes; windows in seconds of the robot's time."""

    tick_s: Annotated[float, Meta(ge=0.004, le=0.1)]
    gap_s: Annotated[float, Meta(ge=0.01, le=1)]
    forces: Forces
    support: Support
    contact: Contact
    velocity: Velocity

    def __post_init__(self) -> None:
        if self.contact.off_n > self.contact.on_n:
            raise ValueError(f"contact.off_n {self.contact.off_n} is above on_n {self.contact.on_n}")
        if self.support.lost_below > self.support.found_above:
            raise ValueError("support.lost_below is above found_above")


def load_odometry(name: str = "g1", overrides: list[str] | None = None) -> OdometryConfig:
    """Read the shipped numbers (`g1`) or a YAML path.

    Raises:
        ConfigError: unknown name, or the file or an override does not fit.
    """
    return load(shipped("odometry", name), OdometryConfig, overrides)
