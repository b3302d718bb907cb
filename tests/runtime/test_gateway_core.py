"""The gateway's decisions: every reason to damp, the latch, re-arming, endings."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.errors import ConfigError
from onboard.configs.robot import N_JOINTS, load_robot
from onboard.runtime.gateway_core import (
    MS,
    Core,
    GatewayState,
    Inputs,
    Reason,
    make_config,
    step,
    within_limits,
)
from onboard.runtime.link import COMMAND, Kind
from onboard.runtime.remote import DAMP, LIMP, START

ROBOT = load_robot("g1_29dof")
CONFIG = make_config(ROBOT, np.full(N_JOINTS, 3.0, np.float32), expiry_ms=100)
NOW = 10_000 * MS


def command(number: int = 1, session: int = 1, kind: int = Kind.PASS, made_ns: int = NOW) -> np.ndarray:
    record = np.zeros((), COMMAND)
    record["number"], record["session"], record["kind"], record["made_ns"] = number, session, kind, made_ns
    record["kp"], record["kd"] = 40.0, 2.0
    return record


def inputs(now_ns: int = NOW, **changes: object) -> Inputs:
    base = Inputs(
        now_ns=now_ns,
        command=command(made_ns=now_ns),
        corrupt=False,
        keys=0,
        tilt_rad=0.0,
        starts=0,
        damps=0,
        limps=0,
        parent_ns=now_ns,
        foreign=0,
    )
    return base._replace(**changes)  # type: ignore[arg-type]


def passing() -> Core:
    core = step(Core(), inputs(), CONFIG)
    assert core.state is GatewayState.PASSING
    return core


def damped(reason_inputs: Inputs | None = None) -> Core:
    core = step(passing(), reason_inputs or inputs(damps=1), CONFIG)
    assert core.state is GatewayState.DAMPING
    return core


def test_nothing_is_published_before_the_first_command() -> None:
    core = step(Core(), inputs(command=None), CONFIG)
    assert core.state is GatewayState.IDLE
    assert step(core, inputs(command=None, damps=1), CONFIG).state is GatewayState.IDLE


def test_a_publisher_heard_before_the_first_command_silences_for_ever() -> None:
    core = step(Core(), inputs(command=None, foreign=1), CONFIG)
    assert core.state is GatewayState.SILENT
    assert step(core, inputs(foreign=1, starts=1), CONFIG).state is GatewayState.SILENT


def bad_joint(field: str, value: float, slot: int = 7) -> np.ndarray:
    record = command(number=2)
    record[field][slot] = value
    return record


REASONS = [
    (inputs(keys=DAMP), Reason.EMERGENCY_STOP),
    (inputs(damps=1), Reason.EMERGENCY_STOP),
    (inputs(foreign=1), Reason.SECOND_PUBLISHER),
    (inputs(parent_ns=NOW - 201 * MS), Reason.PARENT_LOST),
    (inputs(corrupt=True), Reason.CORRUPT),
    (inputs(command=None), Reason.CORRUPT),
    (inputs(command=command(kind=0)), Reason.CORRUPT),
    (inputs(command=command(session=0)), Reason.CORRUPT),
    (inputs(command=command(made_ns=NOW + 101 * MS)), Reason.CORRUPT),
    (inputs(command=command(kind=Kind.DAMP, number=2)), Reason.CONTROL),
    (inputs(command=command(kind=Kind.STOP, number=2)), Reason.STOPPED),
    (inputs(command=bad_joint("q", np.nan)), Reason.NOT_FINITE_OR_RANGE),
    (inputs(command=bad_joint("q", float(ROBOT.upper[7]) + 0.002)), Reason.NOT_FINITE_OR_RANGE),
    (inputs(command=bad_joint("q", float(ROBOT.lower[7]) - 0.002)), Reason.NOT_FINITE_OR_RANGE),
    (inputs(command=bad_joint("kp", 500.5)), Reason.NOT_FINITE_OR_RANGE),
    (inputs(command=bad_joint("kp", -0.1)), Reason.NOT_FINITE_OR_RANGE),
    (inputs(command=bad_joint("kd", np.inf)), Reason.NOT_FINITE_OR_RANGE),
]


@pytest.mark.parametrize(("given_inputs", "reason"), REASONS)
def test_each_reason_damps(given_inputs: Inputs, reason: Reason) -> None:
    core = step(passing(), given_inputs, CONFIG)
    assert (core.state, core.reason) == (GatewayState.DAMPING, reason)


NEAR_MISSES = [
    inputs(parent_ns=NOW - 200 * MS),
    inputs(command=command(made_ns=NOW - 100 * MS)),
    inputs(command=bad_joint("q", float(ROBOT.upper[7]) + 0.0005)),
    inputs(command=bad_joint("kp", 500.0)),
    inputs(keys=LIMP & ~DAMP),
    inputs(starts=1),
    inputs(limps=1),
]


@pytest.mark.parametrize("given_inputs", NEAR_MISSES)
def test_near_misses_do_not_damp(given_inputs: Inputs) -> None:
    assert step(passing(), given_inputs, CONFIG).state is GatewayState.PASSING


def test_an_expired_target_damps_once_control_had_its_turn() -> None:
    old = command(made_ns=NOW - 101 * MS)
    core = step(passing(), inputs(command=old), CONFIG)
    assert core.state is GatewayState.PASSING
    core = step(core, inputs(NOW + 3 * MS, command=old), CONFIG)
    assert core.state is GatewayState.PASSING
    damped_core = step(core, inputs(NOW + 4 * MS, command=old), CONFIG)
    assert (damped_core.state, damped_core.reason) == (GatewayState.DAMPING, Reason.EXPIRED)
    fresh = step(core, inputs(NOW + 4 * MS, command=command(2, made_ns=NOW + 3 * MS)), CONFIG)
    assert (fresh.state, fresh.expired_ns) == (GatewayState.PASSING, 0)


def test_tilt_needs_two_looks_in_a_row() -> None:
    core = step(passing(), inputs(tilt_rad=1.3), CONFIG)
    assert core.state is GatewayState.PASSING
    assert step(core, inputs(tilt_rad=1.1), CONFIG).tilted == 0
    core = step(core, inputs(tilt_rad=1.3), CONFIG)
    assert (core.state, core.reason) == (GatewayState.DAMPING, Reason.TILT)


def test_a_get_up_policy_may_lift_the_tilt_limit() -> None:
    lifted = CONFIG._replace(tilt_limit_rad=float("inf"))
    core = passing()
    for _ in range(3):
        core = step(core, inputs(tilt_rad=3.1), lifted)
    assert core.state is GatewayState.PASSING


def test_latched_damping_ignores_the_old_session_for_ever() -> None:
    core = damped()
    for tick in range(1, 50):
        now = NOW + tick * 20 * MS
        core = step(core, inputs(now, command=command(tick, 1, made_ns=now), damps=1, starts=tick), CONFIG)
        assert core.state is GatewayState.DAMPING


def test_a_new_session_without_a_start_edge_does_not_re_arm() -> None:
    core = step(damped(), inputs(command=command(2, session=2), damps=1), CONFIG)
    assert core.state is GatewayState.DAMPING


@pytest.mark.parametrize("edge", [{"starts": 1}, {"keys": START}])
def test_start_edge_then_new_session_re_arms(edge: dict[str, int]) -> None:
    core = step(damped(), inputs(damps=1, **edge), CONFIG)
    assert core.state is GatewayState.DAMPING
    core = step(core, inputs(command=command(2, session=2), damps=1, **edge), CONFIG)
    assert (core.state, core.session, core.reason) == (GatewayState.PASSING, 2, Reason.NONE)


def test_a_button_held_since_before_the_latch_is_no_edge() -> None:
    core = step(passing(), inputs(keys=START), CONFIG)
    core = step(core, inputs(keys=START, damps=1), CONFIG)
    core = step(core, inputs(command=command(2, session=2), keys=START, damps=1), CONFIG)
    assert core.state is GatewayState.DAMPING


def test_re_arming_fails_while_the_damp_button_is_held() -> None:
    core = step(damped(), inputs(damps=1, keys=DAMP | START), CONFIG)
    core = step(core, inputs(command=command(2, session=2), damps=1, keys=DAMP | START), CONFIG)
    assert core.state is GatewayState.DAMPING


@pytest.mark.parametrize("bad", [{"parent_ns": NOW - 300 * MS}, {"corrupt": True}])
def test_re_arming_passes_the_same_checks(bad: dict[str, Any]) -> None:
    core = step(damped(), inputs(damps=1, starts=1), CONFIG)
    core = step(core, inputs(command=command(2, session=2), damps=1, starts=1, **bad), CONFIG)
    assert core.state is GatewayState.DAMPING


def test_limp_only_from_damping_and_only_by_the_combination() -> None:
    core = step(damped(), inputs(damps=1, keys=DAMP), CONFIG)
    assert core.state is GatewayState.DAMPING
    assert step(core, inputs(damps=1, keys=LIMP), CONFIG).state is GatewayState.LIMP
    assert step(core, inputs(damps=1, limps=1), CONFIG).state is GatewayState.LIMP


def test_clean_stop_damps_for_a_second_and_ends() -> None:
    core = step(passing(), inputs(command=command(2, kind=Kind.STOP)), CONFIG)
    assert core.stopping
    stop = command(2, kind=Kind.STOP)
    core = step(core, inputs(NOW + 999 * MS, command=stop), CONFIG)
    assert core.state is GatewayState.DAMPING
    assert step(core, inputs(NOW + 1000 * MS, command=stop), CONFIG).state is GatewayState.DONE


def test_stop_after_controls_own_damping_counts_that_time() -> None:
    core = step(passing(), inputs(command=command(2, kind=Kind.DAMP)), CONFIG)
    later = NOW + 1200 * MS
    stop = command(3, kind=Kind.STOP, made_ns=later)
    assert step(core, inputs(later, command=stop), CONFIG).state is GatewayState.DONE


def test_a_limp_robot_is_damped_for_a_second_at_a_stop_in_order() -> None:
    core = step(passing(), inputs(damps=1, limps=1), CONFIG)
    core = step(core, inputs(NOW + MS, damps=1, limps=1, keys=LIMP), CONFIG)
    assert core.state is GatewayState.LIMP
    for at_ms, state in (
        (5000, GatewayState.DAMPING),
        (5999, GatewayState.DAMPING),
        (6000, GatewayState.DONE),
    ):
        stop = command(3, kind=Kind.STOP, made_ns=NOW + 5000 * MS)
        core = step(core, inputs(NOW + at_ms * MS, command=stop, damps=1, limps=1), CONFIG)
        assert core.state is state


@pytest.mark.parametrize("before", [GatewayState.DAMPING, GatewayState.LIMP])
def test_when_control_is_gone_a_last_second_of_damping_begins(before: GatewayState) -> None:
    core = step(passing(), inputs(damps=1), CONFIG)
    core = core._replace(state=before)
    core = step(core, inputs(NOW + 5000 * MS, damps=1, control_done=True), CONFIG)
    assert core.state is GatewayState.DAMPING
    core = step(core, inputs(NOW + 5999 * MS, damps=1, control_done=True), CONFIG)
    assert core.state is GatewayState.DAMPING
    last = step(core, inputs(NOW + 6000 * MS, damps=1, control_done=True), CONFIG)
    assert last.state is GatewayState.DONE


def test_an_orphan_damps_for_five_seconds() -> None:
    core = step(passing(), inputs(parent_ns=NOW - 201 * MS), CONFIG)
    core = step(core, inputs(NOW + 4999 * MS, parent_ns=NOW - 201 * MS), CONFIG)
    assert core.state is GatewayState.DAMPING
    core = step(core, inputs(NOW + 5000 * MS, parent_ns=NOW - 201 * MS), CONFIG)
    assert core.state is GatewayState.DONE


def test_two_writers_do_not_fight() -> None:
    core = step(passing(), inputs(foreign=3), CONFIG)
    core = step(core, inputs(NOW + 1000 * MS, foreign=3), CONFIG)
    assert core.state is GatewayState.DAMPING
    core = step(core, inputs(NOW + 1001 * MS, foreign=3), CONFIG)
    assert core.state is GatewayState.SILENT
    assert step(core, inputs(NOW + 1002 * MS, foreign=3), CONFIG).state is GatewayState.SILENT
    assert (
        step(core, inputs(NOW + 1002 * MS, foreign=3, control_done=True), CONFIG).state is GatewayState.DONE
    )


def test_slots_that_the_variant_lacks_have_no_range() -> None:
    robot = load_robot("g1_23dof")
    config = make_config(robot, np.full(N_JOINTS, 3.0, np.float32), expiry_ms=100)
    record = command()
    record["q"][13] = 3.0
    assert within_limits(record, config)
    record["q"][13] = np.nan
    assert not within_limits(record, config)


def test_damping_gains_out_of_bounds_are_refused() -> None:
    with pytest.raises(ConfigError, match="damping gains"):
        make_config(ROBOT, np.full(N_JOINTS, 41.0, np.float32), expiry_ms=100)


step_inputs = st.builds(
    lambda delta, age, number, session, kind, corrupt, keys, tilt, edges, parent, foreign: (
        delta,
        Inputs(
            now_ns=0,
            command=command(number, session, kind, made_ns=-age * MS),
            corrupt=corrupt,
            keys=keys,
            tilt_rad=tilt,
            starts=edges[0],
            damps=edges[1],
            limps=edges[2],
            parent_ns=-parent * MS,
            foreign=foreign,
        ),
    ),
    st.integers(1, 400),
    st.integers(-300, 300),
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from([0, START, DAMP, LIMP]),
    st.sampled_from([0.0, 1.3]),
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
    st.integers(0, 400),
    st.integers(0, 1),
)


@given(st.lists(step_inputs, max_size=40))
def test_invariants_hold_for_any_sequence(sequence: list[tuple[int, Inputs]]) -> None:
    core, now = Core(), NOW
    latched_session = -1
    for delta, raw in sequence:
        now += delta * MS
        assert raw.command is not None
        record = raw.command.copy()
        record["made_ns"] = now + int(record["made_ns"])
        before = core
        core = step(core, raw._replace(now_ns=now, command=record, parent_ns=now + raw.parent_ns), CONFIG)
        if core.state is GatewayState.DAMPING and before.state is GatewayState.PASSING:
            latched_session = core.session
        if core.state is GatewayState.PASSING:
            assert core.session > latched_session, "a target of a latched session was passed on"
            assert now - int(record["made_ns"]) <= CONFIG.expiry_ns or core.expired_ns
            assert record["kind"] == Kind.PASS
        if before.state is GatewayState.SILENT:
            assert core.state in (GatewayState.SILENT, GatewayState.DONE)
        if before.state is GatewayState.DONE:
            assert core.state is GatewayState.DONE
        if before.state is GatewayState.LIMP:
            assert core.state is not GatewayState.DAMPING or core.reason is not Reason.NONE
