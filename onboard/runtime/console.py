"""Where the operator's wishes reach the parent: signals, the keyboard, a script.

SIGINT, SIGTERM and SIGTSTP ask for a stop in order, a second SIGINT damps at once, SIGHUP means that
the terminal is gone. The children run in sessions of their own and never see them. What a lost terminal
leads to is the safety table's to say (TERMINAL_LOST); keys that gave a velocity give none any more.
"""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Protocol

from onboard.configs.events import Mode
from onboard.runtime.keyboard import Keyboard
from onboard.runtime.operator_input import NEXT
from onboard.runtime.script import Script

SCRIPT_OVER = "the script is over"
"""End of a run whose script was played to its last step."""


class Desk(Protocol):
    """What the console acts on: the parent, or the in-process port of a lock-step run."""

    def press(self, action: str) -> None:
        """Press a button."""

    def request(self, name: str) -> None:
        """Raise a flag of the operator's port."""

    def switch(self, index: int) -> None:
        """Ask for another policy."""

    def set_velocity(self, velocity: tuple[float, float, float]) -> None:
        """Take the velocity over."""


class Console:
    """Collects wishes and passes them on; `look` is called every few milliseconds.

    Args:
        script: plays the operator.
        keyboard: keys of a terminal.
        terminal_ends: a lost terminal ends the run, once the safety table's tier has been reached; false
            where the table only warns of it.

    Attributes:
        end: what asked for the end of the run, "" while nothing has.
        failed: the script gave up.
        interrupted: a signal asked for the end, or the terminal is gone.
    """

    def __init__(
        self, script: Script | None = None, keyboard: Keyboard | None = None, *, terminal_ends: bool = True
    ) -> None:
        self._script = script
        self._keyboard = keyboard
        self._terminal_ends = terminal_ends
        self._interrupts = 0
        self._signals: list[int] = []
        self.end = ""
        self.failed = False
        self.interrupted = False

    def look(self, desk: Desk, now_ns: int, mode: Mode) -> None:
        """Pass on what came in since the last look."""
        self.look_at_signals(desk)
        if self._script is not None:
            self._play(self._script, desk, now_ns, mode)
        if self._keyboard is not None:
            self._look_at_keys(self._keyboard, desk)

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Take the process's signals over for the time of the run."""
        caught = (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP, signal.SIGHUP)
        before = {number: signal.signal(number, self._note) for number in caught}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def look_at_signals(self, desk: Desk) -> None:
        """Signals alone: all that counts before the run has begun."""
        while self._signals:
            number = self._signals.pop(0)
            self.interrupted = True
            if number == signal.SIGHUP:
                self._lose_terminal(desk)
                continue
            self._interrupts += number == signal.SIGINT
            twice = self._interrupts > 1
            request = "damp_request" if twice else "stop_request"
            self._finish(desk, request, "SIGINT twice" if twice else signal.Signals(number).name)

    def _play(self, script: Script, desk: Desk, now_ns: int, mode: Mode) -> None:
        script.advance(now_ns, mode.name.lower())
        for action in script.pressed:
            desk.press(action)
        if script.policy is not None:
            desk.switch(script.policy)
        if script.velocity is not None:
            desk.set_velocity(script.velocity)
        if script.done or script.failure:
            self._script = None
            self.failed = bool(script.failure)
            self._finish(desk, "stop_request", script.failure or SCRIPT_OVER)

    def _look_at_keys(self, keyboard: Keyboard, desk: Desk) -> None:
        for action in keyboard.actions():
            if action == "next":
                desk.switch(NEXT)
            else:
                desk.press(action)
        if keyboard.used:
            vx, vy, wz = keyboard.velocity
            desk.set_velocity((vx, vy, wz))
        if keyboard.lost:
            self._lose_terminal(desk)

    def _lose_terminal(self, desk: Desk) -> None:
        if self._keyboard is not None and self._keyboard.used:
            desk.set_velocity((0.0, 0.0, 0.0))
        self._keyboard = None
        if not self._terminal_ends:
            desk.request("terminal_lost")
            return
        self._finish(desk, "terminal_lost", "the terminal is gone")
        desk.request("stop_request")

    def _finish(self, desk: Desk, request: str, why: str) -> None:
        self.end = why if not self.end or request != "stop_request" else self.end
        desk.request(request)
