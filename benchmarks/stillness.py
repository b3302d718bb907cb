"""When the machine itself stood still: what a program of the highest priority on each core missed.

A virtual machine's host, or firmware, can take a core away from everybody. A thread that may have the core
whenever it likes and is late all the same tells so; a run that was stopped meanwhile was stopped rightly.
"""

import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PRIORITY = 98
PERIOD_S = 0.002
LEAST_MS = 4.0
"""Shorter ones are not worth a line."""
STOLEN_EVERY = 50
"""Moments between two looks at what the host took."""
JUST_NOW_NS = 3_000_000_000
"""Before a stop was seen; whoever follows a walk looks every second or two."""


class Stillness:
    """What the watchers of all cores write into a file; to be asked while they watch."""

    def __init__(self, file: Path, cores: int) -> None:
        self._file = file
        self._cores = cores

    @property
    def watched(self) -> bool:
        """Every watcher was granted SCHED_FIFO; without it there is none."""
        return sum(not gap for _, gap, _ in self._lines()) == self._cores

    def _lines(self) -> list[tuple[int, float, float]]:
        """When, CLOCK_MONOTONIC; how long, ms, 0 where a watcher began; how much of it the host took, ms."""
        words = (line.split() for line in self._file.read_text().splitlines())
        return [(int(ns), float(gap), float(stolen)) for ns, gap, stolen in words]

    def stolen_ms(self) -> float:
        """How much of the longest gap the host says that it took, ms; in steps of 10."""
        return max(self._lines(), key=lambda line: line[1], default=(0, 0.0, 0.0))[2]

    def gaps(self, since_ns: int = 0, until_ns: int = sys.maxsize) -> list[float]:
        """How long a core stood still each time, ms, between two instants of CLOCK_MONOTONIC."""
        return [gap for ns, gap, _ in self._lines() if gap and since_ns <= ns <= until_ns]

    def before(self, stopped_ns: int) -> str:
        """What to add to the end of a walk: whether a core had just stood still; "" where none had."""
        longest = max(self.gaps(stopped_ns - JUST_NOW_NS, stopped_ns), default=0.0)
        return f"; a core had just stood still for {longest:.0f} ms" if longest else ""

    def account(self) -> dict[str, float | int | bool]:
        """All of it in numbers."""
        gaps = self.gaps()
        return {
            "watched": self.watched,
            "longest_ms": max(gaps, default=0.0),
            "stolen_of_longest_ms": self.stolen_ms(),
            "over_10_ms": sum(gap > 10.0 for gap in gaps),
            "over_20_ms": sum(gap > 20.0 for gap in gaps),
        }


@contextlib.contextmanager
def watched_cores() -> Iterator[Stillness]:
    """Watch every core for the length of the context."""
    command = [sys.executable, "-m", "benchmarks.stillness"]
    with tempfile.NamedTemporaryFile() as out:
        cores = sorted(os.sched_getaffinity(0))
        watchers = [
            subprocess.Popen([*command, str(core)], stdout=out, stderr=subprocess.DEVNULL) for core in cores
        ]
        try:
            yield Stillness(Path(out.name), len(cores))
        finally:
            for watcher in watchers:
                watcher.kill()
                watcher.wait()


def in_words(account: Mapping[str, float | int | bool]) -> str:
    """An account in one line."""
    if not account["watched"]:
        return "whether the machine stood still is not known: SCHED_FIFO was refused"
    return (
        f"the machine itself stood still for more than 10 ms {account['over_10_ms']} times, more than 20 ms "
        f"{account['over_20_ms']} times, {account['longest_ms']:g} ms at the longest, of which the host took "
        f"{account['stolen_of_longest_ms']:g} ms"
    )


def stolen_ticks(core: int) -> int:
    """Time that the host took a core away, in hundredths of a second since the start; `/proc/stat`."""
    with open("/proc/stat", encoding="ascii") as stat:
        line = next(line for line in stat if line.startswith(f"cpu{core} "))
    return int(line.split()[8])


def watch(core: int) -> None:
    """Sleep for a moment again and again; a line for each that took much longer. Needs SCHED_FIFO."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    gc.disable()
    stolen, moments = stolen_ticks(core), 0
    before = time.monotonic_ns()
    os.write(1, f"{before} 0 0\n".encode())
    while True:
        time.sleep(PERIOD_S)
        now = time.monotonic_ns()
        late_ms = (now - before) / 1e6 - 1e3 * PERIOD_S
        moments += 1
        if late_ms > LEAST_MS or moments % STOLEN_EVERY == 0:
            stolen_before, stolen = stolen, stolen_ticks(core)
        if late_ms > LEAST_MS:
            os.write(1, f"{now} {late_ms:.1f} {10 * (stolen - stolen_before)}\n".encode())
        before = time.monotonic_ns()


if __name__ == "__main__":
    watch(int(sys.argv[1]))
