"""The control process with two faults built in, for `benchmarks.gateway` alone.

SIGUSR1: a Python loop that never ends. SIGUSR2: a native call that spins and keeps the interpreter's
lock for ever, so that no Python code of the process runs again.
"""

import collections
import itertools
import signal
import sys
from types import FrameType

from onboard.runtime import control
from onboard.runtime.children import child_main


def loop_for_ever(_number: int, _frame: FrameType | None) -> None:
    """Spin in Python."""
    while True:
        pass


def spin_natively(_number: int, _frame: FrameType | None) -> None:
    """Spin in C: a deque of length 0 swallows an iterator without end, and never lets go of the lock."""
    collections.deque(itertools.repeat(None), maxlen=0)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, loop_for_ever)
    signal.signal(signal.SIGUSR2, spin_natively)
    sys.exit(child_main(control.main))
