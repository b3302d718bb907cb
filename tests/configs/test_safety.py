import copy
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.errors import ConfigError
from onboard.configs.events import Event, Tier
from onboard.configs.loader import convert, read_yaml, shipped
from onboard.configs.robot import load_robot
from onboard.configs.safety import SafetyConfig, damping_kd, load_safety, to_ticks, with_policy_overrides

G1 = shipped("safety", "g1")


def edited(change: dict[str, Any]) -> dict[str, Any]:
    """The shipped table as plain data with some rows of `events` replaced; None removes."""
    data = copy.deepcopy(read_yaml(G1))
    for name, row in change.items():
        if row is None:
            del data["events"][name]
        else:
            data["events"][name] = data["events"].get(name, {}) | row
    return dict(data)


# Design, section 10: limit, ticks or seconds, tier of every row that it gives numbers for.
DESIGN = {
    "ROLL": (0.8, 2, "damp"),
    "PITCH": (0.6, 2, "damp"),
    "TILT": (1.0, 2, "damp"),
    "FALL": (1.2, 2, "damp"),
    "ANGULAR_RATE": (6.0, 3, "damp"),
    "JOINT_SPEED": (0.9, 3, "damp"),
    "JOINT_PAST_LIMIT": (0.05, 5, "damp"),
    "JOINT_NEAR_LIMIT": (-0.02, 1, "warn"),
    "TORQUE_HIGH": (0.8, 0.5, "warn"),
    "TORQUE_OVER": (1.0, 2.0, "damp"),
    "CASING_HOT": (75, 1, "warn"),
    "WINDING_HOT": (100, 1, "warn"),
    "CASING_OVERHEATED": (85, 1, "settle"),
    "WINDING_OVERHEATED": (120, 1, "settle"),
    "MOTOR_FAULT": (None, 2, "warn"),
    "MOTOR_FAULT_SEVERE": (None, 2, "damp"),
    "STATE_OLD": (0.04, 1, "warn"),
    "STATE_STALE": (0.1, 1, "damp"),
    "CRC_BAD": (None, 1, "none"),
    "CRC_RATE": (0.05, 1, "damp"),
    "TICK_NOT_ADVANCING": (None, 3, "damp"),
    "STATE_NOT_FINITE": (None, 2, "damp"),
    "QUATERNION_NORM": (0.05, 2, "damp"),
    "MODE_MACHINE_CHANGED": (None, 1, "damp"),
    "POLICY_BAD_TWICE": (None, 2, "damp"),
    "RESIDUAL_DROPPED": (None, 1, "warn"),
    "OVERRUN": (None, 1, "warn"),
    "OVERRUN_REPEATED": (3, 1, "settle"),
    "PROVIDER_OLD": (0.06, 2, "damp"),
    "RECORDER_BEHIND": (250, 1, "warn"),
    "RECORDER_DEAD": (None, 2.0, "warn"),
    "SECOND_PUBLISHER": (None, 1, "damp"),
    "REMOTE_LOST": (None, 3.0, "settle"),
    "OPERATOR_STOP": (None, 1, "settle"),
    "EMERGENCY_STOP": (None, 1, "damp"),
    "TERMINAL_LOST": (None, 1, "damp"),
    "PARENT_LOST": (None, 1, "damp"),
    "DISK_LOW": (500, 1, "warn"),
}


@pytest.mark.parametrize("name", DESIGN)
def test_shipped_table_says_what_the_design_says(name: str) -> None:
    rule = load_safety("g1").events[name]
    assert (rule.limit, rule.seconds or rule.ticks, rule.tier) == DESIGN[name]


def test_windows_are_one_second() -> None:
    events = load_safety().events
    assert {name: rule.window_s for name, rule in events.items() if rule.window_s} == {
        "CRC_RATE": 1.0,
        "OVERRUN_REPEATED": 1.0,
    }


def test_severe_fault_bits_are_over_current_encoders_and_host_time_outs() -> None:
    mask = 0
    for bit in load_safety().severe_fault_bits:
        mask |= bit
    assert mask == 0xC0001C01


def test_damping_gains_follow_the_limbs() -> None:
    kd = damping_kd(load_safety(), load_robot("g1_29dof"))
    assert kd.dtype == np.float32
    np.testing.assert_array_equal(kd[:15], 3)
    np.testing.assert_array_equal(kd[15:22], [2, 2, 2, 2, 1, 1, 1])
    np.testing.assert_array_equal(kd[22:], kd[15:22])


def test_limit_of_an_event_without_one_is_a_programming_error() -> None:
    assert load_safety().limit(Event.ROLL) == 0.8
    with pytest.raises(KeyError, match="EMERGENCY_STOP has no limit"):
        load_safety().limit(Event.EMERGENCY_STOP)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ROLLL": {"when": "x", "tier": "damp", "ticks": 1}}, "unknown event 'ROLLL'; did you mean 'ROLL'"),
        ({"ZZZ": {"when": "x", "tier": "damp", "ticks": 1}}, "unknown event 'ZZZ'"),
        ({"ROLL": None, "FALL": None}, "no row for event ROLL, FALL"),
        ({"ROLL": {"limit": None}}, "event ROLL: missing key 'limit'"),
        ({"CRC_RATE": {"window_s": None}}, "event CRC_RATE: missing key 'window_s'"),
        ({"ROLL": {"window_s": 1.0}}, "event ROLL: its condition takes no 'window_s'"),
        ({"EMERGENCY_STOP": {"limit": 1.0}}, "event EMERGENCY_STOP: its condition takes no 'limit'"),
        ({"ROLL": {"limit": math.nan}}, "'limit' is not a number"),
        ({"ROLL": {"limit": "wide"}}, "events.*ROLL|Expected `float"),
        ({"ROLL": {"seconds": 1.0}}, "expected either 'ticks' or 'seconds'"),
        ({"ROLL": {"ticks": None}}, "expected either 'ticks' or 'seconds'"),
        ({"ROLL": {"ticks": 0}}, "Expected `int` >= 1"),
        ({"ROLL": {"tier": "limp"}}, "Invalid enum value 'limp'"),
        ({"ROLL": {"speed": 1}}, "unknown key 'speed'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_the_reason(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        convert(edited(change), SafetyConfig, "g1.yaml")


def test_overrides_from_the_command_line_are_checked_like_the_file() -> None:
    assert load_safety("g1", ["events.ROLL.limit=1.0"]).events["ROLL"].limit == 1.0
    with pytest.raises(ConfigError, match="Expected `float"):
        load_safety("g1", ["events.ROLL.limit=[1]"])
    with pytest.raises(ConfigError, match="unknown event 'ROL'"):
        load_safety("g1", ["events.ROL={when: x, tier: damp, ticks: 1}"])


def test_an_unknown_table_names_the_shipped_ones() -> None:
    with pytest.raises(ConfigError, match="g1"):
        load_safety("g2")


def test_policy_overrides_change_the_table_and_say_so() -> None:
    base = load_safety()
    changed, lines = with_policy_overrides(
        base,
        {
            "events": {
                "ROLL": {"limit": 3.2, "ticks": 4},
                "TORQUE_OVER": {"ticks": 7},
                "ANGULAR_RATE": {"limit": 15},
            },
            "limits": {"rate_rad_s": 60.0},
            "gateway": {"tilt_rad": math.inf},
        },
        "dance",
    )
    assert changed.events["ROLL"].limit == 3.2
    assert (changed.events["TORQUE_OVER"].ticks, changed.events["TORQUE_OVER"].seconds) == (7, None)
    assert changed.limits.rate_rad_s == 60.0
    assert changed.gateway.tilt_rad == math.inf
    assert lines == [
        "dance: safety.events.ROLL.limit: 0.8 -> 3.2",
        "dance: safety.events.ROLL.ticks: 2 -> 4",
        "dance: safety.events.TORQUE_OVER.ticks: None -> 7",
        "dance: safety.events.ANGULAR_RATE.limit: 6.0 -> 15",
        "dance: safety.limits.rate_rad_s: 50.0 -> 60.0",
        "dance: safety.gateway.tilt_rad: 1.2 -> inf",
    ]
    assert base == load_safety(), "the robot's own table has changed"


def test_no_override_changes_nothing() -> None:
    assert with_policy_overrides(load_safety(), {}) == (load_safety(), [])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"event": {}}, "safety.event can't be overridden"),
        ({"damping": {"legs": 0.0}}, "safety.damping can't be overridden"),
        ({"limits": 3}, "safety.limits can't be overridden; expected keys below"),
        ({"limits": {"rate": 3.0}}, "no key 'rate'; there are: absurd_action"),
        ({"limits": {"rate_rad_s": -1.0}}, "rate_rad_s"),
        ({"events": {"ROL": {"limit": 1.0}}}, "events.ROL: expected the name of an event"),
        ({"events": {"ROLL": None}}, "events.ROLL: expected the name of an event and the keys"),
        ({"events": {"ROLL": {"when": "never"}}}, "ROLL.when: a policy can't change this"),
        ({"events": {"ROLL": {"latches": False}}}, "ROLL.latches: a policy can't change this"),
        (
            {"events": {"STATE_STALE": {"limit": 9.0}}},
            "STATE_STALE.limit: a policy can't .* it may change tier",
        ),
        (
            {"events": {"EMERGENCY_STOP": {"tier": "warn"}}},
            "found warn, which is lower than the table's damp",
        ),
        ({"events": {"ROLL": {"tier": "settle"}}}, "found settle, which is lower than the table's damp"),
        ({"events": {"ROLL": {"tier": "soft"}}}, "Invalid enum value 'soft'"),
        ({"events": {"ROLL": {"ticks": 2, "seconds": 1.0}}}, "expected either 'ticks' or 'seconds'"),
        ({"events": {"ROLL": {"limit": None}}}, "event ROLL: missing key 'limit'"),
    ],
)
def test_policy_overrides_that_may_not_be_are_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_policy_overrides(load_safety(), overrides, "dance")


def test_a_policy_may_raise_a_tier() -> None:
    config, lines = with_policy_overrides(load_safety(), {"events": {"RECORDER_DEAD": {"tier": "settle"}}})
    assert config.events["RECORDER_DEAD"].severity is Tier.SETTLE
    assert lines == ["policy: safety.events.RECORDER_DEAD.tier: warn -> settle"]


@given(st.sampled_from(list(Event)), st.sampled_from(["none", "warn", "settle", "hold", "damp"]))
def test_no_policy_lowers_a_tier_or_loses_an_event(event: Event, tier: str) -> None:
    base = load_safety()
    try:
        config, _ = with_policy_overrides(base, {"events": {event.name: {"tier": tier}}})
    except ConfigError:
        assert Tier[tier.upper()] < base.events[event.name].severity
    else:
        assert config.events[event.name].severity >= base.events[event.name].severity
        assert set(config.events) == set(base.events)


@pytest.mark.parametrize(
    ("seconds", "period_s", "ticks"),
    [(1.0, 0.02, 50), (0.5, 0.02, 25), (3.0, 0.02, 150), (0.2, 0.02, 10), (0.01, 0.02, 1), (0.021, 0.02, 2)],
)
def test_times_become_whole_ticks(seconds: float, period_s: float, ticks: int) -> None:
    assert to_ticks(seconds, period_s) == ticks
