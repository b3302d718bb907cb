"""The gate: once a tick it says which tier the state asks for, and limits what is sent.

`judge` is the whole decision as a pure function of the inputs, the resolved table and its own
memory; `Gate` keeps the memory, the last good state and the last sent target.

An event fires when its condition has held for its debounce. Conditions on the sample count only ticks
that brought a newer robot tick: a lost or repeated sample neither counts nor forgives. The highest
tier asked for wins. Events above warn latch until the operator re-arms (`Gate.rearm`).

```python
gate = Gate(config, robot, period_s)
tier = gate.check_state(link.latest(), now_ns, raised, machine.status.mode)
state = gate.state                      # the sample, or the last good one where it is unusable
gate.report(bits(Event.EMERGENCY_STOP))                     # what is seen later in the tick
sent = gate.limit(target, state, kp, kd, action=base)       # target None: the policy raised
gate.events, gate.tier, gate.flag, gate.limit_mask          # for the record, after `limit`
```
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.events import Event, Mode, Tier, bits
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.configs.safety import SafetyConfig
from onboard.runtime.link import Float32Array, State
from onboard.safety.conditions import JOINT_EVENTS, Look, Rules, look_at, make_rules, remote_silent
from onboard.safety.debounce import NO_JOINT_TICKS, JointTicks, Ticks, count_joints, debounce, drop
from onboard.safety.events import (
    ATTITUDE,
    DAMPED_IS_NORMAL,
    FALLS,
    FROM_STATE,
    POLICY,
    SAMPLE_FAULTS,
    next_flag,
)
from onboard.safety.limits import Bounds, Cut, Limited, Tally, limit_target, make_bounds, resend, usable

_JOINTS = bits(*JOINT_EVENTS)
_WAY = ~(FROM_STATE | POLICY)
_NOT_BLOCKING = bits(Event.GATEWAY_LATCHED)
"""The gateway leaves its latch only after the re-arming that this would block."""


class Inputs(NamedTuple):
    """All that one judgement looks at."""

    state: State
    now_ns: int
    raised: int
    """Mask of conditions seen elsewhere in this tick."""
    mode: Mode
    airborne: bool
    """A foot is known to be off the ground; unknown or stale contact is not."""
    sent: Float32Array | None
    """Target in force, (29,) rad."""
    settle_is_hold: bool
    """A bench run."""


class Notes(NamedTuple):
    """Plain facts of the run so far; they outlive a re-arming."""

    tick: int | None = None
    """Newest robot tick accepted."""
    mode_machine: int | None = None
    """Of the first sample."""
    crc_errors: int | None = None
    crc_history: int = 0
    """One bit a tick, the newest lowest: a checksum was bad."""
    overrun_history: int = 0
    remote_heard: bool = False


class Memory(NamedTuple):
    """What the gate remembers from tick to tick."""

    notes: Notes = Notes()
    usable: bool = False
    """The newest sample is fit for use."""
    counts: Ticks = ()
    """(event, ticks) of conditions that hold, joint events excluded."""
    joint_ticks: JointTicks = NO_JOINT_TICKS
    joint: int | None = None
    """A joint of the most severe joint event that fires."""
    active: int = 0
    """Conditions that hold, before debounce."""
    fired: int = 0
    """Events after debounce."""
    latched: int = 0
    cause: int = 0
    """The events that raised the latched tier last."""
    flag: int = 0
    calm_ticks: int = 0


class Decision(NamedTuple):
    """What the gate says about one tick."""

    tier: Tier
    events: int
    clear: bool
    """No condition above warn holds, debounced or not: re-arming is possible."""
    standing: bool


def judge(inputs: Inputs, rules: Rules, before: Memory) -> tuple[Decision, Memory]:
    """One tick's decision. Pure: nothing is read or changed but the arguments."""
    state = inputs.state
    advanced = state.received and _is_newer(state.robot_tick, before.notes.tick)
    notes = _note(inputs, rules, before.notes, advanced)
    noted = before._replace(notes=notes)
    if advanced:
        look = look_at(state, inputs.sent, inputs.mode is Mode.RAMP, rules)
        scope, active, fired, noted = _judge_sample(look, inputs, rules, noted)
    else:
        # One that came late shows the past: it is not used, as little as one that never came.
        noted = noted._replace(usable=before.usable and not state.new)
        scope, active, fired = 0, before.active & FROM_STATE, before.fired & FROM_STATE
    active |= inputs.raised & ~POLICY | _way_conditions(inputs, rules, notes, advanced)
    debounced, counts = debounce(active, scope | _WAY, before.counts, rules)
    after = conclude(fired | debounced, inputs.mode, rules, noted._replace(active=active, counts=counts))
    decision = Decision(
        tier=asked_tier(after, rules, inputs.mode, inputs.settle_is_hold),
        events=after.fired,
        clear=not active & rules.stopping & ~_NOT_BLOCKING,
        standing=after.calm_ticks >= rules.standing.ticks and not inputs.airborne,
    )
    return decision, after


def _is_newer(tick: int, than: int | None) -> bool:
    """True when `tick` lies ahead on the wrapping 32-bit counter, or is the first."""
    return than is None or 0 < (tick - than) & 0xFFFFFFFF < 1 << 31


def _note(inputs: Inputs, rules: Rules, before: Notes, advanced: bool) -> Notes:
    """Carry on the plain facts."""
    state = inputs.state
    crc_bad = before.crc_errors is not None and state.crc_errors > before.crc_errors
    overrun = inputs.raised >> Event.OVERRUN & 1
    return Notes(
        tick=state.robot_tick if advanced else before.tick,
        mode_machine=state.mode_machine if before.tick is None and advanced else before.mode_machine,
        crc_errors=state.crc_errors,
        crc_history=(before.crc_history << 1 | crc_bad) & (1 << rules.crc_window) - 1,
        overrun_history=(before.overrun_history << 1 | overrun) & (1 << rules.overrun_window) - 1,
        remote_heard=before.remote_heard or not remote_silent(state),
    )


def _way_conditions(inputs: Inputs, rules: Rules, notes: Notes, advanced: bool) -> int:
    """Conditions of the state's way here and of timing: they count every control tick."""
    state = inputs.state
    # The link's own age, or the time since it took the sample, should the link itself hang.
    age_s = max(state.age_s, (inputs.now_ns - state.recv_ns) * 1e-9)
    known = state.received
    return (
        (not (known and age_s <= rules.old_s)) << Event.STATE_OLD
        | (not (known and age_s <= rules.stale_s)) << Event.STATE_STALE
        | (notes.crc_history & 1) << Event.CRC_BAD
        | (notes.crc_history.bit_count() > rules.crc_count) << Event.CRC_RATE
        | (notes.overrun_history.bit_count() > rules.overrun_count) << Event.OVERRUN_REPEATED
        | (known and state.new and not advanced) << Event.TICK_NOT_ADVANCING
    )


def _judge_sample(look: Look, inputs: Inputs, rules: Rules, noted: Memory) -> tuple[int, int, int, Memory]:
    """What a new sample decides.

    Returns:
        events left to the debounce, conditions that hold, events that are already decided, and the
        memory moved on. An unusable sample leaves everything but its own fault as it was.
    """
    if look.hits is None:
        kept = FROM_STATE & ~SAMPLE_FAULTS
        active = look.faults | noted.active & kept
        return SAMPLE_FAULTS, active, noted.fired & kept, noted._replace(usable=False)
    state = inputs.state
    counts, active, fired, joint = count_joints(look.hits, noted.joint_ticks, rules)
    active |= (
        look.active
        | (state.mode_machine != noted.notes.mode_machine) << Event.MODE_MACHINE_CHANGED
        | (noted.notes.remote_heard and remote_silent(state)) << Event.REMOTE_LOST
    )
    noted = noted._replace(
        joint_ticks=counts, joint=joint, calm_ticks=noted.calm_ticks + 1 if look.calm else 0, usable=True
    )
    return FROM_STATE & ~_JOINTS, active, fired, noted


def conclude(fired: int, mode: Mode, rules: Rules, memory: Memory) -> Memory:
    """Latch what fires, find the cause and the record's flag."""
    if mode in (Mode.DAMP, Mode.LIMP):
        fired &= ~(DAMPED_IS_NORMAL & ~FALLS if memory.latched & ATTITUDE else DAMPED_IS_NORMAL)
    latched = memory.latched | fired & rules.latching
    tier = rules.highest(latched)
    risen = tier > rules.highest(memory.latched)
    return memory._replace(
        fired=fired,
        latched=latched,
        cause=latched & ~memory.latched if risen else memory.cause,
        flag=next_flag(memory.flag, fired, latched, tier),
    )


def asked_tier(memory: Memory, rules: Rules, mode: Mode, settle_is_hold: bool) -> Tier:
    """The highest tier that fires or is latched; where no policy balances, settle means hold."""
    tier = rules.highest(memory.fired | memory.latched)
    if tier is Tier.SETTLE and (settle_is_hold or mode in (Mode.RAMP, Mode.HOLD)):
        return Tier.HOLD
    return tier


class Tables(NamedTuple):
    """A safety table resolved for one robot and period."""

    rules: Rules
    bounds: Bounds


def make_tables(config: SafetyConfig, robot: RobotConfig, period_s: float) -> Tables:
    """Resolve a safety table."""
    return Tables(make_rules(config, robot, period_s), make_bounds(config.limits, robot, period_s))


class Gate:
    """Judges the state and limits the target, once a tick each.

    Args:
        config: the table, with the policy's overrides.
        robot: ranges, efforts, speeds, valid slots.
        period_s: control period.
        settle_is_hold: a bench run: no policy balances that could settle.

    Attributes:
        state: the sample to act on, or the last good one while the newest is unusable.
        tier: what is asked for; final for this tick after `limit`.
        events: mask of the events that fire; the same.
        clear: no condition above warn holds, so the operator may re-arm.
        standing: the robot stands quasi-statically.
    """

    def __init__(
        self, config: SafetyConfig, robot: RobotConfig, period_s: float, *, settle_is_hold: bool = False
    ) -> None:
        self._rules, self._bounds = make_tables(config, robot, period_s)
        self._settle_is_hold = settle_is_hold
        self._memory = Memory()
        self._mode = Mode.DAMP
        self._limited = Limited()
        self._tally = Tally()
        self._previous: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._in_force = False  # `limit` was called in the tick before
        self._limit_called = False
        self._good = State()
        self.state = self._good
        self.tier = Tier.NONE
        self.events = 0
        self.clear = False
        self.standing = False

    @property
    def latched(self) -> int:
        """Mask of the events that wait for the operator."""
        return self._memory.latched

    @property
    def cause(self) -> int:
        """Mask of the events that raised the latched tier last: the reason of a stop."""
        return self._memory.cause

    @property
    def flag(self) -> int:
        """`safety_flag` of the record, see `events.Flag`."""
        return self._memory.flag

    @property
    def joint(self) -> int | None:
        """A joint of the most severe joint event that fires."""
        return self._memory.joint

    @property
    def resent(self) -> bool:
        """The last `limit` found its target unusable and sent the previous one again."""
        return bool((self._limited.mask & Cut.RESENT).any())

    @property
    def limit_mask(self) -> NDArray[np.uint8]:
        """(29,) `limits.Cut` bits of the last `limit`."""
        return self._limited.mask

    def check_state(
        self,
        state: State,
        now_ns: int,
        raised: int,
        mode: Mode,
        airborne: bool = False,
    ) -> Tier:
        """Judge one tick.

        Args:
            state: the link's newest sample.
            now_ns: CLOCK_MONOTONIC, the clock of `state.recv_ns`.
            raised: mask of conditions seen elsewhere, debounced and tiered like all others.
            mode: what the loop has been doing until now.
            airborne: a foot is known to be off the ground; unknown or stale contact is not.

        Returns:
            The tier asked for, the same as `tier`.
        """
        self._in_force, self._limit_called = self._limit_called, False
        memory = self._memory
        if not self._in_force:
            memory = memory._replace(counts=drop(POLICY, memory.counts))
        sent = self._limited.sent if self._in_force else None
        inputs = Inputs(state, now_ns, raised, mode, airborne, sent, self._settle_is_hold)
        decision, self._memory = judge(inputs, self._rules, memory)
        self._mode = mode
        self.tier, self.events, self.clear, self.standing = decision
        self._keep(state)
        return self.tier

    def report(self, events: int) -> Tier:
        """Add events seen after `check_state` in the same tick; they count at once, without debounce."""
        self._add(events)
        self.clear = self.clear and not events & self._rules.stopping
        return self.tier

    def limit(
        self,
        target: Float32Array | None,
        state: State,
        kp: Float32Array,
        kd: Float32Array,
        action: Float32Array | None = None,
    ) -> Float32Array:
        """What to send instead of `target`; `events`, `tier` and `limit_mask` then tell what was wrong.

        The first tick after one without a target starts from the measured pose.

        Args:
            target: (29,) rad; None where the policy raised or gave the wrong shape.
            state: the state that the target was made from.
            kp: (29,) N·m/rad, as they will be sent.
            kd: (29,) N·m·s/rad, as they will be sent.
            action: the policy's raw output, checked too where given.

        Returns:
            (29,) rad, finite and inside the physical range; overwritten by the next call.
        """
        bounds, limited = self._bounds, self._limited
        if self._in_force:
            self._previous[:] = limited.sent
        else:
            np.clip(self.state.q, bounds.lower, bounds.upper, out=self._previous)
        self._limit_called = True
        good = target is not None and usable(target, N_JOINTS, bounds.absurd_target_rad)
        if good and action is not None:
            good = usable(action, action.size, bounds.absurd_action)
        fired, counts = debounce(0 if good else POLICY, POLICY, self._memory.counts, self._rules)
        self._memory = self._memory._replace(counts=counts)
        self._add(fired)
        if target is None or not good:
            resend(self._previous, limited)
        else:
            limit_target(target, state.q, state.dq, kp, kd, self._previous, bounds, limited)
        self._tally.add(target, limited)
        return limited.sent

    def use(self, tables: Tables) -> None:
        """Judge by another table from now on, as when another policy takes over; nothing is forgotten."""
        self._rules, self._bounds = tables

    def limited(self) -> dict[str, float]:
        """Ticks limited so far, the share of them that each limit touched, the largest cut in rad."""
        return self._tally.summary()

    def rearm(self) -> None:
        """Forget what was latched; the operator has asked for it and `clear` was true."""
        self._memory = Memory(self._memory.notes, self._memory.usable)
        self.tier, self.events = Tier.NONE, 0

    def _add(self, fired: int) -> None:
        """Let events join those of this tick's state."""
        memory = self._memory
        if not fired & ~memory.fired:
            return
        self._memory = conclude(memory.fired | fired, self._mode, self._rules, memory)
        self.events = self._memory.fired
        self.tier = asked_tier(self._memory, self._rules, self._mode, self._settle_is_hold)

    def _keep(self, state: State) -> None:
        """Remember a good sample; hand out the last good one while the newest is unusable."""
        if not self._memory.usable:
            self.state = self._good
            return
        self.state = state
        self._good.assign(state)
