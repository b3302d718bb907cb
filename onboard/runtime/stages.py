"""How long each stage of a tick took."""

import time

import numpy as np

from onboard.logging.layout import STAGES

LONGEST_NS = 2**31 - 1
"""The record's field holds no more; a process that was stopped for longer says this."""


class Stages:
    """Durations of the stages of one tick, ns; `mark` ends the current stage."""

    __slots__ = ("_last", "_next", "durations", "started_ns")

    def __init__(self) -> None:
        self.durations = np.zeros(len(STAGES), np.int32)
        self._next = 0
        self._last = self.started_ns = 0

    def begin(self) -> None:
        """The tick begins."""
        self._next = 0
        self._last = self.started_ns = time.monotonic_ns()

    def mark(self) -> None:
        """The current stage ends, the next begins."""
        now = time.monotonic_ns()
        self.durations[self._next] = min(now - self._last, LONGEST_NS)
        self._next += 1
        self._last = now

    def mark_until(self, stage: str) -> None:
        """End the stages up to this one; those that did not take place last nothing."""
        while self._next <= STAGES.index(stage):
            self.mark()

    @property
    def tick_us(self) -> float:
        """From the start of the tick to the last mark."""
        return (self._last - self.started_ns) / 1000
