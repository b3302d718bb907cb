"""A dry pass over the next tick, shortly before it begins.

Between two ticks the loop sleeps for most of 20 ms, and whatever else the machine does meanwhile takes
the caches: the same tick costs three to four times as much cold as it does hot. So its code, its
memory and its models are gone through once more just before the grid point.

Nothing that the loop will ever look at changes. What is a pure function is called and its result
dropped; what remembers has a double here, which remembers for itself.
"""

import time
from collections.abc import Callable

import numpy as np

from onboard.runtime.link import COMMAND
from onboard.runtime.loop import ControlLoop, Watch
from onboard.runtime.modes import Facts
from onboard.runtime.operator_input import Operator
from onboard.runtime.shm import Ring
from onboard.runtime.tick_recorder import TickRecorder

_RISE_NS, _FALL_NS = 19_000, 1_000
"""The lead rises by the one where the pass took longer, else falls by the other: it settles where 19 of
20 passes fit, however fast the machine is, and one that was held up hardly moves it."""
_MARGIN_NS = 100_000
_LONGEST_NS = 5_000_000


class Rehearsal:
    """Call it once a tick, `lead_ns` before the next one begins: as late as possible, but not too late.

    Args:
        loop: the one that is rehearsed.
        operator: a double of the loop's, on the same port.
        watch: a double of the loop's.
        decode: goes through the link's decoding of the newest sample again.

    Attributes:
        lead_ns: how long before the grid point to begin.
    """

    def __init__(
        self, loop: ControlLoop, operator: Operator, watch: Watch, decode: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._operator = operator
        self._watch = watch
        self._decode = decode
        self._facts = Facts()
        self._recorder = TickRecorder(loop.recorder.row.dtype)
        self._slot = scratch_ring(COMMAND)
        self._sink = scratch_ring(loop.recorder.row.dtype)
        self.lead_ns = 1_000_000

    def __call__(self) -> None:
        """Go through the stages of a tick in their order."""
        begun = time.monotonic_ns()
        self._pass()
        late = time.monotonic_ns() - begun + _MARGIN_NS > self.lead_ns
        self.lead_ns = min(self.lead_ns + _RISE_NS, _LONGEST_NS) if late else self.lead_ns - _FALL_NS

    def _pass(self) -> None:
        loop, pilot = self._loop, self._loop.pilot
        stages = self._recorder.begin(0, 0)
        self._decode()
        self._watch.look(loop.clock.now_ns(), 0, passing=True)
        loop.gate.warm(pilot.kp, pilot.kd)
        state = loop.gate.state
        asked = self._operator.read(state)
        loop.machine.foresee(loop.gate.tier, asked, self._facts)
        pilot.policy.warm()
        self._slot.push(loop.command)
        stages.mark_until("send")
        self._sink.push(self._recorder.fill(loop, loop.machine.status.mode, state, state, asked))


def scratch_ring(dtype: np.dtype) -> Ring:
    """A ring of one slot that nobody reads."""
    return Ring(memoryview(bytearray(Ring.size(dtype, 1))), dtype, 1)
