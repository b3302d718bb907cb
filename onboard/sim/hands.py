"""The operator's hands on a simulated robot: lines on standard input, or single keys of a terminal.

Both are read on demand without blocking; what they give are lines of `console`.
"""

import contextlib
import os
import select
import sys
import termios
import tty
from typing import Any

from onboard.configs.errors import LinkError

KEYS = {
    "1": "press start",
    "2": "press go",
    "x": "press stop",
    " ": "press damp",
    "m": "press mark",
    "L": "press limp",
    "w": "nudge ly 0.1",
    "s": "nudge ly -0.1",
    "a": "nudge lx -0.1",
    "d": "nudge lx 0.1",
    "q": "nudge rx -0.1",
    "e": "nudge rx 0.1",
    "0": "sticks centre",
    "G": "gantry release",
    "g": "gantry attach",
    "p": "push 60 0 0 0.1",
    "R": "reset",
    "Q": "quit",
}
"""Key to command."""

KEYS_HELP = (
    "1 start  2 go  x stop  SPACE damp  L limp  m mark  w/s a/d q/e sticks  0 centre  "
    "g/G gantry attach/release  p push  R reset  Q quit"
)


class LineInput:
    """Whole lines from a descriptor; a closed one simply gives no more."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor: int | None = sys.stdin.fileno() if descriptor is None else descriptor
        self._rest = b""

    def lines(self) -> list[str]:
        """Lines that have come since the last call, without blanks and comments."""
        *whole, self._rest = (self._rest + self._read()).split(b"\n")
        stripped = (line.decode(errors="replace").partition("#")[0].strip() for line in whole)
        return [line for line in stripped if line]

    def close(self) -> None:
        """Stop reading; the descriptor is somebody else's."""
        self._descriptor = None

    def _read(self) -> bytes:
        if self._descriptor is None or not select.select([self._descriptor], [], [], 0)[0]:
            return b""
        try:
            data = os.read(self._descriptor, 4096)
        except OSError:
            data = b""
        if not data:
            self._descriptor = None
        return data


class KeyInput(LineInput):
    """Single keys of a terminal, as lines."""

    def __init__(self, descriptor: int | None = None) -> None:
        super().__init__(descriptor)
        self._terminal = self._descriptor
        self._saved: list[Any] | None = None
        if self._terminal is None or not os.isatty(self._terminal):
            raise LinkError("--keys needs a terminal; without one, send lines on standard input instead")
        self._saved = termios.tcgetattr(self._terminal)
        tty.setcbreak(self._terminal)

    def lines(self) -> list[str]:
        """Commands of the keys pressed since the last call."""
        return [KEYS[key] for key in self._read().decode(errors="replace") if key in KEYS]

    def close(self) -> None:
        """Give the terminal back as it was."""
        if self._saved is not None and self._terminal is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._saved)
            self._saved = None
        super().close()
