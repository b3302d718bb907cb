"""The control process with faults built in, each at a signal, for `benchmarks.gateway` and `tests.faults`.

SIGUSR1: a Python loop that never ends. SIGUSR2: a native call that spins and keeps the interpreter's
lock for ever, so that no Python code of the process runs again. `SLOW_POLICY`, `STUCK_POLICY` and
`SLOW_RESIDUAL`: every further call takes so much longer. `LEAK`: every further tick keeps memory, until the
process has no more of it.
"""

import collections
import itertools
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from onboard.policies.policy import Policy
from onboard.policies.residual.slot import ResidualSlot
from onboard.runtime import control
from onboard.runtime.children import child_main
from onboard.runtime.loop import ControlLoop

SLOW_POLICY, STUCK_POLICY, SLOW_RESIDUAL, LEAK = (signal.SIGRTMIN + number for number in range(1, 5))
SLOW_S = 0.025
"""More than a tick has, less than a target lasts."""
STUCK_S = 0.12
LEAK_BYTES = 64 << 20
ROOM_BYTES = 4 * LEAK_BYTES
"""Left to a leaking process."""
_kept: list[bytearray] = []


def loop_for_ever(_number: int, _frame: FrameType | None) -> None:
    """Spin in Python."""
    while True:
        pass


def spin_natively(_number: int, _frame: FrameType | None) -> None:
    """Spin in C: a deque of length 0 swallows an iterator without end, and never lets go of the lock."""
    collections.deque(itertools.repeat(None), maxlen=0)


def slow_down(owner: type, method: str, seconds: float) -> Callable[[int, FrameType | None], None]:
    """A handler after which a method takes so much longer."""
    original = getattr(owner, method)

    def slowed(*arguments: object) -> Any:  # noqa: ANN401 - whatever the method gives
        time.sleep(seconds)
        return original(*arguments)

    return lambda *_: setattr(owner, method, slowed)


def leak(_number: int, _frame: FrameType | None) -> None:
    """Keep more memory with every tick; a limit ends that soon."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, used + ROOM_BYTES))
    report = control.StatusWriter.__call__

    def leaking(self: control.StatusWriter, loop: ControlLoop) -> None:
        _kept.append(bytearray(LEAK_BYTES))
        report(self, loop)

    control.StatusWriter.__call__ = leaking  # type: ignore[method-assign]  # the fault itself


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, loop_for_ever)
    signal.signal(signal.SIGUSR2, spin_natively)
    signal.signal(SLOW_POLICY, slow_down(Policy, "infer", SLOW_S))
    signal.signal(STUCK_POLICY, slow_down(Policy, "infer", STUCK_S))
    signal.signal(SLOW_RESIDUAL, slow_down(ResidualSlot, "combine", SLOW_S))
    signal.signal(LEAK, leak)
    sys.exit(child_main(control.main))
