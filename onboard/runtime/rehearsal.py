"""A dry pass over the next tick, shortly before it begins.

Between two ticks the loop sleeps for most of 20 ms, and whatever else the machine does meanwhile takes
the caches: the same tick costs three to four times as much cold as it does hot. So its code, its
memory and its models are gone through once more just before the grid point.

Nothing that the loop will ever look at changes. What is a pure function is called and its result
dropped; what remembers has a double here, which remembers for itself.
"""

from collections.abc import Callable

import numpy as np

from onboard.runtime.assembly import Plan
from onboard.runtime.clock import GridClock
from onboard.runtime.link import COMMAND
from onboard.runtime.loop import ControlLoop, Watch
from onboard.runtime.modes import Facts
from onboard.runtime.operator_input import Operator, Port
from onboard.runtime.shm import Ring
from onboard.runtime.tick_recorder import TickRecorder
from onboard.safety.gate import Gate


class LastMoment:
    """Does some work once a tick so that it ends at the next grid point.

    What the work brings into the caches is lost again within a fraction of a millisecond of sleep, so
    it has to end right before the tick. How long it takes depends on the machine, so the lead is
    learned: it rises by a step where the work ended late and falls by one where it was early. It
    settles at the median; a tick is then late by the half of the jitter that lies above it, tens of
    microseconds. One pass that was held up moves the lead by one step.

    Args:
        clock: the loop's.
        work: called with nothing.

    Attributes:
        lead_ns: how long before the grid point the work begins.
    """

    STEP_NS = 5_000
    LONGEST_NS = 5_000_000

    def __init__(self, clock: GridClock, work: Callable[[], None]) -> None:
        self._clock = clock
        self._work = work
        self.lead_ns = 500_000

    def __call__(self) -> None:
        """Wait for the moment, then work."""
        self._clock.doze(self.lead_ns)
        self._work()
        step = -self.STEP_NS if self._clock.left_ns() > 0 else self.STEP_NS
        self.lead_ns = min(max(self.lead_ns + step, 0), self.LONGEST_NS)


class Rehearsal:
    """The dry pass; call it shortly before a tick.

    Args:
        loop: the one that is rehearsed.
        plan: that it was built from.
        port: the operator's.
        watch: a double of the loop's.
        decode: goes through the link's decoding of the newest sample again.
    """

    def __init__(
        self, loop: ControlLoop, plan: Plan, port: Port, watch: Watch, decode: Callable[[], None]
    ) -> None:
        period_s = plan.config.period_ns / 1e9
        self._loop = loop
        self._gate = Gate(plan.safety, plan.robot, period_s)
        self._operator = Operator(port, plan.config.sticks, plan.command_ranges(), period_s)
        self._watch = watch
        self._decode = decode
        self._facts = Facts()
        self._recorder = TickRecorder(loop.recorder.row.dtype)
        self._slot = scratch_ring(COMMAND)
        self._sink = scratch_ring(loop.recorder.row.dtype)

    def __call__(self) -> None:
        """Go through the stages of a tick in their order."""
        loop, pilot, gate = self._loop, self._loop.pilot, self._gate
        state, mode, now_ns = loop.gate.state, loop.machine.status.mode, loop.clock.now_ns()
        stages = self._recorder.begin(0, 0)
        pilot.policy.warm()  # first: the weights displace what came before them
        pilot.slot.warm()
        self._decode()
        self._watch.look(now_ns, 0, passing=True)
        gate.check_state(state, now_ns, 0, mode, loop.provision.airborne)
        asked = self._operator.read(state)
        loop.machine.foresee(loop.gate.tier, asked, self._facts)
        gate.limit(pilot.target, state, pilot.kp, pilot.kd, action=pilot.base)
        self._slot.push(loop.command)
        stages.mark_until("send")
        self._sink.push(self._recorder.fill(loop, mode, state, state, asked))


def scratch_ring(dtype: np.dtype) -> Ring:
    """A ring of one slot that nobody reads."""
    return Ring(memoryview(bytearray(Ring.size(dtype, 1))), dtype, 1)
