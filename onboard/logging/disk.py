"""The recorder's way to the disk: a thread of its own, so that a disk that hangs holds up nothing else.

Rows wait in control's ring meanwhile (30 s of them), samples of the full-rate stream here. What does
not fit is lost, counted, and told in the file.
"""

import contextlib
import shutil
import threading
import time
from collections import deque

import numpy as np

from onboard.logging.drain import Drain
from onboard.logging.frames import Why
from onboard.logging.journal import Journal

PERIOD_S = 0.02
FREE_PERIOD_S = 1.0
MOST_SAMPLES = 15_000
"""Of the full-rate stream that may wait: 30 s, as many as the ring holds of rows."""


class Backlog:
    """Samples of the full-rate stream on their way to their journal.

    Args:
        journal: of `lowstate_dtype`; goes on behind the last sample that it holds.
        most: samples that may wait; what comes on top is lost and counted.
    """

    def __init__(self, journal: Journal, most: int = MOST_SAMPLES) -> None:
        self.journal = journal
        self._most = most
        self._waiting: deque[tuple[int, np.ndarray]] = deque()
        self._seq = journal.last_seq

    def keep(self, row: np.ndarray) -> None:
        """Take a copy of one sample. Never blocks."""
        self._seq += 1
        if len(self._waiting) < self._most:
            self._waiting.append((self._seq, row.copy()))

    def write(self) -> None:
        """Write everything that waits."""
        while self._waiting:
            seq, row = self._waiting.popleft()
            if seq > self.journal.last_seq + 1:
                self.journal.lose(self.journal.last_seq + 1, seq - 1, Why.OVERWRITTEN)
            self.journal.append(seq, row)


class Disk(threading.Thread):
    """Writes what there is every 20 ms, until it is stopped.

    Args:
        drain: of the rows.
        journal: of the rows.
        backlog: of the full-rate stream, or None.

    Attributes:
        free_bytes: room on the disk, at most a second old.
        error: what ended the thread before its time.
    """

    def __init__(self, drain: Drain, journal: Journal, backlog: Backlog | None) -> None:
        super().__init__(name="disk", daemon=True)
        self._drain = drain
        self._folder = journal.path.parent
        self._backlog = backlog
        self._asked = threading.Event()
        self.free_bytes = 0
        self.error: BaseException | None = None
        self._measure()  # the first report must not say that nothing is free

    def run(self) -> None:
        """Body of the thread."""
        try:
            while not self._asked.wait(PERIOD_S):
                self.write()
        except BaseException as error:  # handed to the main thread, which ends the process with it
            self.error = error

    def write(self, *, final: bool = False) -> None:
        """Write what there is. `final`: nothing more will be published, so no row has to wait."""
        self._drain.run(time.monotonic_ns(), final=final)
        if self._backlog is not None:
            self._backlog.write()
        if time.monotonic() - self._measured_s > FREE_PERIOD_S:
            self._measure()

    def _measure(self) -> None:
        self._measured_s = time.monotonic()
        with contextlib.suppress(OSError):
            self.free_bytes = shutil.disk_usage(self._folder).free

    def finish(self) -> None:
        """Stop the thread, however long the disk takes, and write the last rows.

        Raises:
            BaseException: what had ended the thread.
        """
        self._asked.set()
        self.join()
        if self.error is not None:
            raise self.error
        self.write(final=True)
