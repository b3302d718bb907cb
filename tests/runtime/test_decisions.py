"""Gate, limits and mode machine together, wired as the loop wires them, for any course of faults and wishes.

The policy is whatever numbers the course gives; nothing else of the runtime takes part.
"""

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.configs.events import Event, Mode, Tier, bits
from onboard.configs.robot import N_JOINTS
from onboard.runtime.link import Float32Array
from onboard.runtime.modes import Facts, Limits, ModeMachine, ModeTimes, Status, transition
from onboard.runtime.operator_input import OperatorInput
from onboard.safety.events import FROM_STATE, POLICY, Flag
from onboard.safety.gate import Gate
from onboard.safety.limits import Cut
from tests.safety.support import CONFIG, KD, KP, PERIOD_NS, PERIOD_S, ROBOT, STAND, healthy, quaternion

RESTING = (Mode.DAMP, Mode.LIMP)
STEP_RAD = CONFIG.limits.rate_rad_s * PERIOD_S
LONGEST = max(
    rule.ticks if rule.ticks is not None else round((rule.seconds or 0) / PERIOD_S)
    for rule in CONFIG.events.values()
)
"""Ticks of the longest debounce."""


class Tick(NamedTuple):
    """What one tick brings."""

    raised: frozenset[Event] = frozenset()
    pressed: frozenset[str] = frozenset()
    ramp_done: bool = False
    new: bool = True
    roll: float = 0.0
    gyro: float = 0.0
    joint: float = 0.3
    """Measured position of the left knee, rad."""
    target: float | None = 0.0
    """Added to the standing pose; None: the policy raised."""


ODD = st.builds(
    Tick,
    raised=st.frozensets(
        st.sampled_from([event for event in Event if not (FROM_STATE | POLICY) >> event & 1]), max_size=2
    ),
    pressed=st.frozensets(
        st.sampled_from(["start", "go", "stop", "damp", "limp", "stop_request", "damp_request"]), max_size=2
    ),
    ramp_done=st.booleans(),
    new=st.booleans(),
    roll=st.sampled_from([0.0, 0.3, 0.9, 1.4]),
    gyro=st.sampled_from([0.0, 1.0, 7.0, np.nan]),
    joint=st.sampled_from([0.3, 2.0, 3.0, -0.5, np.inf]),
    target=st.none() | st.floats(-40, 40, width=32) | st.sampled_from([np.nan, np.inf, -1e30]),
)
WALKS = st.sampled_from(
    [
        [Tick(pressed=frozenset({"start"})), Tick(ramp_done=True), Tick(pressed=frozenset({"go"}))],
        [Tick(pressed=frozenset({"start"})), Tick()],
        [Tick()] * 3,
    ]
)
COURSES = st.lists(WALKS | st.lists(ODD, max_size=4), max_size=10).map(
    lambda parts: [tick for part in parts for tick in part]
)


class Control:
    """The deciding half of the loop.

    Attributes:
        sent: what the last tick sent; None while the robot is damped or limp.
        cut: `limit_mask` that goes with it.
        rearmed: the last tick re-armed the gate.
    """

    def __init__(self) -> None:
        self.gate = Gate(CONFIG, ROBOT, PERIOD_S)
        self.machine = ModeMachine(PERIOD_S, ModeTimes())
        self.state = healthy()
        self.mode = Mode.DAMP
        self.sent: Float32Array | None = None
        self.cut = np.zeros(N_JOINTS, np.uint8)
        self.rearmed = False

    def tick(self, tick: Tick) -> None:
        """One period, in the loop's order."""
        self._look(tick)
        gate, asked = self.gate, OperatorInput()
        for name in tick.pressed:
            setattr(asked, name, True)
        gate.check_state(self.state, self.state.recv_ns, bits(*tick.raised), self.machine.status.mode)
        if asked.damp:
            gate.report(bits(Event.EMERGENCY_STOP))
        facts = Facts(ramp_done=tick.ramp_done, standing=gate.standing, clear=gate.clear)
        self.mode = self.machine.step(gate.tier, asked, facts)
        self.rearmed = self.machine.status.rearm
        if self.rearmed:
            gate.rearm()
        self.sent = None if self.mode in RESTING else self._limit(tick)

    def _look(self, tick: Tick) -> None:
        state = self.state
        state.new, state.recv_ns = tick.new, state.recv_ns + PERIOD_NS
        if tick.new:
            state.robot_tick += 20
            state.age_s = 0.003
            state.quat_wxyz[:] = quaternion(roll=tick.roll)
            state.gyro_body[0], state.q[3] = tick.gyro, tick.joint
        else:
            state.age_s += PERIOD_S

    def _limit(self, tick: Tick) -> Float32Array | None:
        target = None if tick.target is None else STAND + np.float32(tick.target)
        sent: Float32Array = self.gate.limit(target, self.gate.state, KP, KD).copy()
        self.cut = self.gate.limit_mask.copy()
        if self.gate.tier >= Tier.DAMP:
            self.mode = Mode.DAMP
            return None
        return sent


@settings(max_examples=100)
@given(COURSES)
def test_what_is_sent_is_finite_inside_the_range_and_moves_by_a_step_at_most(course: list[Tick]) -> None:
    control = Control()
    before: Float32Array | None = None
    for tick in course:
        control.tick(tick)
        sent = control.sent
        if sent is not None:
            assert np.all((sent >= ROBOT.lower) & (sent <= ROBOT.upper))  # false for NaN
            if before is not None:
                # Only the torque limit, which follows a joint that was pushed away, may ask for more.
                free = control.cut & (Cut.TORQUE | Cut.PHYSICAL) == 0
                assert np.all(np.abs(sent - before)[free] <= STEP_RAD * 1.0001)
        before = sent


@settings(max_examples=100)
@given(COURSES)
def test_severity_falls_and_targets_flow_again_only_by_the_operator(course: list[Tick]) -> None:
    control = Control()
    damped, latched, session = True, 0, 0
    for tick in course:
        control.tick(tick)
        if control.rearmed:
            assert "start" in tick.pressed
            latched = 0
        assert latched & ~control.gate.latched == 0, "a latch came loose"
        latched = control.gate.latched
        if damped and control.mode not in RESTING:
            assert "start" in tick.pressed
            assert control.machine.status.session == session + 1
        damped, session = control.mode in RESTING, control.machine.status.session
        if control.gate.tier >= Tier.DAMP:
            assert damped


@settings(max_examples=60)
@given(COURSES)
def test_the_same_course_sends_the_same_bytes(course: list[Tick]) -> None:
    runs = []
    for _ in range(2):
        control = Control()
        rows = []
        for tick in course:
            control.tick(tick)
            sent = b"" if control.sent is None else control.sent.tobytes()
            rows.append((sent, control.cut.tobytes(), control.machine.status, control.gate.events))
        runs.append(rows)
    assert runs[0] == runs[1]


@settings(max_examples=60)
@given(COURSES, st.sampled_from([event for event in Event if CONFIG.events[event.name].tier == "damp"]))
def test_after_any_course_a_fault_that_lasts_damps_within_its_debounce(
    course: list[Tick], event: Event
) -> None:
    if (FROM_STATE | POLICY) >> event & 1:
        return
    control = Control()
    rule = CONFIG.events[event.name]
    debounce = rule.ticks if rule.ticks is not None else round((rule.seconds or 0) / PERIOD_S)
    for tick in course:
        control.tick(tick)
    for _ in range(debounce):
        control.tick(Tick(raised=frozenset({event}), ramp_done=True))
    assert control.mode in RESTING


@settings(max_examples=25)
@given(COURSES)
def test_healthy_ticks_change_nothing_that_was_decided_and_add_nothing(course: list[Tick]) -> None:
    """With all flags false: what fires ends, what is latched stays, nobody moves up."""
    control = Control()
    for tick in course:
        control.tick(tick)
    gate = control.gate
    decided = gate.latched, gate.cause, gate.flag, control.machine.status.session
    resting = control.mode in RESTING
    for _ in range(3):
        control.tick(Tick())
    for _ in range(LONGEST + 60):
        control.tick(Tick())
        assert (gate.latched, gate.cause, gate.flag, control.machine.status.session) == decided
        assert not resting or control.mode in RESTING
    assert gate.events == 0
    assert gate.clear
    assert (gate.flag == Flag.NORMAL) == (gate.latched == 0)


TIMES = Limits(settle=150, stop_hold=50, stop_damp=50)
WHOLE_END = TIMES.settle + TIMES.stop_hold + 2 * TIMES.stop_damp + 4
"""Settling, hold, damping, once more limp, and a tick for each change."""
PRESSES = st.sets(st.sampled_from(["start", "go", "stop", "damp", "limp"]), max_size=3)
WISHES = st.tuples(PRESSES, st.sampled_from(Tier), st.booleans(), st.booleans(), st.booleans())


@settings(max_examples=60)
@given(
    st.sampled_from(Mode), st.integers(0, 200), st.integers(0, 150), st.lists(WISHES, min_size=1, max_size=30)
)
def test_once_asked_to_end_any_course_ends_in_bounded_time(
    mode: Mode, ticks: int, settling: int, course: list[tuple[set[str], Tier, bool, bool, bool]]
) -> None:
    status = Status(mode=mode, ticks=ticks, settling=settling if mode is Mode.POLICY else 0, ramped=True)
    for count in range(WHOLE_END):
        pressed, tier, done, standing, clear = course[count % len(course)]
        asked = OperatorInput()
        for name in pressed:
            setattr(asked, name, True)
        asked.stop_request = count == 0
        facts = Facts(ramp_done=done, standing=standing, clear=clear)
        status = transition(status, tier, asked, facts, TIMES)
    assert status.finished
    assert status.mode in RESTING
