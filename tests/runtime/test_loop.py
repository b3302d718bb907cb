"""The tick in lock-step: modes, sessions, records, and what one bad thing does and does not do."""

import math

import numpy as np
import pytest

from onboard.configs.errors import PolicyError
from onboard.configs.events import Event, Mode, Tier
from onboard.logging.layout import SafetyFlag
from onboard.runtime.gateway_core import GatewayState, Reason
from onboard.safety.limits import Cut
from tests.runtime.flight import Flight, Tamper, setting


def tilted(angle_rad: float) -> tuple[float, float, float, float]:
    """Rolled quaternion."""
    return (math.cos(angle_rad / 2), math.sin(angle_rad / 2), 0.0, 0.0)


def test_from_damping_to_walking_and_back() -> None:
    flight = Flight()
    flight.fly(5)
    assert flight.mode is Mode.DAMP
    assert flight.link.core.state is GatewayState.DAMPING
    assert flight.link.core.reason is Reason.CONTROL
    flight.port.press("go")
    flight.fly(1)
    assert flight.mode is Mode.DAMP  # go without a ramp is refused
    flight.walk()
    assert flight.link.core.state is GatewayState.PASSING
    flight.port.press("stop")
    flight.until(Mode.HOLD)
    assert set(flight.column("safety_flag")) == {0}
    flight.port.request("stop_request")
    flight.until(Mode.DAMP)
    while not flight.loop.finished:
        flight.fly(1)
    assert flight.link.core.state is GatewayState.DONE
    numbers = flight.column("number")
    assert (np.diff(numbers.astype(int)) == 1).all()


def test_the_ramp_takes_its_time_and_the_policy_fades_in() -> None:
    flight = Flight().walk(ticks=20)
    mode = flight.column("mode")
    assert (mode == Mode.RAMP).sum() >= 150
    assert flight.column("kp_scale")[mode == Mode.RAMP][0] < 0.2
    sent = flight.column("action_sent")
    first = int(np.flatnonzero(mode == Mode.POLICY)[0])
    assert np.abs(sent[first] - sent[first - 1]).max() < 0.05
    step = flight.column("step")[mode == Mode.POLICY]
    assert step.tolist() == list(range(len(step)))


def test_the_record_holds_what_the_network_saw_and_said() -> None:
    flight = Flight().walk(ticks=30)
    row = flight.rows[-1]
    assert np.array_equal(row["obs"][:100], flight.policy.obs)
    assert np.array_equal(row["action_policy"], row["action_combined"])
    assert np.allclose(row["target"], flight.policy.target(row["action_policy"].copy()), atol=1e-6)
    assert int(row["policy"]) == 0
    assert int(row["robot_tick"]) == flight.robot.tick
    assert row["command"][0] == np.float32(0.5)
    assert np.array_equal(row["q"], flight.link.latest().q)


def test_overruns_are_skipped_counted_and_advance_the_policys_clock() -> None:
    flight = Flight().walk(ticks=10)
    before = flight.rows[-1]
    flight.clock.stall(2)
    flight.fly(1)
    after = flight.rows[-1]
    assert int(after["tick"]) == int(before["tick"]) + 3
    assert int(after["step"]) == int(before["step"]) + 3
    assert int(after["skipped_ticks"]) == 2
    assert flight.has(Event.OVERRUN)
    # Two whole periods without a new target are more than 2.5 periods: the gateway has damped.
    assert flight.link.core.reason is Reason.EXPIRED


def test_one_skipped_period_is_survived() -> None:
    flight = Flight().walk(ticks=10)
    flight.clock.stall(1)
    flight.fly(30)
    assert flight.mode is Mode.POLICY
    assert flight.link.core.state is GatewayState.PASSING


class BadPolicy:
    """Spoils what the policy infers for some ticks."""

    def __init__(self, flight: Flight, monkeypatch: pytest.MonkeyPatch, spoil: Exception | float) -> None:
        self.left = 0
        self._infer = flight.policy.infer
        self._spoil = spoil
        monkeypatch.setattr(flight.policy, "infer", self.infer)

    def infer(self) -> np.ndarray:
        base: np.ndarray = self._infer()
        if not self.left:
            return base
        self.left -= 1
        if isinstance(self._spoil, Exception):
            raise self._spoil
        if isinstance(self._spoil, int):
            short: np.ndarray = base[: self._spoil].copy()
            return short
        base[3] = float(self._spoil)
        return base


SPOILS = [math.nan, math.inf, 1e6, PolicyError("the graph failed"), RuntimeError("anything else"), 28]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: repr(spoil)[:20])
def test_one_bad_output_resends_and_leaves_no_trace(
    spoil: Exception | float, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = Flight().walk(ticks=10)
    bad = BadPolicy(flight, monkeypatch, spoil)
    before = flight.rows[-1]
    bad.left = 1
    flight.fly(1)
    row = flight.rows[-1]
    assert flight.mode is Mode.POLICY
    assert np.array_equal(row["action_sent"], before["action_sent"])
    assert (row["limit_mask"] == Cut.RESENT).all()
    assert flight.has(Event.POLICY_BAD_ONCE)
    flight.fly(1)
    last_action = flight.rows[-1]["obs"][:29]
    assert np.array_equal(last_action, before["action_policy"])  # the bad tick never became the last action
    flight.fly(20)
    assert flight.mode is Mode.POLICY
    assert flight.link.core.state is GatewayState.PASSING


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: repr(spoil)[:20])
def test_a_second_bad_output_in_a_row_damps_in_that_tick(
    spoil: Exception | float, monkeypatch: pytest.MonkeyPatch
) -> None:
    flight = Flight().walk(ticks=10)
    BadPolicy(flight, monkeypatch, spoil).left = 2
    flight.fly(2)
    row = flight.rows[-1]
    assert flight.mode is Mode.DAMP
    assert Tier(int(row["tier"])) is Tier.DAMP
    assert SafetyFlag(int(row["safety_flag"])) is SafetyFlag.OTHER_STOP
    assert flight.link.core.state is GatewayState.DAMPING
    flight.fly(50)
    assert flight.mode is Mode.DAMP


def test_a_target_outside_the_range_is_limited_and_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    flight = Flight().walk(ticks=10)
    wanted = flight.policy.target
    upper = float(flight.plan.robot.upper[4])

    def far(base: np.ndarray) -> np.ndarray:
        target: np.ndarray = wanted(base).copy()
        target[4] = upper + 0.3
        return target

    monkeypatch.setattr(flight.policy, "target", far)
    flight.fly(3)
    row = flight.rows[-1]
    assert row["target"][4] == np.float32(upper + 0.3)
    assert row["action_sent"][4] <= np.float32(upper)
    assert int(row["limit_mask"][4]) & (Cut.RANGE | Cut.PHYSICAL | Cut.TORQUE)
    assert flight.link.core.state is GatewayState.PASSING


def test_the_same_target_written_straight_into_the_slot_is_damped_by_the_gateway() -> None:
    flight = Flight().walk(ticks=10)
    flight.loop.command["q"][4] = flight.plan.robot.upper[4] + 0.3
    flight.loop.command["number"] += 1
    flight.link.send(flight.loop.command)
    assert (flight.link.core.state, flight.link.core.reason) == (
        GatewayState.DAMPING,
        Reason.NOT_FINITE_OR_RANGE,
    )


def damps_within(flight: Flight, ticks: int) -> int:
    """Fly until damping; how many ticks that took, at most `ticks`."""
    took = flight.until(Mode.DAMP, ticks)
    assert flight.link.core.state is GatewayState.DAMPING
    assert int(flight.rows[-1]["tier"]) == Tier.DAMP
    assert int(flight.rows[-1]["safety_flag"]) != SafetyFlag.NORMAL
    return took


@pytest.mark.parametrize(
    ("tamper", "event", "debounce"),
    [
        (setting(quat_wxyz=tilted(0.9)), Event.ROLL, 2),
        (setting(gyro_body=(0.0, 7.0, 0.0)), Event.ANGULAR_RATE, 3),
        (setting(mode_machine=6), Event.MODE_MACHINE_CHANGED, 1),
        (setting(q=np.nan), Event.STATE_NOT_FINITE, 2),
        (setting(quat_wxyz=(0.5, 0.0, 0.0, 0.0)), Event.QUATERNION_NORM, 2),
        (setting(age_s=0.11), Event.STATE_STALE, 1),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else None,
)
def test_a_condition_damps_after_its_debounce(tamper: Tamper, event: Event, debounce: int) -> None:
    flight = Flight().walk()
    flight.tamper = tamper
    took = damps_within(flight, debounce + 2)
    assert debounce <= took
    assert flight.has(event)


def test_a_robot_that_really_falls_is_damped_and_flagged_as_fallen() -> None:
    flight = Flight().walk()
    flight.robot.physics.push((0.0, 600.0, 0.0), 0.3)
    damps_within(flight, 150)
    flight.fly(100)
    assert int(flight.rows[-1]["safety_flag"]) == SafetyFlag.FALL


def test_frozen_state_damps() -> None:
    flight = Flight().walk()
    flight.robot.faults.frozen = 10**9
    damps_within(flight, 5)
    assert flight.has(Event.TICK_NOT_ADVANCING)


def test_a_tick_that_runs_backwards_damps() -> None:
    flight = Flight().walk()
    flight.robot.faults.backwards = 10**9
    damps_within(flight, 5)
    assert flight.has(Event.TICK_NOT_ADVANCING)


def test_a_state_that_stops_damps_by_its_age() -> None:
    flight = Flight().walk()
    flight.robot.faults.lost = 10**9
    assert damps_within(flight, 8) >= 5
    assert flight.has(Event.STATE_STALE)


def test_one_lost_or_corrupt_sample_stops_nothing() -> None:
    flight = Flight().walk()
    for fault in ("lost", "corrupt"):
        setattr(flight.robot.faults, fault, 1)
        flight.fly(60)
    assert flight.mode is Mode.POLICY
    assert (flight.column("safety_flag") == SafetyFlag.NORMAL).all()
    assert (flight.column("crc_ok") == 0).sum() == 1


def test_many_corrupt_samples_damp() -> None:
    flight = Flight().walk()
    for _ in range(4):
        flight.robot.faults.corrupt = 1
        flight.fly(4)
        if flight.mode is Mode.DAMP:
            break
    assert flight.mode is Mode.DAMP
    assert "CRC_RATE" in flight.events


def test_a_second_publisher_damps_then_silences() -> None:
    flight = Flight().walk()
    flight.link.foreign += 1
    flight.fly(1)
    assert (flight.states[-1], flight.link.core.reason) == (GatewayState.DAMPING, Reason.SECOND_PUBLISHER)
    flight.fly(60)
    assert flight.states[-1] is GatewayState.SILENT


def test_the_remotes_emergency_stop_damps_at_once_and_latches() -> None:
    flight = Flight().walk()
    flight.robot.remote.press(0x200, flight.robot.physics.time_s + 0.1)
    assert damps_within(flight, 2) <= 2
    assert int(flight.rows[-1]["safety_flag"]) == SafetyFlag.EMERGENCY_STOP
    flight.fly(100)
    assert flight.mode is Mode.DAMP
    assert set(flight.states[-50:]) == {GatewayState.DAMPING}


def test_after_an_emergency_stop_start_re_arms_and_the_robot_walks_again() -> None:
    flight = Flight().walk()
    flight.port.press("damp")
    damps_within(flight, 2)
    flight.fly(60)
    flight.robot.reset(flight.policy.start_pose)
    flight.robot.physics.gantry.attach(float(flight.robot.physics.truth().position_m[2]))
    flight.fly(10)
    flight.port.press("start")
    flight.until(Mode.HOLD)
    assert int(flight.rows[-1]["safety_flag"]) == SafetyFlag.NORMAL
    assert flight.link.core.state is GatewayState.PASSING
    flight.port.press("go")
    flight.fly(1)
    flight.robot.physics.gantry.release()
    flight.fly(100)
    assert flight.mode is Mode.POLICY
    assert int(flight.rows[-1]["episode"]) == 1


def test_a_dead_parent_is_damped_by_the_gateway() -> None:
    flight = Flight().walk()
    flight.link.parent_alive = False
    flight.fly(11)
    assert (flight.states[-1], flight.link.core.reason) == (GatewayState.DAMPING, Reason.PARENT_LOST)


def test_the_loop_keeps_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    flight = Flight().walk(ticks=100)
    monkeypatch.setattr(flight, "push", lambda record: 0)
    flight.loop.sink = flight
    flight.fly(50)
    before = sys.getallocatedblocks()
    flight.fly(300)
    flight.states.clear()
    assert sys.getallocatedblocks() - before < 200


def test_warming_up_changes_nothing() -> None:
    flight, cold = Flight().walk(ticks=20), Flight().walk(ticks=20)
    for _ in range(20):
        flight.policy.warm()
        flight.fly(1)
        cold.fly(1)
    for name in ("obs", "action_policy", "action_sent", "phase"):
        assert np.array_equal(flight.rows[-1][name], cold.rows[-1][name])
