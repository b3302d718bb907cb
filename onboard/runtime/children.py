"""The processes of one run, as their parent sees them."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from onboard.configs.errors import OnboardError

GONE_S = 3.0
"""A killed process that is still there then waits inside the kernel, as for a disk that gives no answer."""


class Child:
    """One process in a session of its own, so that a terminal's signals reach the parent alone.

    Args:
        name: for messages.
        arguments: of `python`, module and options.
        pass_fds: descriptors that it inherits.
    """

    def __init__(self, name: str, arguments: Sequence[str], pass_fds: tuple[int, ...] = ()) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self._pidfd = os.pidfd_open(self._process.pid)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within the time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self, patience_s: float | None = None) -> None:
        """End it for certain, stopped or not, and wait until it is gone.

        Args:
            patience_s: wait no longer than this. From the signal on it runs no code of its own, but until
                the kernel has freed its locked memory, which can take 20 ms, it still counts as there.
        """
        if self._process.poll() is None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)

    def complaint(self) -> str:
        """Last line that it wrote to standard error, once it has ended; before that, that it still runs."""
        if self.exit_code is None:
            return "it still runs"
        stream = self._process.stderr
        lines = stream.read().decode(errors="replace").strip().splitlines() if stream else []
        return lines[-1] if lines else f"it ended with {describe_exit(self.exit_code)}"

    def close(self) -> None:
        """Kill it if it still runs and release the descriptors; what hangs in the kernel is left there."""
        self.kill(GONE_S)
        if self._process.stderr:
            self._process.stderr.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def describe_exit(code: int | None) -> str:
    """An exit code in words."""
    if code is None:
        return "no exit code, it still runs"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def child_main(body: Callable[[], int]) -> int:
    """Run a child's body; an error that it raises on purpose becomes its last line and its exit code."""
    try:
        return body()
    except OnboardError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
