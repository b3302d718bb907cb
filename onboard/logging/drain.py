"""From the rings to the journal: every row that control handed over, with its true send time."""

from typing import Protocol

import numpy as np

from onboard.logging.frames import Header, Why
from onboard.logging.layout import NOT_PUBLISHED
from onboard.runtime.ports import SENT
from onboard.runtime.shm import Ring

PATIENCE_NS = 60_000_000
"""How long a row may wait in its ring for the gateway to publish its command."""

KEPT_NUMBERS = 4096


class Store(Protocol):
    """Where rows go: a `Journal`, or memory where a journal is beyond writing (`leftover.Rest`)."""

    header: Header
    last_seq: int

    def append(self, seq: int, record: np.ndarray) -> bool:
        """Take one record; False when it was lost, and counted."""

    def lose(self, first: int, last: int, why: Why) -> None:
        """Count records first..last as lost."""


class SentTimes:
    """First publication of each command, from the gateway's ring."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._next = max(1, ring.head - ring.slots + 1)
        self._entry = np.zeros((), SENT)
        self._known: dict[int, tuple[int, int]] = {}
        self.newest = 0

    def update(self) -> None:
        """Read what the gateway has sent since the last time."""
        head = self._ring.head
        self._next = max(self._next, head - self._ring.slots + 1)
        while self._next <= head:
            if self._ring.read(self._next, self._entry) and not self._entry["repeat"]:
                number = int(self._entry["number"])
                self._known.setdefault(number, (int(self._entry["send_ns"]), int(self._entry["state"])))
                self.newest = max(self.newest, number)
            self._next += 1
        while len(self._known) > KEPT_NUMBERS:
            del self._known[next(iter(self._known))]

    def of(self, number: int) -> tuple[int, int] | None:
        """When a command went out and in which state of the gateway; None when it has not (yet)."""
        return self._known.get(number)


class Drain:
    """Moves rows from control's ring into the journal, in order, none twice.

    A row waits in the ring, where a killed recorder's successor still finds it, until the gateway
    has published its command or some later one, at most 60 ms.

    Args:
        rows: control's ring.
        sent: the gateway's ring.
        journal: goes on behind the last record that it holds.
    """

    def __init__(self, rows: Ring, sent: Ring, journal: Store) -> None:
        self._ring = rows
        self._sent = SentTimes(sent)
        self._journal = journal
        self._row = np.zeros((), rows.dtype)
        self._joined = np.zeros((), journal.header.dtype)
        self._names = rows.dtype.names or ()

    @property
    def behind(self) -> int:
        """Rows that were handed over and are not in the journal yet."""
        return max(0, self._ring.head - self._journal.last_seq)

    def run(self, now_ns: int, *, final: bool = False) -> int:
        """Write every row that is ready; how many there were.

        Args:
            now_ns: CLOCK_MONOTONIC.
            final: nothing more will be published, so no row has to wait.
        """
        self._sent.update()
        before = self._journal.last_seq
        while (seq := self._journal.last_seq + 1) <= self._ring.head:
            if not self._ring.read(seq, self._row):
                self._skip_overwritten(seq)
            elif not self._write(seq, now_ns, final):
                break
        return self._journal.last_seq - before

    def _skip_overwritten(self, seq: int) -> None:
        """Count what the ring no longer holds; one slot more, since control may be writing into it."""
        oldest = self._ring.head - self._ring.slots + 2
        self._journal.lose(seq, max(seq, oldest - 1), Why.OVERWRITTEN)

    def _write(self, seq: int, now_ns: int, final: bool) -> bool:
        """Join and append one row; False when it should wait for its command's publication."""
        number = int(self._row["number"])
        sent = self._sent.of(number) if number else None
        may_come = number > self._sent.newest and now_ns - int(self._row["made_ns"]) < PATIENCE_NS
        if sent is None and may_come and not final:
            return False
        for name in self._names:
            self._joined[name] = self._row[name]
        self._joined["send_ns"], self._joined["gateway_state"] = sent or (NOT_PUBLISHED, NOT_PUBLISHED)
        self._journal.append(seq, self._joined)
        return True
