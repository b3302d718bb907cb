"""The mode machine: which of damp, ramp, hold, policy and limp the loop is in, and why.

`transition` is a pure function of what was before, the gate's tier, the operator's wishes and a few
facts; `ModeMachine` remembers its result. The rules of a mode are tried in order, the first that
applies wins. No rule leads upwards without the operator, except that a completed ramp holds.

```
DAMP ──start──▶ RAMP ──done──▶ HOLD ──go──▶ POLICY ──settled──▶ HOLD
  ▲ └──limp──▶ LIMP ──start──▶ RAMP
  └── from RAMP, HOLD, POLICY: damp button, tier damp, or a hold that is not allowed
```

How the loop uses it, once a tick, after the gate and the operator:

```python
machine = ModeMachine(period_s, ModeTimes())
mode = machine.step(tier, operator_input, facts)
machine.status.rearm       # this tick: call gate.rearm()
machine.status.session     # goes into the command; rises with every start edge that was accepted
machine.settling           # velocity command to zero, no new motion
machine.status.finished    # the stop sequence is complete: hand Kind.STOP over and end
machine.status.reason, .refused   # for the log; `.value` is a clause
```
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

from onboard.configs.events import Mode, Tier
from onboard.configs.safety import to_ticks


class Reason(Enum):
    """Why the mode is what it is, or why a wish was refused; the value is a clause for the log."""

    BEGIN = "the run began"
    START = "the operator pressed start"
    RAMP_DONE = "the ramp reached the start pose"
    GO = "the operator pressed go"
    REARMED = "the operator re-armed the gate"
    SETTLED = "the robot stands still"
    OPERATOR_STOP = "the operator pressed stop"
    STOP_REQUEST = "the run was asked to end"
    EVENT = "a safety event"
    DAMP_BUTTON = "the operator pressed damp"
    DAMP_REQUEST = "damping was requested"
    LIMP_BUTTON = "the operator pressed limp"
    SETTLE_TIMEOUT = "the robot did not come to stand in time"
    HOLD_NOT_ALLOWED = "hold was asked for while the robot did not stand still"
    STOP_SEQUENCE = "the hold of the stop sequence is over"
    START_BLOCKED = "start refused: a safety condition holds or damp is pressed"
    GO_BLOCKED = "go refused: press start first to re-arm"
    GO_NEEDS_RAMP = "go refused: no ramp was completed since the last damp"


class Wishes(Protocol):
    """What the operator asks for in one tick (`operator_input.OperatorInput`); edges, save where noted."""

    start: bool
    go: bool
    stop: bool
    limp: bool
    damp: bool  # level
    stop_request: bool  # level or edge
    damp_request: bool  # damp and end; level or edge


class Facts:
    """What the loop knows besides; one object, overwritten every tick.

    Attributes:
        ramp_done: the ramp's last target is the start pose.
        standing: the robot stands quasi-statically (`gate.standing`).
        gantry: the robot hangs (`run --gantry`); hold is then always allowed.
        clear: no condition above warn holds now (`gate.clear`), latched or not.
    """

    __slots__ = ("clear", "gantry", "ramp_done", "standing")

    def __init__(
        self, *, ramp_done: bool = False, standing: bool = False, gantry: bool = False, clear: bool = True
    ) -> None:
        self.ramp_done = ramp_done
        self.standing = standing
        self.gantry = gantry
        self.clear = clear


class ModeTimes(NamedTuple):
    """Seconds: how long settling may take; hold and damping of the stop sequence."""

    settle_s: float = 3.0
    stop_hold_s: float = 1.0
    stop_damp_s: float = 1.0


class Limits(NamedTuple):
    """`ModeTimes` in ticks."""

    settle: int
    stop_hold: int
    stop_damp: int


class Status(NamedTuple):
    """The machine's memory, and what it tells the loop."""

    mode: Mode = Mode.DAMP
    ticks: int = 0
    """Since the mode began, or since the run was asked to end."""
    settling: int = 0
    """Ticks of settling so far, counting this one; 0 when not settling."""
    ramped: bool = False
    """A ramp was completed since the last damp."""
    stopping: bool = False
    """The run was asked to end."""
    limp_asked: bool = False
    """The limp combination was pressed: where it led to damp, limp follows in the next tick."""
    session: int = 0
    rearm: bool = False
    finished: bool = False
    reason: Reason = Reason.BEGIN
    """Of the last transition, or of the settling that began."""
    refused: Reason | None = None
    """Why a wish of this tick was refused."""


class _Now(NamedTuple):
    """Everything that a rule may look at."""

    before: Status
    tier: Tier
    wishes: Wishes
    facts: Facts
    limits: Limits
    stopping: bool
    ticks: int

    @property
    def ramp_done(self) -> bool:
        return self.before.mode is Mode.RAMP and self.facts.ramp_done

    @property
    def may_hold(self) -> bool:
        return self.facts.standing or self.facts.gantry or self.ramp_done

    @property
    def may_start(self) -> bool:
        return self.facts.clear and not self.wishes.damp and not self.stopping

    @property
    def starts(self) -> bool:
        return self.wishes.start and self.may_start

    @property
    def wants_stop(self) -> bool:
        return self.stopping or self.wishes.stop or self.tier in (Tier.SETTLE, Tier.HOLD)

    @property
    def stop_reason(self) -> Reason:
        if self.tier >= Tier.SETTLE and not self.wishes.stop:
            return Reason.EVENT
        return Reason.OPERATOR_STOP if self.wishes.stop else Reason.STOP_REQUEST

    @property
    def settling(self) -> bool:
        return self.before.settling > 0 or self.wants_stop


class Rule(NamedTuple):
    """One transition of the table."""

    when: Callable[[_Now], bool]
    mode: Mode
    reason: Reason | None
    """None: whoever asked for the stop."""


class Refusal(NamedTuple):
    """A wish that no transition has granted, and why."""

    when: Callable[[_Now], bool]
    reason: Reason


_DOWN = (
    Rule(lambda n: n.wishes.damp or n.wishes.limp, Mode.DAMP, Reason.DAMP_BUTTON),
    Rule(lambda n: n.wishes.damp_request, Mode.DAMP, Reason.DAMP_REQUEST),
    Rule(lambda n: n.tier >= Tier.DAMP, Mode.DAMP, Reason.EVENT),
)

RULES: dict[Mode, tuple[Rule, ...]] = {
    Mode.DAMP: (
        Rule(lambda n: n.wishes.limp or n.before.limp_asked, Mode.LIMP, Reason.LIMP_BUTTON),
        Rule(lambda n: n.starts, Mode.RAMP, Reason.START),
    ),
    Mode.LIMP: (Rule(lambda n: n.starts, Mode.RAMP, Reason.START),),
    Mode.RAMP: (
        *_DOWN,
        Rule(lambda n: n.wants_stop and n.may_hold, Mode.HOLD, None),
        Rule(lambda n: n.wants_stop, Mode.DAMP, Reason.HOLD_NOT_ALLOWED),
        Rule(lambda n: n.facts.ramp_done, Mode.HOLD, Reason.RAMP_DONE),
    ),
    Mode.HOLD: (
        *_DOWN,
        Rule(lambda n: n.stopping and n.ticks >= n.limits.stop_hold, Mode.DAMP, Reason.STOP_SEQUENCE),
        Rule(lambda n: n.starts, Mode.HOLD, Reason.REARMED),
        Rule(lambda n: n.wishes.go and n.before.ramped and not n.wants_stop, Mode.POLICY, Reason.GO),
    ),
    Mode.POLICY: (
        *_DOWN,
        Rule(lambda n: n.settling and n.may_hold, Mode.HOLD, Reason.SETTLED),
        Rule(lambda n: n.tier is Tier.HOLD, Mode.DAMP, Reason.HOLD_NOT_ALLOWED),
        Rule(lambda n: n.before.settling >= n.limits.settle, Mode.DAMP, Reason.SETTLE_TIMEOUT),
    ),
}

_NO_START = Refusal(lambda n: n.wishes.start, Reason.START_BLOCKED)
_NO_RAMP = Refusal(lambda n: n.wishes.go and not n.before.ramped, Reason.GO_NEEDS_RAMP)
_NO_GO = Refusal(lambda n: n.wishes.go, Reason.GO_BLOCKED)

REFUSALS: dict[Mode, tuple[Refusal, ...]] = {
    Mode.DAMP: (_NO_START, _NO_RAMP),
    Mode.LIMP: (_NO_START, _NO_RAMP),
    Mode.RAMP: (),
    Mode.HOLD: (_NO_START, _NO_RAMP, _NO_GO),
    Mode.POLICY: (),
}


def transition(before: Status, tier: Tier, wishes: Wishes, facts: Facts, limits: Limits) -> Status:
    """The status of this tick. Pure: nothing is read or changed but the arguments."""
    stopping = before.stopping or wishes.stop_request or wishes.damp_request
    ticks = before.ticks + 1 if stopping == before.stopping else 0
    now = _Now(before, tier, wishes, facts, limits, stopping, ticks)
    for rule in RULES[before.mode]:
        if rule.when(now):
            return _enter(now, rule)
    return _stay(now)


def _enter(now: _Now, rule: Rule) -> Status:
    """The first tick of a mode."""
    started = rule.mode is Mode.RAMP
    return Status(
        mode=rule.mode,
        ramped=rule.mode in (Mode.HOLD, Mode.POLICY) and (now.before.ramped or now.ramp_done),
        stopping=now.stopping,
        limp_asked=now.wishes.limp,
        session=now.before.session + started,
        rearm=started or rule.reason is Reason.REARMED,
        reason=now.stop_reason if rule.reason is None else rule.reason,
    )


def _stay(now: _Now) -> Status:
    """One more tick of the same mode."""
    before = now.before
    settling = before.settling + 1 if before.mode is Mode.POLICY and now.settling else 0
    resting = before.mode in (Mode.DAMP, Mode.LIMP)
    return before._replace(
        ticks=now.ticks,
        settling=settling,
        stopping=now.stopping,
        limp_asked=False,
        rearm=False,
        finished=now.stopping and resting and now.ticks >= now.limits.stop_damp,
        reason=now.stop_reason if settling == 1 else before.reason,
        refused=next((refusal.reason for refusal in REFUSALS[before.mode] if refusal.when(now)), None),
    )


class ModeMachine:
    """`transition` with its memory.

    Args:
        period_s: control period.
        times: limits in seconds, rounded up to whole ticks.
    """

    def __init__(self, period_s: float, times: ModeTimes) -> None:
        self._limits = Limits(*(to_ticks(seconds, period_s) for seconds in times))
        self.status = Status()

    @property
    def settling(self) -> bool:
        """The velocity command must be zero, and no new motion may begin."""
        return self.status.settling > 0 or self.status.stopping

    def step(self, tier: Tier, wishes: Wishes, facts: Facts) -> Mode:
        """Advance by one tick; the mode of this tick."""
        self.status = self.foresee(tier, wishes, facts)
        return self.status.mode

    def foresee(self, tier: Tier, wishes: Wishes, facts: Facts) -> Status:
        """The status that `step` would lead to; nothing changes."""
        return transition(self.status, tier, wishes, facts, self._limits)
