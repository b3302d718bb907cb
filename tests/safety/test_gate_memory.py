"""What the gate keeps from tick to tick: latches, causes, flags, the last good state."""

import copy
import gc
import sys
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.configs.events import Event, Mode, Tier, bits
from onboard.configs.robot import load_robot
from onboard.configs.safety import load_safety
from onboard.runtime.link import State
from onboard.safety.conditions import make_rules
from onboard.safety.events import Flag
from onboard.safety.gate import Gate, Inputs, Memory, Notes, judge
from tests.safety.support import CONFIG, PERIOD_S, ROBOT, STAND, Bench, healthy, quaternion

RULES = make_rules(CONFIG, ROBOT, PERIOD_S)
ANKLE_ROLL = 5


def test_a_healthy_robot_changes_nothing_but_the_notes() -> None:
    """All flags false: nothing fires, latches, counts or is flagged."""
    memory = Memory()
    for tick in range(100):
        state = healthy(tick)
        inputs = Inputs(state, state.recv_ns, 0, Mode.POLICY, False, STAND, False)
        decision, memory = judge(inputs, RULES, memory)
        assert decision == (Tier.NONE, 0, True, tick >= 9)
    fresh = Memory()
    assert memory.notes == Notes(tick=1000 + 20 * 99, mode_machine=5, crc_errors=0, remote_heard=True)
    for name in set(Memory._fields) - {"notes", "calm_ticks", "usable", "joint_ticks"}:
        assert getattr(memory, name) == getattr(fresh, name)
    assert not memory.joint_ticks.any()


def test_warn_clears_by_itself() -> None:
    bench = Bench()
    bench.state.q[ANKLE_ROLL] = ROBOT.upper[ANKLE_ROLL]
    assert bench.tick() is Tier.WARN
    assert bench.gate.joint == ANKLE_ROLL
    assert bench.gate.clear
    assert bench.gate.flag == Flag.NORMAL
    bench.state.q[ANKLE_ROLL] = 0
    assert bench.tick() is Tier.NONE
    assert bench.gate.joint is None


@pytest.mark.parametrize(
    ("event", "tier"), [(Event.TERMINAL_LOST, Tier.DAMP), (Event.OVERRUN_REPEATED, Tier.SETTLE)]
)
def test_a_latched_tier_stays_after_its_condition_until_the_operator_rearms(event: Event, tier: Tier) -> None:
    bench = Bench()
    assert bench.tick(event) is tier
    assert not bench.gate.clear
    for _ in range(100):
        assert bench.tick() is tier
        assert bench.gate.events == 0
        assert bench.gate.clear
    assert bench.gate.latched == bench.gate.cause == 1 << event
    bench.gate.rearm()
    assert bench.gate.tier is Tier.NONE
    assert bench.tick() is Tier.NONE
    assert (bench.gate.latched, bench.gate.cause, bench.gate.flag) == (0, 0, Flag.NORMAL)


def test_re_arming_shows_at_once_and_names_no_joint() -> None:
    bench = Bench()
    bench.state.q[ANKLE_ROLL] = ROBOT.upper[ANKLE_ROLL]
    bench.tick()
    bench.gate.rearm()
    assert (bench.gate.tier, bench.gate.events, bench.gate.joint) == (Tier.NONE, 0, None)


def test_before_the_first_judgement_nothing_may_start() -> None:
    gate = Bench().gate
    assert not gate.clear
    assert not gate.standing
    assert (gate.tier, gate.events, gate.latched, gate.flag) == (Tier.NONE, 0, 0, Flag.NORMAL)
    assert gate.joint is None


def test_the_operators_stop_ends_with_the_button() -> None:
    bench = Bench()
    assert bench.tick(Event.OPERATOR_STOP) is Tier.SETTLE
    assert bench.tick() is Tier.NONE
    assert bench.gate.latched == 0


def test_rearming_does_not_forgive_what_still_holds() -> None:
    bench = Bench()
    bench.tick()
    bench.state.quat_wxyz[:] = quaternion(roll=0.9)
    bench.tick()
    assert bench.tick() is Tier.DAMP
    bench.gate.rearm()
    assert bench.tick() is Tier.NONE, "the debounce begins anew"
    assert not bench.gate.clear, "but the condition is seen at once"
    assert bench.tick() is Tier.DAMP


def test_rearming_starts_every_debounce_anew() -> None:
    bench = Bench()
    bench.tick()
    bench.state.q[ANKLE_ROLL] = ROBOT.upper[ANKLE_ROLL] + 0.1
    for _ in range(4):
        bench.tick(Event.GATEWAY_LATCHED, Event.PROVIDER_OLD)
    bench.gate.rearm()
    bench.tick(Event.PROVIDER_OLD, Event.GATEWAY_LATCHED)
    for event in (Event.PROVIDER_OLD, Event.GATEWAY_LATCHED, Event.JOINT_PAST_LIMIT):
        assert not bench.fires(event)


def test_the_highest_tier_wins_and_the_cause_follows_it() -> None:
    bench = Bench()
    assert bench.tick(Event.MOTION_FINISHED, Event.DISK_LOW) is Tier.SETTLE
    assert bench.tick(Event.OVERRUN_REPEATED) is Tier.SETTLE
    assert bench.gate.cause == bits(Event.OVERRUN_REPEATED)
    assert bench.tick(Event.PARENT_LOST, Event.TERMINAL_LOST) is Tier.DAMP
    assert bench.gate.cause == bits(Event.PARENT_LOST, Event.TERMINAL_LOST)
    bench.tick(Event.EMERGENCY_STOP)
    assert bench.gate.cause == bits(Event.PARENT_LOST, Event.TERMINAL_LOST), "consequences are no cause"
    assert bench.gate.latched == bits(
        Event.OVERRUN_REPEATED, Event.PARENT_LOST, Event.TERMINAL_LOST, Event.EMERGENCY_STOP
    )


@pytest.mark.parametrize(
    ("mode", "bench_run", "tier"),
    [
        (Mode.POLICY, False, Tier.SETTLE),
        (Mode.POLICY, True, Tier.HOLD),
        (Mode.RAMP, False, Tier.HOLD),
        (Mode.HOLD, False, Tier.HOLD),
        (Mode.DAMP, False, Tier.SETTLE),
    ],
)
def test_where_no_policy_balances_settle_means_hold(mode: Mode, bench_run: bool, tier: Tier) -> None:
    bench = Bench(settle_is_hold=bench_run)
    bench.mode = mode
    assert bench.tick(Event.OVERRUN_REPEATED) is tier
    bench.mode = Mode.POLICY
    assert bench.tick() is (Tier.HOLD if bench_run else Tier.SETTLE), "what is latched is the table's tier"


def test_settle_is_settle_unless_the_run_says_otherwise() -> None:
    state = healthy()
    gate = Gate(CONFIG, ROBOT, PERIOD_S)
    assert gate.check_state(state, state.recv_ns, bits(Event.OPERATOR_STOP), Mode.POLICY) is Tier.SETTLE


def test_a_bench_run_is_asked_for_by_name() -> None:
    with pytest.raises(TypeError):
        Gate(CONFIG, ROBOT, PERIOD_S, True)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("event", "name", "bad"),
    [
        (Event.ANGULAR_RATE, "gyro_body", np.array([7, 0, 0])),
        (Event.ROLL, "quat_wxyz", quaternion(roll=0.9)),
        (Event.JOINT_SPEED, "dq", np.full(29, 36)),
        (Event.STATE_NOT_FINITE, "tau_est", np.full(29, np.nan)),
    ],
)
def test_a_lost_sample_neither_counts_nor_forgives(event: Event, name: str, bad: np.ndarray) -> None:
    bench = Bench()
    bench.tick()
    values = getattr(bench.state, name)
    good = values.copy()
    values[:] = bad
    for count in range(CONFIG.events[event.name].ticks or 0):
        assert not bench.fires(event)
        for _ in range(count):
            bench.tick(new=False)
            bench.state.age_s = 0.003
            assert not bench.fires(event)
        bench.tick()
    assert bench.fires(event)
    values[:] = good
    bench.tick(new=False)
    assert bench.fires(event), "the old sample still says so"
    assert not bench.gate.clear
    bench.tick()
    assert not bench.fires(event)
    assert bench.gate.clear


def test_an_unusable_sample_leaves_the_other_events_as_they_were() -> None:
    bench = Bench()
    bench.state.q[ANKLE_ROLL] = ROBOT.upper[ANKLE_ROLL]
    bench.tick()
    bench.state.dq[0] = np.nan
    assert bench.tick() is Tier.WARN
    assert bench.fires(Event.JOINT_NEAR_LIMIT)
    bench.state.dq[0] = 0
    bench.state.q[ANKLE_ROLL] = 0
    bench.tick()
    bench.state.dq[0] = np.nan
    bench.state.q[ANKLE_ROLL] = ROBOT.upper[ANKLE_ROLL]
    bench.tick()
    assert not bench.fires(Event.JOINT_NEAR_LIMIT)


def test_an_unusable_sample_keeps_a_tilt_that_fires() -> None:
    bench = Bench()
    bench.tick()
    bench.state.quat_wxyz[:] = quaternion(roll=0.9)
    for _ in range(2):
        bench.tick()
    bench.state.q[0] = np.nan
    bench.tick()
    assert bench.fires(Event.ROLL)


def test_an_unusable_sample_does_not_make_re_arming_possible() -> None:
    """The tilt before it has not fired yet, and the table takes the bad sample lightly."""
    bench = Bench(load_safety("g1", ["events.STATE_NOT_FINITE.tier=warn"]))
    bench.tick()
    bench.state.quat_wxyz[:] = quaternion(roll=0.9)
    bench.tick()
    bench.state.q[0] = np.nan
    assert bench.tick() is Tier.NONE
    assert not bench.gate.clear


def test_joints_are_debounced_each_for_itself() -> None:
    """Knees that take turns at their torque limit while walking are no sustained overload."""
    bench = Bench()
    for tick in range(100):
        left, right = (1, 0) if tick % 20 < 10 else (0, 1)
        bench.state.tau_est[[3, 9]] = 0.9 * ROBOT.effort[3] * left, 0.9 * ROBOT.effort[9] * right
        assert bench.tick() is Tier.NONE


def test_a_slot_that_the_robot_lacks_is_not_looked_at() -> None:
    gate = Gate(CONFIG, load_robot("g1_23dof"), PERIOD_S)
    state = healthy()
    for name, value in (("q", 50), ("dq", 90), ("tau_est", 900), ("motor_fault", 1)):
        getattr(state, name)[[13, 14, 20, 21, 27, 28]] = value
    state.temperature[13] = 300
    for tick in range(120):
        state.robot_tick, state.recv_ns = 1000 + 20 * tick, 20_000_000 * tick
        assert gate.check_state(state, state.recv_ns, 0, Mode.POLICY) is Tier.NONE
    assert gate.events == 0
    assert gate.standing


def test_an_unusable_sample_is_replaced_by_the_last_good_one_and_freezes_the_rest() -> None:
    bench = Bench()
    bench.tick()
    good = copy.deepcopy({name: getattr(bench.state, name) for name in State.__slots__})
    assert bench.gate.state is bench.state
    bench.state.q[0] = np.nan
    bench.state.gyro_body[:] = 99
    assert bench.tick() is Tier.NONE
    shown = bench.gate.state
    assert shown is not bench.state
    for name, value in good.items():
        np.testing.assert_array_equal(getattr(shown, name), value)
    bench.tick(new=False)
    assert bench.gate.state is shown, "a lost sample does not bring the bad one back"
    bench.state.q[0], bench.state.gyro_body[:] = 0, 0
    assert bench.tick() is Tier.NONE
    assert bench.gate.state is bench.state


def test_a_sample_that_came_late_is_not_used() -> None:
    bench = Bench()
    bench.tick()
    bench.state.q[0] = 0.1
    bench.tick()
    newest = bench.state.robot_tick
    bench.state.robot_tick, bench.state.q[0] = newest - 30, 0.0  # `tick` adds 20
    assert bench.tick() is Tier.NONE
    assert (bench.gate.state.robot_tick, bench.gate.state.q[0]) == (newest, np.float32(0.1))
    bench.tick(new=False)
    assert bench.gate.state.robot_tick == newest, "nothing new does not bring the old one back"
    bench.state.robot_tick = newest + 40
    bench.tick()
    assert bench.gate.state is bench.state


def test_bad_samples_in_a_row_damp_whatever_their_fault_alternates() -> None:
    bench = Bench()
    bench.tick()
    bench.state.q[0] = np.inf
    bench.tick()
    assert bench.tick() is Tier.DAMP
    assert bench.gate.cause == 1 << Event.STATE_NOT_FINITE


def test_before_any_good_sample_the_gate_shows_an_empty_state() -> None:
    bench = Bench()
    bench.state.q[:] = np.nan
    bench.tick()
    np.testing.assert_array_equal(bench.gate.state.q, 0)


def test_an_unusable_sample_keeps_nothing_alive_that_others_raised() -> None:
    bench = Bench()
    bench.tick()
    bench.tick(Event.PROVIDER_OLD, Event.DISK_LOW)
    bench.state.q[0] = np.nan
    assert bench.tick() is Tier.NONE
    assert bench.gate.events == 0
    bench.state.q[0] = 0
    assert bench.tick(Event.PROVIDER_OLD) is Tier.NONE


@pytest.mark.parametrize("first", [0, 2])
def test_mode_machine_is_compared_with_the_first_sample_ever(first: int) -> None:
    bench = Bench()
    bench.state.mode_machine = first
    assert bench.tick() is Tier.NONE
    bench.state.mode_machine = 5
    assert bench.tick() is Tier.DAMP
    bench.gate.rearm()
    assert bench.tick() is Tier.DAMP, "re-arming does not adopt the new value"


def test_a_remote_never_heard_is_not_lost() -> None:
    bench = Bench()
    bench.state.remote[:] = 0
    for _ in range(400):
        assert bench.tick() is Tier.NONE
    bench.state.remote[0] = 0x55
    bench.tick()
    bench.state.remote[:] = 0
    for _ in range(149):
        assert bench.tick() is Tier.NONE
    assert bench.tick() is Tier.SETTLE


def test_what_is_reported_late_in_a_tick_joins_what_was_seen_before() -> None:
    bench = Bench()
    bench.tick(Event.DISK_LOW)
    assert bench.gate.report(bits(Event.OPERATOR_STOP)) is Tier.SETTLE
    assert bench.gate.events == bits(Event.DISK_LOW, Event.OPERATOR_STOP)
    assert bench.gate.report(0) is Tier.SETTLE
    assert bench.gate.report(bits(Event.DISK_LOW)) is Tier.SETTLE
    assert bench.gate.events == bits(Event.DISK_LOW, Event.OPERATOR_STOP), "once more changes nothing"
    bench.gate.report(bits(Event.DISK_LOW, Event.RESIDUAL_DROPPED))
    assert bench.gate.events == bits(Event.DISK_LOW, Event.OPERATOR_STOP, Event.RESIDUAL_DROPPED)
    bench.tick()
    assert bench.gate.events == 0
    assert bench.gate.report(bits(Event.RESIDUAL_DROPPED)) is Tier.WARN
    assert bench.gate.clear


def test_memory_does_not_grow_over_many_ticks_good_or_bad() -> None:
    bench = Bench()
    bench.state.q[ANKLE_ROLL] = ROBOT.upper[ANKLE_ROLL]  # warns for ever
    kp, kd = np.full(29, 80, np.float32), np.full(29, 2, np.float32)

    def run(ticks: int) -> None:
        for tick in range(ticks):
            bench.state.crc_errors += tick % 40 == 0
            bench.tick(*[Event.OVERRUN] * (tick % 30 == 0), new=tick % 7 != 0)
            bench.gate.limit(None if tick % 11 == 0 else STAND, bench.gate.state, kp, kd)

    def blocks() -> int:
        gc.collect()  # empties the interpreter's free lists too
        return sys.getallocatedblocks()

    run(500)
    before = blocks()
    run(3000)
    assert blocks() - before < 50


class Step(NamedTuple):
    raised: set[Event]
    mode: Mode
    new: bool
    roll: float
    gyro: float
    jump: int


STEPS = st.lists(
    st.builds(
        Step,
        raised=st.sets(st.sampled_from([event for event in Event if "POLICY" not in event.name]), max_size=3),
        mode=st.sampled_from(Mode),
        new=st.booleans(),
        roll=st.floats(-1.5, 1.5),
        gyro=st.sampled_from([0.0, 0.1, 3.0, 7.0, np.nan]),
        jump=st.integers(-40, 40),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(STEPS)
def test_severity_never_falls_without_the_operator_and_judging_is_pure(steps: list[Step]) -> None:
    memory = Memory()
    for tick, step in enumerate(steps):
        state = healthy(tick)
        state.new = step.new
        state.robot_tick += step.jump
        state.quat_wxyz[:] = quaternion(roll=step.roll)
        state.gyro_body[1] = step.gyro
        inputs = Inputs(state, state.recv_ns, bits(*step.raised), step.mode, False, None, False)
        snapshot = repr((state.quat_wxyz, state.gyro_body, memory))
        decision, after = judge(inputs, RULES, memory)
        again, after_again = judge(inputs, RULES, memory)
        assert decision == again
        assert repr(after) == repr(after_again)
        assert snapshot == repr((state.quat_wxyz, state.gyro_body, memory)), "an argument was changed"
        assert memory.latched & ~after.latched == 0
        assert decision.tier >= RULES.highest(after.latched) >= RULES.highest(memory.latched)
        assert after.cause & ~after.latched == 0
        assert (after.flag != Flag.NORMAL) == (RULES.highest(after.latched) >= Tier.SETTLE)
        memory = after
