"""The gate's second half: what the policy gave, and what is sent instead."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onboard.configs.events import Event, Mode, Tier, bits
from onboard.configs.robot import N_JOINTS
from onboard.configs.safety import load_safety
from onboard.runtime.link import Float32Array
from onboard.safety.events import Flag
from onboard.safety.gate import make_tables
from onboard.safety.limits import Cut
from tests.safety.support import KD, KP, PERIOD_S, ROBOT, STAND, Bench

GOOD = STAND + np.float32(0.05)
NAN = np.full(N_JOINTS, np.nan, np.float32)
BAD_TARGETS = {
    "raised": None,
    "nan": np.where(np.arange(N_JOINTS) == 17, np.float32(np.nan), GOOD),
    "infinite": np.where(np.arange(N_JOINTS) == 0, np.float32(-np.inf), GOOD),
    "absurd": np.where(np.arange(N_JOINTS) == 28, np.float32(30.1), GOOD),
    "too short": GOOD[:12],
}


def limit(bench: Bench, target: Float32Array | None, action: Float32Array | None = None) -> Float32Array:
    return bench.gate.limit(target, bench.gate.state, KP, KD, action)


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_one_bad_output_sends_the_previous_target_again_and_stops_nothing(name: str) -> None:
    bench = Bench()
    for _ in range(3):
        bench.tick()
        previous = limit(bench, GOOD).copy()
    assert bench.tick() is Tier.NONE
    np.testing.assert_array_equal(limit(bench, BAD_TARGETS[name]), previous)
    assert bench.gate.resent
    assert bench.gate.tier is Tier.WARN
    assert bench.gate.events == 1 << Event.POLICY_BAD_ONCE
    assert bench.tick() is Tier.NONE
    limit(bench, GOOD)
    assert not bench.gate.resent
    assert bench.gate.events == 0
    for _ in range(5):
        bench.tick()
        limit(bench, BAD_TARGETS[name])
        bench.tick()
        limit(bench, GOOD)
    assert bench.gate.latched == 0, "bad ticks that are not in a row never add up"


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_two_bad_outputs_in_a_row_damp(name: str) -> None:
    bench = Bench()
    bench.tick()
    previous = limit(bench, GOOD).copy()
    bench.tick()
    limit(bench, BAD_TARGETS[name])
    bench.tick()
    np.testing.assert_array_equal(limit(bench, NAN), previous)
    assert bench.gate.tier is Tier.DAMP
    assert bench.gate.cause == 1 << Event.POLICY_BAD_TWICE
    assert bench.gate.flag == Flag.OTHER_STOP
    assert bench.tick() is Tier.DAMP
    limit(bench, GOOD)
    assert bench.gate.tier is Tier.DAMP


@pytest.mark.parametrize("bad", [np.nan, np.inf, 101.0, -101.0])
def test_a_bad_action_counts_though_the_contract_clipped_it(bad: float) -> None:
    bench = Bench()
    action = np.zeros(12, np.float32)
    for value, resent in ((100.0, False), (bad, True)):
        action[4] = value
        bench.tick()
        limit(bench, GOOD, action)
        assert bench.gate.resent == resent


def test_ticks_without_a_target_break_the_row() -> None:
    bench = Bench()
    bench.tick()
    limit(bench, None)
    bench.tick()  # e.g. damped
    bench.tick()
    limit(bench, None)
    assert bench.gate.tier is Tier.WARN


def test_policy_events_can_not_be_raised_from_outside() -> None:
    bench = Bench()
    for _ in range(3):
        assert bench.tick(Event.POLICY_BAD_ONCE, Event.POLICY_BAD_TWICE) is Tier.NONE


def test_the_first_target_starts_from_the_measured_pose() -> None:
    bench = Bench()
    bench.state.q[3] = 2.0
    bench.tick()
    np.testing.assert_array_equal(limit(bench, None), bench.state.q)
    bench.tick()
    bench.state.q[3] = 0.0
    np.testing.assert_array_equal(limit(bench, None)[3], np.float32(2.0))
    bench.tick()
    bench.tick()  # a tick without a target
    np.testing.assert_array_equal(limit(bench, None), bench.state.q)


def test_a_measured_pose_past_the_range_is_no_target() -> None:
    bench = Bench()
    bench.state.q[5] = ROBOT.upper[5] + 0.04
    bench.tick()
    assert limit(bench, None)[5] == ROBOT.upper[5]


def test_an_unusable_state_starts_from_the_last_good_pose() -> None:
    bench = Bench()
    bench.tick()
    bench.state.q[:] = np.nan
    bench.tick()
    np.testing.assert_array_equal(bench.gate.limit(None, bench.state, KP, KD), STAND)


def test_targets_are_limited_from_tick_to_tick() -> None:
    bench = Bench()
    bench.tick()
    target = STAND.copy()
    target[2] = 2.7
    for wanted, cut in ((1.0, Cut.RATE), (0.95 * 88 / 80, Cut.RATE | Cut.TORQUE)):
        assert limit(bench, target)[2] == pytest.approx(wanted, abs=1e-5)
        assert bench.gate.limit_mask[2] == cut
        assert not bench.gate.resent
        bench.tick()
    summary = bench.gate.limited()
    assert (summary["ticks"], summary["rate"], summary["torque"]) == (2, 1.0, 0.5)
    assert summary["largest_cut_rad"] == pytest.approx(1.7)
    limit(bench, None)
    assert bench.gate.limited()["resent"] == pytest.approx(1 / 3)


@given(
    hnp.arrays(np.float32, N_JOINTS, elements=st.floats(width=32)),
    hnp.arrays(np.float32, (4, N_JOINTS), elements=st.floats(width=32)),
)
def test_whatever_comes_in_what_goes_out_is_finite_and_inside_the_range(
    target: Float32Array, rest: Float32Array
) -> None:
    bench = Bench()
    bench.state.q[:], bench.state.dq[:] = rest[0], rest[1]
    for _ in range(3):
        bench.tick()
        sent = bench.gate.limit(target, bench.state, rest[2], rest[3])
        assert np.all((sent >= ROBOT.lower) & (sent <= ROBOT.upper))


@pytest.mark.parametrize(("error", "damps"), [(0.49, False), (0.51, True), (-0.51, True)])
def test_a_ramp_that_the_joints_do_not_follow_damps(error: float, damps: bool) -> None:
    bench = Bench()
    bench.mode = Mode.RAMP
    target = STAND.copy()
    target[18] += error
    bench.tick()
    bench.gate.limit(target, bench.gate.state, KP * 0, KD)
    for _ in range(9):
        assert bench.tick() is Tier.NONE
        bench.gate.limit(target, bench.gate.state, KP * 0, KD)
    assert bench.tick() is (Tier.DAMP if damps else Tier.NONE)
    assert bench.gate.joint == (18 if damps else None)


@pytest.mark.parametrize(("share", "damps"), [(0.89, False), (0.91, True)])
def test_a_ramp_that_strains_damps(share: float, damps: bool) -> None:
    bench = Bench()
    bench.mode = Mode.RAMP
    bench.state.tau_est[3] = -share * ROBOT.effort[3]
    for _ in range(9):
        assert bench.tick() is Tier.NONE
    assert bench.tick() is (Tier.DAMP if damps else Tier.NONE)


@pytest.mark.parametrize("mode", [Mode.DAMP, Mode.HOLD, Mode.POLICY, Mode.LIMP])
def test_outside_a_ramp_a_distant_target_and_a_strained_joint_are_normal(mode: Mode) -> None:
    bench = Bench()
    bench.mode = mode
    bench.state.tau_est[3] = 0.95 * ROBOT.effort[3]
    target = STAND.copy()
    target[18] += 1.5
    for _ in range(20):
        assert bench.tick() is Tier.NONE
        bench.gate.limit(target, bench.gate.state, KP * 0, KD)


def test_without_a_target_in_force_there_is_nothing_to_track() -> None:
    bench = Bench()
    bench.mode = Mode.RAMP
    bench.tick()
    bench.gate.limit(STAND + 2, bench.gate.state, KP * 0, KD)
    for _ in range(2):
        bench.tick()
    for _ in range(20):
        assert bench.tick() is Tier.NONE


def test_another_table_takes_over_and_what_was_latched_stays() -> None:
    bench = Bench()
    bench.tick(Event.OVERRUN_REPEATED)
    wide = ["events.ANGULAR_RATE.limit=15", "limits.rate_rad_s=5"]
    bench.gate.use(make_tables(load_safety("g1", wide), ROBOT, PERIOD_S))
    bench.state.gyro_body[0] = 9
    for _ in range(5):
        assert bench.tick() is Tier.SETTLE
        assert bench.gate.events == 0
    target = STAND.copy()
    target[2] = 0.5
    assert limit(bench, target)[2] == pytest.approx(0.1)


def test_a_table_that_takes_over_within_a_tick_judges_from_the_next_one_on() -> None:
    bench = Bench()
    assert bench.tick(Event.OVERRUN_REPEATED) is Tier.SETTLE
    stricter = load_safety("g1", ["events.OVERRUN_REPEATED.tier=damp"])
    bench.gate.use(make_tables(stricter, ROBOT, PERIOD_S))
    assert bench.gate.report(bits(Event.OVERRUN_REPEATED)) is Tier.SETTLE
    assert bench.tick() is Tier.DAMP
