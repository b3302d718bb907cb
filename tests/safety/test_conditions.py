import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.events import Event, Tier, bits
from onboard.configs.robot import load_robot
from onboard.configs.safety import load_safety
from onboard.safety.conditions import JOINT_EVENTS, attitude, is_finite, joint_hits, look_at, make_rules
from tests.safety.support import CONFIG, PERIOD_S, ROBOT, STAND, healthy, quaternion

RULES = make_rules(CONFIG, ROBOT, PERIOD_S)
ANGLES = st.floats(-1.5, 1.5)


@given(ANGLES, ANGLES, st.floats(-3, 3))
def test_attitude_gives_the_angles_that_made_the_quaternion(roll: float, pitch: float, yaw: float) -> None:
    found = attitude(*quaternion(roll, pitch, yaw).tolist())
    assert found[0] == pytest.approx(roll, abs=2e-4)
    assert found[1] == pytest.approx(pitch, abs=2e-3)  # asin is steep near 90 degrees
    assert math.cos(found[2]) == pytest.approx(math.cos(roll) * math.cos(pitch), abs=1e-5)


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: math.hypot(*q) > 0.1))
def test_attitude_exists_for_every_unit_quaternion_and_its_negative(values: list[float]) -> None:
    length = math.hypot(*values)
    w, x, y, z = (value / length for value in values)
    found = attitude(w, x, y, z)
    assert all(math.isfinite(angle) for angle in found)
    assert attitude(-w, -x, -y, -z) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize(
    "wxyz", [(0.0, 1.0, 0.0, 0.0), (0.5, 0.5, 0.5, 0.5), (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)]
)
def test_rounding_beyond_one_does_not_raise(wxyz: tuple[float, float, float, float]) -> None:
    w, x, y, z = (value * (1 + 1e-15) for value in wxyz)
    attitude(w, x, y, z)


def test_a_scaled_quaternion_is_judged_by_its_direction() -> None:
    state = healthy()
    for length in (0.96, 1.0, 1.04):
        state.quat_wxyz[:] = quaternion(roll=0.79) * np.float32(length)
        assert look_at(state, None, False, RULES).active == 0
        state.quat_wxyz[:] = quaternion(roll=0.81) * np.float32(length)
        assert look_at(state, None, False, RULES).active & bits(Event.ROLL)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["q", "dq", "tau_est", "quat_wxyz", "gyro_body", "accel_body"])
def test_no_element_of_any_reading_may_be_no_number(name: str, value: float) -> None:
    for index in range(getattr(healthy(), name).size):
        state = healthy()
        assert is_finite(state)
        getattr(state, name)[index] = value
        assert not is_finite(state), index


def test_an_absent_torso_imu_is_no_fault() -> None:
    state = healthy()
    assert np.isnan(state.torso_quat_wxyz).all()
    assert look_at(state, None, False, RULES).faults == 0


def test_rules_hold_the_table_in_ticks_and_masks() -> None:
    assert RULES.need[Event.TORQUE_HIGH] == 25
    assert RULES.need[Event.ROLL] == 2
    assert RULES.crc_window == 50
    assert RULES.crc_count == pytest.approx(2.5)
    assert RULES.severe == 0xC0001C01
    assert [tier for tier, _ in RULES.by_tier] == [Tier.DAMP, Tier.SETTLE, Tier.WARN, Tier.NONE]
    assert (
        RULES.latching & bits(Event.OPERATOR_STOP, Event.MOTION_FINISHED, Event.OVERRUN, Event.CRC_BAD) == 0
    )
    assert RULES.stopping & bits(Event.OPERATOR_STOP)
    assert RULES.latching & bits(Event.EMERGENCY_STOP)
    assert RULES.highest(bits(Event.OVERRUN, Event.FALL, Event.REMOTE_LOST)) is Tier.DAMP
    assert RULES.highest(bits(Event.OVERRUN, Event.REMOTE_LOST)) is Tier.SETTLE
    assert RULES.highest(bits(Event.CRC_BAD)) is Tier.NONE
    assert RULES.highest(0) is Tier.NONE


def test_windows_and_debounce_follow_the_period() -> None:
    rules = make_rules(load_safety("g1", ["events.OVERRUN_REPEATED.window_s=2.0"]), ROBOT, 0.01)
    assert (rules.crc_window, rules.overrun_window) == (100, 200)
    assert rules.need[Event.TORQUE_HIGH] == 50
    assert rules.need[Event.ROLL] == 2


def test_a_hold_row_stops_and_latches_too() -> None:
    rules = make_rules(load_safety("g1", ["events.DISK_LOW.tier=hold"]), ROBOT, PERIOD_S)
    assert rules.highest(bits(Event.DISK_LOW, Event.REMOTE_LOST)) is Tier.HOLD
    assert rules.latching & rules.stopping & bits(Event.DISK_LOW)


def test_joint_limits_scale_with_each_joints_rating() -> None:
    rows = dict(zip(JOINT_EVENTS, RULES.joint_limits, strict=True))
    np.testing.assert_allclose(rows[Event.JOINT_SPEED], 0.9 * ROBOT.speed)
    np.testing.assert_allclose(rows[Event.TORQUE_HIGH], 0.8 * ROBOT.effort)
    np.testing.assert_allclose(rows[Event.TORQUE_OVER], ROBOT.effort)
    np.testing.assert_allclose(rows[Event.RAMP_TORQUE], 0.9 * ROBOT.effort)
    np.testing.assert_allclose(rows[Event.CASING_HOT], 75)
    np.testing.assert_allclose(rows[Event.MOTOR_FAULT], 0.5)
    assert RULES.joint_need[JOINT_EVENTS.index(Event.TORQUE_OVER)] == 100


def test_slots_that_do_not_exist_have_no_limit() -> None:
    rules = make_rules(CONFIG, load_robot("g1_23dof"), PERIOD_S)
    assert np.isinf(rules.joint_limits[:, [13, 14, 20, 21, 27, 28]]).all()
    assert np.isfinite(rules.joint_limits[:, :13]).all()


def test_ramp_rows_stay_empty_outside_a_ramp() -> None:
    state = healthy()
    state.tau_est[:] = 0.95 * ROBOT.effort
    ramp_rows = [JOINT_EVENTS.index(event) for event in (Event.RAMP_TRACKING, Event.RAMP_TORQUE)]
    assert joint_hits(state, STAND + 2, True, RULES)[ramp_rows].all()
    assert not joint_hits(state, STAND + 2, False, RULES)[ramp_rows].any()
    hits = joint_hits(state, None, True, RULES)[ramp_rows]
    assert not hits[0].any()
    assert hits[1].all()


@pytest.mark.parametrize(("event", "column"), [(Event.CASING_HOT, 0), (Event.WINDING_HOT, 1)])
def test_casing_and_winding_are_not_mixed_up(event: Event, column: int) -> None:
    state = healthy()
    state.temperature[12, column] = 110
    hits = joint_hits(state, None, False, RULES)
    assert hits[JOINT_EVENTS.index(event), 12]
    other = Event.WINDING_HOT if event is Event.CASING_HOT else Event.CASING_HOT
    assert not hits[JOINT_EVENTS.index(other)].any()
