"""Lines for the operator from a process that must never wait for a terminal."""

import contextlib
import queue
import sys
import threading


class Teller:
    """Writes lines to standard error from a thread of its own; a full queue drops lines.

    A terminal or an SSH link that hangs then blocks this thread and nothing else.
    """

    def __init__(self, size: int = 256) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue(size)
        self._thread = threading.Thread(target=self._write, daemon=True, name="teller")
        self._thread.start()

    def __call__(self, line: str) -> None:
        """Queue one line."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(line)

    def close(self, timeout_s: float = 1.0) -> None:
        """Write what is queued, as far as the terminal takes it in time."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(timeout_s)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
