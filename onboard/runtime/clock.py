"""Time: CLOCK_MONOTONIC for everything, and the absolute grid that paces the control loop.

A grid point is `origin + n * period`. Waiting for the next *grid point*, never for "now plus a
period", keeps 50.000 Hz: an oversleep is not carried on. After an overrun the grid stays where it
was; the periods that were missed are skipped and counted, and there is no burst to catch up.
"""

import time
from typing import Protocol

SECOND_NS = 1_000_000_000
TOO_SHORT_TO_SLEEP_NS = 150_000
"""A shorter wait is spun: waking up takes as long (50 µs of timer slack alone) and finds cold caches."""


class Clock(Protocol):
    """Paces a loop. `late_ns` is how long after the grid point the last `wait` returned."""

    period_ns: int
    late_ns: int

    def now_ns(self) -> int:
        """Time on this clock's axis, ns."""

    def start(self) -> None:
        """Put the grid's origin here."""

    def wait(self) -> int:
        """Sleep to the next grid point; the number of whole periods that had already passed."""


class GridClock:
    """The real-time clock of a loop.

    Args:
        period_ns: the grid's period.
        spin_ns: busy-wait this long before each point instead of sleeping, for a sharper wake-up;
            at most a tenth of the period, since a SCHED_FIFO process that never sleeps is throttled.
    """

    def __init__(self, period_ns: int, spin_ns: int = 0) -> None:
        self.period_ns = period_ns
        self.late_ns = 0
        self._spin_ns = min(spin_ns, period_ns // 10)
        self._next_ns = 0

    def now_ns(self) -> int:
        """CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    def start(self) -> None:
        """Put the grid's origin here; the first `wait` ends one period later."""
        self._next_ns = time.monotonic_ns() + self.period_ns

    def doze(self, lead_ns: int) -> None:
        """Sleep until `lead_ns` before the next grid point; not at all when that is past."""
        left = self.left_ns() - lead_ns
        if left > 0:
            time.sleep(left / SECOND_NS)

    def left_ns(self) -> int:
        """Time to the next grid point; negative when it is past."""
        return self._next_ns - time.monotonic_ns()

    def wait(self) -> int:
        """Sleep to the next grid point; the number of whole periods that had already passed."""
        left = self.left_ns()
        skipped = 0
        if left <= -self.period_ns:
            skipped = -left // self.period_ns
            self._next_ns += skipped * self.period_ns
            left = self.left_ns()
        if left > max(self._spin_ns, TOO_SHORT_TO_SLEEP_NS):
            time.sleep((left - self._spin_ns) / SECOND_NS)
        now = time.monotonic_ns()
        while now < self._next_ns:
            now = time.monotonic_ns()
        self.late_ns = now - self._next_ns
        self._next_ns += self.period_ns
        return skipped


def wall_clock_ns() -> int:
    """CLOCK_REALTIME, for naming files and for comparing with DDS source stamps; never for pacing."""
    return time.time_ns()
