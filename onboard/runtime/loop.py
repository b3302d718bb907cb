"""The control loop: what happens in the 20 ms between one state and one command.

    every tick
      wait        for the next point of the absolute grid; missed periods are skipped and counted
      state       newest sample of the link, its age and checksum verdict
      gate        conditions on the state, debounced, become one tier
      operator    remote, keys and script become wishes
      machine     tier and wishes become one mode
      pilot       the mode becomes a target (in mode policy: observe, infer, residual, target)
      limit       the gate cuts the target to what the robot can take
      send        the sent target goes into the gateway's slot
      record      the policy's histories advance; the whole tick goes into the record ring

A worked example. The grid lies at 0, 20, 40, ... ms. The tick of 20 ms takes 45 ms because the
machine stalls; it ends at 65 ms. The point 40 was missed; that of 60 follows at once, 5 ms late, and
its record says `skipped_ticks` 1 more than before; the next begins at 80 ms again. Phase and
reference advance by two periods at once, so the policy's clock never drifts from the wall, and no
command is repeated in a burst. The event OVERRUN rises; a target that expires in the gateway
meanwhile damps there.

The loop prints nothing, opens nothing, allocates nothing that stays, and waits for nobody but the
clock. Inside a tick nothing raises: what a policy throws becomes a target of NaN, which the gate
answers by sending the previous target once more, and by damping at the second time in a row.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from onboard.configs.events import Event, Mode, Tier, bits
from onboard.configs.robot import N_JOINTS
from onboard.policies.estimators.provider import Provision
from onboard.runtime.clock import Clock
from onboard.runtime.link import COMMAND, Float32Array, Kind, Link, State
from onboard.runtime.modes import Facts, ModeMachine
from onboard.runtime.operator_input import Operator, OperatorInput, Ranges
from onboard.runtime.pilot import Pilot
from onboard.runtime.tick_recorder import TickRecorder
from onboard.safety.gate import Gate, Tables


class Watch(Protocol):
    """Looks at the other processes once a tick."""

    def look(self, now_ns: int, session: int, passing: bool) -> int:
        """Mask of the conditions seen: gateway, recorder, parent, terminal."""


class Sink(Protocol):
    """Takes the record of a tick, e.g. a shared-memory ring."""

    def push(self, record: np.ndarray) -> int:
        """Copy the record in."""


class ControlLoop:
    """One run of one policy on one link.

    Attributes:
        command: the newest command handed over, 0-d `COMMAND`.
        sent: (29,) rad, the newest sent target.
        finished: the stop sequence is complete.
    """

    def __init__(
        self,
        *,
        link: Link,
        clock: Clock,
        gate: Gate,
        tables: Sequence[Tables],
        ranges: Sequence[Ranges],
        operator: Operator,
        machine: ModeMachine,
        pilot: Pilot,
        watch: Watch,
        sink: Sink,
        recorder: TickRecorder,
        provision: Provision,
        gantry: bool,
    ) -> None:
        self.link = link
        self.clock = clock
        self.gate = gate
        self.operator = operator
        self.machine = machine
        self.pilot = pilot
        self.watch = watch
        self.sink = sink
        self.recorder = recorder
        self.provision = provision
        self.finished = False
        self.command = np.zeros((), COMMAND)
        self.sent: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._facts = Facts(gantry=gantry)
        self._tables = tables
        self._ranges = ranges
        self._table = self._range = 0

    def run(self, after_tick: Callable[["ControlLoop"], None]) -> None:
        """Tick until the stop sequence is complete; `after_tick` is called with the loop."""
        self.clock.start()
        while not self.finished:
            self.tick(self.clock.wait())
            after_tick(self)

    def tick(self, skipped: int = 0) -> None:
        """One period. `skipped`: grid periods missed since the last one."""
        stages = self.recorder.begin(skipped, self.clock.late_ns)
        newest = self.link.latest()
        stages.mark()
        now_ns = self.clock.now_ns()
        self.provision.look(now_ns)
        raised = self._conditions(now_ns, skipped)
        self.gate.check_state(newest, now_ns, raised, self.machine.status.mode, self.provision.airborne)
        state = self.gate.state
        stages.mark()
        asked = self.operator.read(newest)
        mode = self._decide(asked)
        stages.mark()
        self.pilot.fly(mode, state, asked, self.sent, 1 + skipped, stages)
        self._follow_switch()
        mode = self._limit(mode, state, asked)
        stages.mark()
        self._send(mode, state)
        stages.mark()
        self._commit(mode)
        self.sink.push(self.recorder.fill(self, mode, newest, state, asked))

    def _conditions(self, now_ns: int, skipped: int) -> int:
        """What was seen outside the state: other processes, overruns, old estimates, a motion's end."""
        passing = int(self.command["kind"]) == Kind.PASS
        raised = self.watch.look(now_ns, self.machine.status.session, passing)
        if skipped:
            raised |= bits(Event.OVERRUN)
        if self.machine.status.mode is Mode.POLICY:
            if self.pilot.repertoire.motion_over:
                raised |= bits(Event.MOTION_FINISHED)
            if self.provision.old(self.pilot.repertoire.index):
                raised |= bits(Event.PROVIDER_OLD)
        if self.pilot.slot.dropped:
            raised |= bits(Event.RESIDUAL_DROPPED)
        return raised

    def _decide(self, asked: OperatorInput) -> Mode:
        """Tier and wishes become one mode."""
        if asked.damp:
            self.gate.report(bits(Event.EMERGENCY_STOP))
        if asked.stop:
            self.gate.report(bits(Event.OPERATOR_STOP))
        if self.gate.events & _ORPHANED:
            asked.stop_request = True  # nobody is left who would ask for the end
        facts = self._facts
        facts.ramp_done, facts.standing, facts.clear = (
            self.pilot.ramp_done,
            self.gate.standing,
            self.gate.clear,
        )
        mode = self.machine.step(self.gate.tier, asked, facts)
        if self.machine.status.rearm:
            self.gate.rearm()
        if self.machine.settling:
            asked.velocity[:] = 0.0
        self.finished = self.machine.status.finished
        return mode

    def _follow_switch(self) -> None:
        """Ranges and thresholds of the policy in charge; a motion's own until the blend after it is over."""
        index = self.pilot.repertoire.index
        if index != self._range:
            self._range = index
            self.operator.set_ranges(self._ranges[index])
        leaving_motion = self.pilot.fading and self.pilot.repertoire.policies[self._table].has_motion
        if index != self._table and not leaving_motion:
            self._table = index
            self.gate.use(self._tables[index])

    def _limit(self, mode: Mode, state: State, asked: OperatorInput) -> Mode:
        """Cut the target; a target that may not be sent at all ends in damping, in this very tick."""
        pilot = self.pilot
        if mode in _TRACKING:
            target = None if pilot.failure else pilot.target
            self.sent[:] = self.gate.limit(target, state, pilot.kp, pilot.kd, action=pilot.base)
            if self.gate.tier < Tier.DAMP:
                return mode
            pilot.fly(Mode.DAMP, state, asked, self.sent, 1)
        self.sent[:] = state.q
        return mode if mode in _RESTING else Mode.DAMP

    def _send(self, mode: Mode, state: State) -> None:
        """Hand the command over: what the gateway shall do, for which state, with which gains."""
        command = self.command
        kind = Kind.PASS if mode in _TRACKING else Kind.DAMP
        command["kind"] = Kind.STOP if self.finished else kind
        command["number"] += 1
        command["session"] = self.machine.status.session
        command["mode_machine"], command["state_tick"] = state.mode_machine, state.robot_tick
        command["q"], command["kp"], command["kd"] = self.sent, self.pilot.kp, self.pilot.kd
        command["made_ns"] = self.clock.now_ns()
        self.link.send(command)

    def _commit(self, mode: Mode) -> None:
        """The policy's histories advance if its output was sent; nothing before that waits for them."""
        if mode in _TRACKING and not self.gate.resent:
            self.pilot.commit()


_ORPHANED = bits(Event.PARENT_LOST)
_TRACKING = frozenset({Mode.RAMP, Mode.HOLD, Mode.POLICY})
_RESTING = frozenset({Mode.DAMP, Mode.LIMP})
"""What the gateway is asked for in these: to damp. A damp that control decides latches there too."""
