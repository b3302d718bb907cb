"""The mode machine: every mode by every wish, tier and fact, and the sequences that a run is made of."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.events import Mode, Tier
from onboard.runtime.modes import Facts, Limits, ModeMachine, ModeTimes, Reason, Status, transition
from onboard.runtime.operator_input import OperatorInput

LIMITS = Limits(settle=150, stop_hold=50, stop_damp=50)
BUTTONS = ("start", "go", "stop", "damp", "limp", "stop_request", "damp_request")
UPRIGHT = (Mode.RAMP, Mode.HOLD, Mode.POLICY)
RESTING = (Mode.DAMP, Mode.LIMP)


def wishes(*names: str) -> OperatorInput:
    asked = OperatorInput()
    for name in names:
        setattr(asked, name, True)
    return asked


def after(
    mode: Mode, *names: str, tier: Tier = Tier.NONE, facts: Facts | None = None, **before: Any
) -> Status:
    return transition(Status(mode=mode, **before), tier, wishes(*names), facts or Facts(), LIMITS)


READY = {"ramped": True}
STANDING, HANGING, DONE, BLOCKED = (
    Facts(standing=True),
    Facts(gantry=True),
    Facts(ramp_done=True),
    Facts(clear=False),
)
RAMP, HOLD, POLICY, DAMP, LIMP = Mode.RAMP, Mode.HOLD, Mode.POLICY, Mode.DAMP, Mode.LIMP

# before, buttons, tier, facts, memory -> after, reason (None: of before), refused
TABLE: list[tuple[Mode, str, Tier, Facts, dict[str, Any], Mode, Reason | None, Reason | None]] = [
    # From damp and limp only the operator leads on.
    (DAMP, "", Tier.NONE, Facts(), {}, DAMP, None, None),
    (DAMP, "", Tier.NONE, DONE, {}, DAMP, None, None),
    (DAMP, "start", Tier.NONE, Facts(), {}, RAMP, Reason.START, None),
    (DAMP, "start", Tier.DAMP, Facts(), {}, RAMP, Reason.START, None),
    (DAMP, "start", Tier.NONE, BLOCKED, {}, DAMP, None, Reason.START_BLOCKED),
    (DAMP, "start damp", Tier.NONE, Facts(), {}, DAMP, None, Reason.START_BLOCKED),
    (DAMP, "start", Tier.NONE, Facts(), {"stopping": True}, DAMP, None, Reason.START_BLOCKED),
    (DAMP, "start stop_request", Tier.NONE, Facts(), {}, DAMP, None, Reason.START_BLOCKED),
    (DAMP, "start damp_request", Tier.NONE, Facts(), {}, DAMP, None, Reason.START_BLOCKED),
    (DAMP, "go", Tier.NONE, STANDING, {}, DAMP, None, Reason.GO_NEEDS_RAMP),
    (DAMP, "start go", Tier.NONE, BLOCKED, {}, DAMP, None, Reason.START_BLOCKED),
    (DAMP, "stop", Tier.NONE, STANDING, {}, DAMP, None, None),
    (DAMP, "damp", Tier.DAMP, Facts(), {}, DAMP, None, None),
    (DAMP, "limp", Tier.NONE, Facts(), {}, LIMP, Reason.LIMP_BUTTON, None),
    (DAMP, "limp damp", Tier.DAMP, BLOCKED, {}, LIMP, Reason.LIMP_BUTTON, None),
    (DAMP, "limp start", Tier.NONE, Facts(), {}, LIMP, Reason.LIMP_BUTTON, None),
    (DAMP, "", Tier.DAMP, Facts(), {"limp_asked": True}, LIMP, Reason.LIMP_BUTTON, None),
    (LIMP, "", Tier.NONE, Facts(), {}, LIMP, None, None),
    (LIMP, "damp", Tier.DAMP, Facts(), {}, LIMP, None, None),
    (LIMP, "damp_request", Tier.NONE, Facts(), {}, LIMP, None, None),
    (LIMP, "limp", Tier.NONE, Facts(), {}, LIMP, None, None),
    (LIMP, "start", Tier.NONE, Facts(), {}, RAMP, Reason.START, None),
    (LIMP, "start", Tier.NONE, BLOCKED, {}, LIMP, None, Reason.START_BLOCKED),
    (LIMP, "go", Tier.NONE, Facts(), {}, LIMP, None, Reason.GO_NEEDS_RAMP),
    # Ramp: to hold when it is done; a stop ends in hold only where hold is allowed.
    (RAMP, "", Tier.WARN, STANDING, {}, RAMP, None, None),
    (RAMP, "start go", Tier.NONE, BLOCKED, {}, RAMP, None, None),
    (RAMP, "", Tier.WARN, DONE, {}, HOLD, Reason.RAMP_DONE, None),
    (RAMP, "stop", Tier.NONE, Facts(), {}, DAMP, Reason.HOLD_NOT_ALLOWED, None),
    (RAMP, "stop", Tier.NONE, STANDING, {}, HOLD, Reason.OPERATOR_STOP, None),
    (RAMP, "stop", Tier.NONE, HANGING, {}, HOLD, Reason.OPERATOR_STOP, None),
    (RAMP, "stop", Tier.NONE, DONE, {}, HOLD, Reason.OPERATOR_STOP, None),
    (RAMP, "stop", Tier.SETTLE, HANGING, {}, HOLD, Reason.OPERATOR_STOP, None),
    (RAMP, "stop_request", Tier.NONE, HANGING, {}, HOLD, Reason.STOP_REQUEST, None),
    (RAMP, "", Tier.SETTLE, HANGING, {}, HOLD, Reason.EVENT, None),
    (RAMP, "", Tier.HOLD, HANGING, {}, HOLD, Reason.EVENT, None),
    (RAMP, "", Tier.HOLD, Facts(), {}, DAMP, Reason.HOLD_NOT_ALLOWED, None),
    (RAMP, "", Tier.DAMP, DONE, {}, DAMP, Reason.EVENT, None),
    (RAMP, "", Tier.LIMP, DONE, {}, DAMP, Reason.EVENT, None),
    # Hold: stays until go, and go needs a completed ramp and nothing that asks to stop.
    (HOLD, "", Tier.NONE, Facts(), READY, HOLD, None, None),
    (HOLD, "", Tier.HOLD, Facts(), READY, HOLD, None, None),
    (HOLD, "stop", Tier.SETTLE, Facts(), READY, HOLD, None, None),
    (HOLD, "go", Tier.WARN, Facts(), READY, POLICY, Reason.GO, None),
    (HOLD, "go", Tier.NONE, STANDING, {}, HOLD, None, Reason.GO_NEEDS_RAMP),
    (HOLD, "go", Tier.HOLD, STANDING, READY, HOLD, None, Reason.GO_BLOCKED),
    (HOLD, "go", Tier.SETTLE, STANDING, READY, HOLD, None, Reason.GO_BLOCKED),
    (HOLD, "go stop", Tier.NONE, STANDING, READY, HOLD, None, Reason.GO_BLOCKED),
    (HOLD, "go stop_request", Tier.NONE, STANDING, READY, HOLD, None, Reason.GO_BLOCKED),
    (HOLD, "start", Tier.HOLD, Facts(), READY, HOLD, Reason.REARMED, None),
    (HOLD, "start", Tier.HOLD, BLOCKED, READY, HOLD, None, Reason.START_BLOCKED),
    (HOLD, "", Tier.DAMP, STANDING, READY, DAMP, Reason.EVENT, None),
    (HOLD, "", Tier.NONE, STANDING, {"stopping": True, "ticks": 48}, HOLD, None, None),
    (HOLD, "", Tier.NONE, STANDING, {"stopping": True, "ticks": 49}, DAMP, Reason.STOP_SEQUENCE, None),
    (HOLD, "", Tier.NONE, STANDING, {"stopping": True, "ticks": 80}, DAMP, Reason.STOP_SEQUENCE, None),
    # Policy: a stop settles first.
    (POLICY, "", Tier.WARN, STANDING, READY, POLICY, None, None),
    (POLICY, "start go", Tier.NONE, STANDING, READY, POLICY, None, None),
    (POLICY, "stop", Tier.NONE, STANDING, READY, HOLD, Reason.SETTLED, None),
    (POLICY, "stop", Tier.NONE, HANGING, READY, HOLD, Reason.SETTLED, None),
    (POLICY, "stop", Tier.NONE, DONE, READY, POLICY, Reason.OPERATOR_STOP, None),
    (POLICY, "stop_request", Tier.NONE, Facts(), READY, POLICY, Reason.STOP_REQUEST, None),
    (POLICY, "", Tier.SETTLE, Facts(), READY, POLICY, Reason.EVENT, None),
    (POLICY, "", Tier.SETTLE, STANDING, READY, HOLD, Reason.SETTLED, None),
    (POLICY, "", Tier.HOLD, STANDING, READY, HOLD, Reason.SETTLED, None),
    (POLICY, "", Tier.HOLD, Facts(), READY, DAMP, Reason.HOLD_NOT_ALLOWED, None),
    (POLICY, "", Tier.NONE, Facts(), {"settling": 149}, POLICY, None, None),
    (POLICY, "", Tier.NONE, Facts(), {"settling": 150}, DAMP, Reason.SETTLE_TIMEOUT, None),
    (POLICY, "", Tier.NONE, Facts(), {"settling": 151}, DAMP, Reason.SETTLE_TIMEOUT, None),
    (POLICY, "", Tier.NONE, STANDING, {"settling": 150}, HOLD, Reason.SETTLED, None),
    (POLICY, "", Tier.DAMP, STANDING, READY, DAMP, Reason.EVENT, None),
]


@pytest.mark.parametrize(("mode", "buttons", "tier", "facts", "memory", "to", "reason", "refused"), TABLE)
def test_one_step(
    mode: Mode,
    buttons: str,
    tier: Tier,
    facts: Facts,
    memory: dict[str, Any],
    to: Mode,
    reason: Reason | None,
    refused: Reason | None,
) -> None:
    status = after(mode, *buttons.split(), tier=tier, facts=facts, **memory)
    assert (status.mode, status.reason, status.refused) == (to, reason or Reason.BEGIN, refused)
    assert status.session == (to is RAMP and mode is not RAMP)
    assert status.rearm == (reason in (Reason.START, Reason.REARMED))


@pytest.mark.parametrize("mode", UPRIGHT)
@pytest.mark.parametrize(
    ("button", "reason"),
    [
        ("damp", Reason.DAMP_BUTTON),
        ("limp", Reason.DAMP_BUTTON),
        ("damp_request", Reason.DAMP_REQUEST),
    ],
)
def test_damp_comes_first_from_everywhere(mode: Mode, button: str, reason: Reason) -> None:
    everything = Facts(ramp_done=True, standing=True, gantry=True)
    for others in itertools.product((False, True), repeat=3):
        pressed = [name for name, on in zip(("start", "go", "stop"), others, strict=True) if on]
        status = after(mode, button, *pressed, facts=everything, ramped=True)
        assert (status.mode, status.reason) == (DAMP, reason)
        assert status.limp_asked == (button == "limp")
        assert not status.ramped
        assert status.settling == 0


ALL_FACTS = [
    Facts(ramp_done=done, standing=standing, gantry=gantry, clear=clear)
    for done, standing, gantry, clear in itertools.product((False, True), repeat=4)
]
ALL_BUTTONS = [
    tuple(name for name, on in zip(BUTTONS, pressed, strict=True) if on)
    for pressed in itertools.product((False, True), repeat=len(BUTTONS))
]
MEMORIES: list[dict[str, Any]] = [
    {},
    {"ramped": True},
    {"settling": 3, "ramped": True},
    {"stopping": True, "ticks": 60},
]


@pytest.mark.parametrize("tier", Tier)
@pytest.mark.parametrize("mode", Mode)
def test_whatever_happens_nothing_leads_upwards_by_itself(mode: Mode, tier: Tier) -> None:
    for buttons, facts, memory in itertools.product(ALL_BUTTONS, ALL_FACTS, MEMORIES):
        status = after(mode, *buttons, tier=tier, facts=facts, **memory)
        to = status.mode
        if tier >= Tier.DAMP or {"damp", "limp", "damp_request"} & set(buttons):
            assert to in RESTING or (to is RAMP and "start" in buttons and mode in RESTING)
        if to is RAMP and mode is not RAMP:
            assert mode in RESTING
            assert "start" in buttons
            assert facts.clear
            assert "damp" not in buttons
            assert status.rearm
        if to is POLICY and mode is not POLICY:
            assert mode is HOLD
            assert "go" in buttons
            assert memory.get("ramped")
            assert tier <= Tier.WARN
        if to is HOLD and mode is not HOLD:
            assert mode in (RAMP, POLICY)
            assert facts.standing or facts.gantry or (mode is RAMP and facts.ramp_done)
        if to is LIMP:
            assert mode is LIMP or (mode is DAMP and "limp" in buttons)
        if mode is LIMP and to is not LIMP:
            assert to is RAMP
        if memory.get("stopping") or {"stop_request", "damp_request"} & set(buttons):
            assert status.stopping
            assert to not in (RAMP, POLICY) or to is mode
        assert status.session == (to is RAMP and mode is not RAMP)
        assert status.finished <= (status.stopping and to in RESTING)


def test_a_ramp_stopped_half_way_does_not_count_as_completed() -> None:
    assert not after(RAMP, "stop", facts=HANGING).ramped
    assert after(RAMP, "stop", facts=DONE).ramped
    assert after(RAMP, facts=DONE).ramped
    assert after(POLICY, "stop", facts=STANDING, ramped=True).ramped
    assert after(HOLD, "go", ramped=True).ramped
    assert after(HOLD, "start", ramped=True).ramped
    assert not after(HOLD, facts=DONE).ramped
    assert not after(POLICY, "stop", facts=Facts(ramp_done=True, standing=True)).ramped
    assert not after(DAMP, "start", ramped=True).ramped


class Run:
    """A machine at 50 Hz."""

    def __init__(self) -> None:
        self.machine = ModeMachine(0.02, ModeTimes())
        self.facts = Facts()

    def step(self, *buttons: str, tier: Tier = Tier.NONE, times: int = 1) -> Mode:
        for _ in range(times):
            mode = self.machine.step(tier, wishes(*buttons), self.facts)
        return mode

    def to(self, mode: Mode) -> "Run":
        if mode is LIMP:
            self.step("limp")
        elif mode in UPRIGHT:
            self.step("start")
            self.facts.ramp_done = mode is not RAMP
            self.step()
            self.facts.ramp_done = False
            if mode is POLICY:
                self.step("go")
        assert self.machine.status.mode is mode
        return self


@pytest.mark.parametrize(("ticks", "finished"), [(48, False), (49, True), (80, True)])
def test_the_end_comes_after_a_second_of_damping_however_late_it_is_looked_at(
    ticks: int, finished: bool
) -> None:
    for mode in RESTING:
        assert after(mode, stopping=True, ticks=ticks).finished == finished
        assert not after(mode, ticks=ticks).finished
    for mode in UPRIGHT:
        assert not after(mode, stopping=True, ticks=ticks).finished


def test_facts_are_given_by_name_since_all_of_them_are_booleans() -> None:
    with pytest.raises(TypeError):
        Facts(True)  # type: ignore[call-arg]


def test_the_first_mode_is_damp() -> None:
    run = Run()
    assert run.machine.status == Status(DAMP)
    assert not run.machine.status.rearm
    assert run.step() is DAMP
    assert run.machine.status.reason is Reason.BEGIN
    assert not run.machine.settling


def test_ticks_count_from_the_start_of_a_mode() -> None:
    run = Run().to(POLICY)
    assert run.machine.status.ticks == 0
    run.step(times=7)
    assert run.machine.status.ticks == 7
    run.step("damp")
    assert run.machine.status.ticks == 0


def test_every_start_opens_a_session_and_re_arms_for_one_tick() -> None:
    run = Run()
    for session in (1, 2, 3):
        run.step("start")
        assert (run.machine.status.session, run.machine.status.rearm) == (session, True)
        run.step()
        assert (run.machine.status.session, run.machine.status.rearm) == (session, False)
        run.step("damp", times=2)
        assert run.machine.status.session == session


def test_re_arming_in_hold_keeps_the_session() -> None:
    run = Run().to(HOLD)
    assert run.step("go", tier=Tier.HOLD) is HOLD
    assert run.machine.status.refused is Reason.GO_BLOCKED
    run.step("start", tier=Tier.HOLD)
    assert (run.machine.status.rearm, run.machine.status.session) == (True, 1)
    assert run.step("go") is POLICY
    assert not run.machine.status.rearm
    assert run.machine.status.refused is None


def test_a_stop_settles_with_the_command_at_zero_until_the_robot_stands() -> None:
    run = Run().to(POLICY)
    assert not run.machine.settling
    run.step("stop")
    assert run.machine.settling
    assert run.machine.status.reason is Reason.OPERATOR_STOP
    for tick in range(2, 100):
        assert run.step() is POLICY
        assert run.machine.settling
        assert run.machine.status.settling == tick
    run.facts.standing = True
    assert run.step() is HOLD
    assert not run.machine.settling
    run.facts.standing = False
    assert run.step() is HOLD
    assert run.step("go") is POLICY


def test_settling_damps_after_three_seconds() -> None:
    run = Run().to(POLICY)
    assert run.step("stop", tier=Tier.SETTLE) is POLICY
    assert run.step(times=149) is POLICY
    assert run.step() is DAMP
    assert run.machine.status.reason is Reason.SETTLE_TIMEOUT


def test_an_event_that_ends_by_itself_still_settles_to_the_end() -> None:
    run = Run().to(POLICY)
    run.step(tier=Tier.SETTLE)
    assert run.machine.status.reason is Reason.EVENT
    run.step(times=10)
    assert run.machine.settling
    run.facts.standing = True
    assert run.step() is HOLD


@pytest.mark.parametrize("mode", UPRIGHT)
def test_the_stop_sequence_holds_a_second_and_damps_a_second(mode: Mode) -> None:
    run = Run().to(mode)
    run.step(times=80)
    run.facts.standing = True
    modes = [run.step("stop_request")]
    while not run.machine.status.finished:
        assert run.machine.settling
        modes.append(run.step())
        assert len(modes) < 300
    assert modes == [HOLD] * 50 + [DAMP] * 51, "the last step only says that it is over"
    assert run.machine.status.reason is Reason.STOP_SEQUENCE


@pytest.mark.parametrize("mode", [DAMP, LIMP])
def test_the_stop_sequence_of_a_damped_robot_still_takes_its_second(mode: Mode) -> None:
    run = Run().to(mode)
    run.step(times=500)
    assert run.step("stop_request") is mode
    for _ in range(49):
        assert not run.machine.status.finished
        assert run.step("start") is mode
    assert not run.machine.status.finished
    run.step()
    assert run.machine.status.finished


def test_a_stop_request_that_never_comes_to_stand_still_ends() -> None:
    run = Run().to(POLICY)
    steps = 0
    run.step("stop_request")
    while not run.machine.status.finished:
        run.step()
        steps += 1
    assert steps == 150 + 50
    assert run.machine.status.reason is Reason.SETTLE_TIMEOUT


@pytest.mark.parametrize("mode", UPRIGHT)
def test_a_damp_request_damps_at_once_and_ends(mode: Mode) -> None:
    run = Run().to(mode)
    run.facts.standing = True
    assert run.step("stop_request") is HOLD
    assert run.step("damp_request") is DAMP
    assert run.step(times=49) is DAMP
    assert not run.machine.status.finished
    run.step()
    assert run.machine.status.finished


def test_an_event_during_the_stop_sequence_damps_and_the_run_ends_all_the_same() -> None:
    run = Run().to(POLICY)
    run.facts.standing = True
    assert run.step("stop_request") is HOLD
    assert run.step(tier=Tier.DAMP) is DAMP
    run.step(times=50)
    assert run.machine.status.finished


def test_the_limp_combination_passes_through_damp() -> None:
    run = Run().to(POLICY)
    assert [run.step("limp", "damp"), run.step("damp"), run.step("damp")] == [DAMP, LIMP, LIMP]
    run = Run().to(HOLD)
    assert [run.step("damp"), run.step(), run.step()] == [DAMP, DAMP, DAMP]


def test_times_become_ticks_of_the_period() -> None:
    machine = ModeMachine(0.01, ModeTimes(settle_s=0.05))
    for _ in range(2):
        machine.step(Tier.NONE, wishes("start"), Facts(ramp_done=True))
    machine.step(Tier.NONE, wishes("go"), Facts())
    modes = [machine.step(Tier.SETTLE, wishes(), Facts()) for _ in range(6)]
    assert modes == [POLICY] * 5 + [DAMP]


def test_every_reason_reads_as_a_clause() -> None:
    for reason in Reason:
        assert reason.value[0].islower()
        assert not reason.value.endswith(".")


PRESSES = st.sets(st.sampled_from([*BUTTONS[:5]]), max_size=2)
TICKS = st.lists(
    st.tuples(PRESSES, st.sampled_from(Tier), st.sampled_from(ALL_FACTS)), min_size=1, max_size=60
)


@given(TICKS)
def test_any_course_of_events_keeps_the_machine_consistent_and_repeats_exactly(
    course: list[tuple[set[str], Tier, Facts]],
) -> None:
    machine, again = ModeMachine(0.02, ModeTimes()), ModeMachine(0.02, ModeTimes())
    session = 0
    for buttons, tier, facts in course:
        before = machine.status
        mode = machine.step(tier, wishes(*buttons), facts)
        again.step(tier, wishes(*buttons), facts)
        assert machine.status == again.status
        assert machine.status.session in (session, session + 1)
        session = machine.status.session
        assert machine.status.ticks in (0, before.ticks + 1)
        assert machine.status.settling == 0 or (mode is POLICY and machine.status.settling > 0)
        assert not machine.status.finished
