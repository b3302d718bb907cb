"""The operator's keys, read in the parent from a raw terminal; works over SSH.

```
1 start (ramp, re-arm, confirm)   2 go (policy)   n next policy   x stop   SPACE or b  damp at once
w/s forward/back   a/d left/right   q/e turn left/right   0 stand still   L limp   m mark
Ctrl-C stop, twice damp
```

Losing the terminal is noticed here (end of file or an I/O error) and reported, never waited for.
"""

import contextlib
import os
import queue
import sys
import termios
import threading
import tty
from typing import Any

ACTIONS = {
    "1": "start",
    "2": "go",
    "x": "stop",
    " ": "damp",
    "b": "damp",
    "L": "limp",
    "m": "mark",
    "n": "next",
}
STEPS = {
    "w": (0, 0.1),
    "s": (0, -0.1),
    "a": (1, 0.1),
    "d": (1, -0.1),
    "q": (2, 0.1),
    "e": (2, -0.1),
}
"""Key to axis (vx, vy, wz) and step in m/s or rad/s."""

HELP = (
    "1 start  2 go  n next policy  x stop  SPACE damp  L limp  m mark  w/s a/d q/e velocity  0 stand  Ctrl-C"
)


class Keyboard:
    """Reads keys in a thread of its own.

    Attributes:
        velocity: [vx, vy, wz] as the keys have set it.
        used: a velocity key was pressed, so the keys are in charge of the velocity.
        lost: the terminal is gone.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._actions: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._saved: list[Any] | None = None
        self.velocity = [0.0, 0.0, 0.0]
        self.used = False
        self.lost = False

    def start(self) -> None:
        """Put the terminal into raw mode (signals kept) and begin to read."""
        with contextlib.suppress(termios.error):
            self._saved = termios.tcgetattr(self._descriptor)
            tty.setcbreak(self._descriptor)
        threading.Thread(target=self._read, daemon=True, name="keyboard").start()

    def actions(self) -> list[str]:
        """Actions since the last call, oldest first."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._actions.get_nowait())
        return found

    def close(self) -> None:
        """Give the terminal back as it was."""
        if self._saved is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._saved)
            self._saved = None

    def feed(self, key: str) -> None:
        """Act on one key."""
        if key in ACTIONS:
            self._actions.put(ACTIONS[key])
        elif key in STEPS:
            axis, change = STEPS[key]
            self.velocity[axis] = round(self.velocity[axis] + change, 3)
            self.used = True
        elif key == "0":
            self.velocity[:] = [0.0, 0.0, 0.0]
            self.used = True

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._descriptor, 16)
            except OSError:
                data = b""
            if not data:
                self.lost = True
                return
            for key in data.decode(errors="ignore"):
                self.feed(key)
