"""The safety table as typed data: events with thresholds and tiers, limits, damping, gateway.

One YAML file a robot holds every event exactly once. A policy may override what its motion needs
(`with_policy_overrides`) in the rows marked `tunable`, and each override is reported as one line.
"""

import difflib
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from onboard.configs.errors import ConfigError
from onboard.configs.events import Event, Tier
from onboard.configs.loader import convert, load, shipped
from onboard.configs.robot import RobotConfig

Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, le=1)]
Ticks = Annotated[int, Meta(ge=1, le=1000)]

_LIMIT = frozenset(
    {
        *("ROLL", "PITCH", "TILT", "FALL", "ANGULAR_RATE", "QUATERNION_NORM"),
        *("JOINT_SPEED", "JOINT_NEAR_LIMIT", "JOINT_PAST_LIMIT", "TORQUE_HIGH", "TORQUE_OVER"),
        *("CASING_HOT", "CASING_OVERHEATED", "WINDING_HOT", "WINDING_OVERHEATED"),
        *("RAMP_TRACKING", "RAMP_TORQUE", "STATE_OLD", "STATE_STALE", "CRC_RATE"),
        *("PROVIDER_OLD", "OVERRUN_REPEATED", "RECORDER_BEHIND", "DISK_LOW"),
    }
)
"""Events whose condition compares with a threshold."""

_WINDOW = frozenset({"CRC_RATE", "OVERRUN_REPEATED"})
"""Events whose condition looks back over a window."""


class EventRule(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the table; the YAML file explains the columns."""

    when: Annotated[str, Meta(min_length=1)]
    tier: Literal["none", "warn", "settle", "hold", "damp"]
    limit: float | None = None
    unit: str = ""
    ticks: Ticks | None = None
    seconds: Annotated[float, Meta(gt=0, le=60)] | None = None
    window_s: Annotated[float, Meta(gt=0, le=10)] | None = None
    tunable: bool = False
    latches: bool = True

    def __post_init__(self) -> None:
        if (self.ticks is None) == (self.seconds is None):
            raise ValueError("expected either 'ticks' or 'seconds'")
        if self.limit is not None and math.isnan(self.limit):
            raise ValueError("'limit' is not a number")

    @property
    def severity(self) -> Tier:
        """The tier as a number."""
        return Tier[self.tier.upper()]


class TargetLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """What is cut from a target before it is sent."""

    absurd_action: Positive
    absurd_target_rad: Positive
    soft_range: Share
    rate_rad_s: Positive
    torque_share: Share
    kp_floor: Positive


class Damping(Struct, frozen=True, forbid_unknown_fields=True):
    """Gains of a damping command by group of joints, N·m·s/rad."""

    legs: Annotated[float, Meta(ge=0, le=40)]
    waist: Annotated[float, Meta(ge=0, le=40)]
    arms: Annotated[float, Meta(ge=0, le=40)]
    wrists: Annotated[float, Meta(ge=0, le=40)]


class Standing(Struct, frozen=True, forbid_unknown_fields=True):
    """Quasi-static standing: below all of these for so many ticks, both feet loaded where known."""

    gyro_rad_s: Positive
    dq_rad_s: Positive
    tilt_rad: Positive
    ticks: Ticks


class GatewayLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Hard limits that the gateway enforces by itself."""

    tilt_rad: Positive
    range_margin_rad: Annotated[float, Meta(ge=0, le=0.1)]
    kp_max: Positive
    kd_max: Positive


class Times(Struct, frozen=True, forbid_unknown_fields=True):
    """Times of the mode machine, s."""

    settle_s: Annotated[float, Meta(gt=0, le=10)]
    stop_hold_s: Annotated[float, Meta(ge=0, le=10)]
    stop_damp_s: Annotated[float, Meta(ge=1, le=10)]


class SafetyConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that the gate, the mode machine and the gateway decide by."""

    name: str
    events: dict[str, EventRule]
    severe_fault_bits: tuple[Annotated[int, Meta(ge=1, le=0xFFFFFFFF)], ...]
    limits: TargetLimits
    damping: Damping
    standing: Standing
    gateway: GatewayLimits
    times: Times

    def __post_init__(self) -> None:
        known = [event.name for event in Event]
        for name in self.events:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                raise ValueError(
                    f"unknown event '{name}'" + (f"; did you mean '{close[0]}'?" if close else "")
                )
        missing = [name for name in known if name not in self.events]
        if missing:
            raise ValueError(f"no row for event {', '.join(missing)}; every event needs one")
        for name, rule in self.events.items():
            for key, value, wanted in (
                ("limit", rule.limit, name in _LIMIT),
                ("window_s", rule.window_s, name in _WINDOW),
            ):
                if wanted and value is None:
                    raise ValueError(f"event {name}: missing key '{key}'")
                if not wanted and value is not None:
                    raise ValueError(f"event {name}: its condition takes no '{key}'")

    def limit(self, event: Event) -> float:
        """Threshold of an event that has one.

        Raises:
            KeyError: the event's condition compares with nothing.
        """
        value = self.events[event.name].limit
        if value is None:
            raise KeyError(f"{event.name} has no limit")
        return value


def load_safety(name: str = "g1", overrides: list[str] | None = None) -> SafetyConfig:
    """Read a shipped table or a YAML path; overrides are `events.ROLL.limit=1.0` and the like.

    Raises:
        ConfigError: unknown name, or the file or an override does not fit.
    """
    return load(shipped("safety", name), SafetyConfig, overrides)


def with_policy_overrides(
    config: SafetyConfig, overrides: Mapping[str, Any], where: str = "policy"
) -> tuple[SafetyConfig, list[str]]:
    """The table as a policy's contract wants it, and one line for every value that it changed.

    Args:
        config: the robot's table.
        overrides: nested like the file, `{"events": {"ROLL": {"limit": 3.2}}, "limits": {...}}`. The
            sections events, limits and gateway may be overridden; of a tunable event limit, ticks and
            seconds; of any event the tier, upwards only.
        where: names the policy in errors and lines.

    Raises:
        ConfigError: a key does not exist or may not be overridden, a tier would fall, or a value does
            not fit.
    """
    data = msgspec.to_builtins(config)
    lines: list[str] = []
    for section, changes in overrides.items():
        at = f"{where}: safety.{section}"
        if section not in ("events", "limits", "gateway") or not isinstance(changes, Mapping):
            raise ConfigError(f"{at} can't be overridden; expected keys below events, limits or gateway")
        if section != "events":
            _override(data[section], changes, at, lines)
            continue
        for name, change in changes.items():
            if name not in config.events or not isinstance(change, Mapping):
                raise ConfigError(f"{at}.{name}: expected the name of an event and the keys to change")
            _check_rule_change(config.events[name], change, f"{at}.{name}")
            _override(data["events"][name], change, f"{at}.{name}", lines)
    return convert(data, SafetyConfig, f"{where}: safety"), lines


def _check_rule_change(rule: EventRule, change: Mapping[str, Any], where: str) -> None:
    allowed = ("limit", "ticks", "seconds", "tier") if rule.tunable else ("tier",)
    for key in change:
        if key not in allowed:
            raise ConfigError(
                f"{where}.{key}: a policy can't change this; it may change {', '.join(allowed)}"
            )
    tier = str(change.get("tier", rule.tier)).upper()
    if tier in Tier.__members__ and Tier[tier] < rule.severity:
        raise ConfigError(f"{where}.tier: found {tier.lower()}, which is lower than the table's {rule.tier}")


def _override(node: dict[str, Any], changes: Mapping[str, Any], where: str, lines: list[str]) -> None:
    for key, value in changes.items():
        if key not in node:
            raise ConfigError(f"{where}: no key '{key}'; there are: {', '.join(node)}")
        lines.append(f"{where}.{key}: {node[key]} -> {value}")
    if "ticks" in changes or "seconds" in changes:
        node.update(ticks=None, seconds=None)
    node.update(changes)


_GROUPS = (("wrist", "wrists"), ("shoulder", "arms"), ("elbow", "arms"), ("waist", "waist"), ("", "legs"))


def damping_kd(config: SafetyConfig, robot: RobotConfig) -> NDArray[np.float32]:
    """Gains (29,) of a damping command, N·m·s/rad, SDK motor order."""
    groups = [next(group for part, group in _GROUPS if part in joint.name) for joint in robot.joints]
    return np.array([getattr(config.damping, group) for group in groups], np.float32)


def to_ticks(seconds: float, period_s: float) -> int:
    """Whole control ticks that cover a time; 1.0 s at 0.02 s is 50, whatever the rounding."""
    return max(math.ceil(seconds / period_s - 1e-6), 1)
