"""Every event, in every mode, one tick below its debounce and at it, and just inside its threshold."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from onboard.configs.events import Event, Mode, Tier
from onboard.configs.safety import load_safety
from onboard.runtime.link import State
from onboard.safety.events import DAMPED_IS_NORMAL
from tests.safety.support import CONFIG, ROBOT, Bench, healthy, quaternion

Edit = Callable[[State], None]
KNEE, ANKLE_ROLL, WRIST = 3, 5, 20


class Case(NamedTuple):
    bad: Edit
    near: Edit
    """Just inside the threshold."""
    ticks: int


def set_quat(roll: float = 0.0, pitch: float = 0.0) -> Edit:
    def edit(state: State) -> None:
        state.quat_wxyz[:] = quaternion(roll, pitch, yaw=2.0)

    return edit


def scale_quat(length: float) -> Edit:
    def edit(state: State) -> None:
        state.quat_wxyz[:] = quaternion(yaw=1.0) * np.float32(length)

    return edit


def put(name: str, index: object, value: float) -> Edit:
    def edit(state: State) -> None:
        getattr(state, name)[index] = value

    return edit


def nothing(state: State) -> None:
    """A healthy sample is the near miss."""


EFFORT, SPEED = float(ROBOT.effort[KNEE]), float(ROBOT.speed[KNEE])
LOWER, UPPER = float(ROBOT.lower[ANKLE_ROLL]), float(ROBOT.upper[ANKLE_ROLL])

STATE_CASES: dict[Event, list[Case]] = {
    Event.ROLL: [Case(set_quat(roll=r * 0.81), set_quat(roll=r * 0.79), 2) for r in (1, -1)],
    Event.PITCH: [Case(set_quat(pitch=p * 0.61), set_quat(pitch=p * 0.59), 2) for p in (1, -1)],
    # cos(tilt) = cos(roll) cos(pitch): 1.01 and 0.99 rad.
    Event.TILT: [Case(set_quat(0.895, 0.555), set_quat(0.87, 0.555), 2)],
    Event.FALL: [Case(set_quat(roll=1.21), set_quat(roll=1.19), 2)],
    Event.FALL_NO_RECOVERY: [Case(set_quat(roll=0.81), set_quat(roll=0.79), 50)],
    Event.ANGULAR_RATE: [
        Case(put("gyro_body", axis, sign * 6.01), put("gyro_body", axis, sign * 5.99), 3)
        for axis in range(3)
        for sign in (1, -1)
    ],
    Event.JOINT_SPEED: [
        Case(put("dq", KNEE, sign * 0.91 * SPEED), put("dq", KNEE, sign * 0.89 * SPEED), 3)
        for sign in (1, -1)
    ],
    Event.JOINT_NEAR_LIMIT: [
        Case(put("q", ANKLE_ROLL, UPPER - 0.019), put("q", ANKLE_ROLL, UPPER - 0.021), 1),
        Case(put("q", ANKLE_ROLL, LOWER + 0.019), put("q", ANKLE_ROLL, LOWER + 0.021), 1),
    ],
    Event.JOINT_PAST_LIMIT: [
        Case(put("q", ANKLE_ROLL, UPPER + 0.051), put("q", ANKLE_ROLL, UPPER + 0.049), 5),
        Case(put("q", ANKLE_ROLL, LOWER - 0.051), put("q", ANKLE_ROLL, LOWER - 0.049), 5),
    ],
    Event.TORQUE_HIGH: [
        Case(put("tau_est", KNEE, s * 0.81 * EFFORT), put("tau_est", KNEE, s * 0.79 * EFFORT), 25)
        for s in (1, -1)
    ],
    Event.TORQUE_OVER: [
        Case(put("tau_est", KNEE, s * 1.01 * EFFORT), put("tau_est", KNEE, s * 0.99 * EFFORT), 100)
        for s in (1, -1)
    ],
    Event.CASING_HOT: [Case(put("temperature", (KNEE, 0), 76), put("temperature", (KNEE, 0), 75), 1)],
    Event.CASING_OVERHEATED: [Case(put("temperature", (KNEE, 0), 86), put("temperature", (KNEE, 0), 85), 1)],
    Event.WINDING_HOT: [Case(put("temperature", (KNEE, 1), 101), put("temperature", (KNEE, 1), 100), 1)],
    Event.WINDING_OVERHEATED: [
        Case(put("temperature", (KNEE, 1), 121), put("temperature", (KNEE, 1), 120), 1)
    ],
    Event.MOTOR_FAULT: [Case(put("motor_fault", KNEE, 1 << bit), nothing, 2) for bit in (1, 5, 14, 17)],
    Event.MOTOR_FAULT_SEVERE: [
        Case(put("motor_fault", KNEE, 1 << bit), put("motor_fault", KNEE, 1 << 9), 2)
        for bit in (0, 10, 11, 12, 30, 31)
    ],
    Event.STATE_NOT_FINITE: [
        Case(put(name, -1, bad), nothing, 2)
        for name in ("q", "dq", "tau_est", "quat_wxyz", "gyro_body", "accel_body")
        for bad in (np.nan, np.inf, -np.inf)
    ],
    Event.QUATERNION_NORM: [
        Case(scale_quat(1.051), scale_quat(1.049), 2),
        Case(scale_quat(0.949), scale_quat(0.951), 2),
        Case(put("quat_wxyz", slice(None), 0.0), nothing, 2),
    ],
    Event.MODE_MACHINE_CHANGED: [Case(lambda state: setattr(state, "mode_machine", 4), nothing, 1)],
    Event.REMOTE_LOST: [Case(put("remote", slice(None), 0), put("remote", slice(1, None), 0), 150)],
}
CASES = [(event, case) for event, cases in STATE_CASES.items() for case in cases]
IDS = [f"{event.name}-{n}" for event, cases in STATE_CASES.items() for n in range(len(cases))]
MODES = [Mode.DAMP, Mode.RAMP, Mode.HOLD, Mode.POLICY, Mode.LIMP]


def expected_tier(event: Event, mode: Mode, config_tier: Tier) -> Tier:
    if mode in (Mode.DAMP, Mode.LIMP) and DAMPED_IS_NORMAL >> event & 1:
        return Tier.NONE
    return Tier.HOLD if config_tier is Tier.SETTLE and mode in (Mode.RAMP, Mode.HOLD) else config_tier


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("event", "case"), CASES, ids=IDS)
def test_an_event_of_the_state_fires_at_its_debounce_and_not_before(
    event: Event, case: Case, mode: Mode
) -> None:
    bench = Bench()
    bench.mode = mode
    bench.tick()
    case.bad(bench.state)
    wanted = expected_tier(event, mode, CONFIG.events[event.name].severity)
    for _ in range(case.ticks - 1):
        bench.tick()
        assert not bench.fires(event)
    tier = bench.tick()
    assert bench.fires(event) == (wanted is not Tier.NONE)
    assert tier >= wanted
    assert bool(bench.gate.latched >> event & 1) == (wanted > Tier.WARN)


@pytest.mark.parametrize(("event", "case"), CASES, ids=IDS)
def test_a_near_miss_never_fires(event: Event, case: Case) -> None:
    bench = Bench()
    bench.tick()
    case.near(bench.state)
    for _ in range(case.ticks + 5):
        bench.tick()
        assert not bench.fires(event)


@pytest.mark.parametrize(("event", "case"), [(event, case) for event, case in CASES if case.ticks > 1])
def test_one_good_sample_starts_the_debounce_anew(event: Event, case: Case) -> None:
    bench = Bench()
    good = healthy()
    for _ in range(2):
        bench.tick()
        case.bad(bench.state)
        for _ in range(case.ticks - 1):
            bench.tick()
        assert not bench.fires(event)
        for name in ("q", "dq", "tau_est", "quat_wxyz", "gyro_body", "accel_body", "motor_fault", "remote"):
            getattr(bench.state, name)[:] = getattr(good, name)
    bench.tick()
    assert not bench.fires(event)


@pytest.mark.parametrize("event", [e for e in STATE_CASES if e is not Event.MODE_MACHINE_CHANGED])
def test_the_rows_of_the_state_have_the_tier_of_the_table(event: Event) -> None:
    """Each row alone, the others silenced: they share conditions (a fall is a tilt too)."""
    case = STATE_CASES[event][0]
    silence = [f"events.{other.name}.tier=none" for other in Event if other is not event]
    bench = Bench(load_safety("g1", silence))
    bench.tick()
    case.bad(bench.state)
    for _ in range(case.ticks):
        assert bench.gate.tier is Tier.NONE
        tier = bench.tick()
    assert tier is CONFIG.events[event.name].severity
    assert bench.gate.clear == (tier <= Tier.WARN), "it alone keeps the operator from re-arming"
