"""A Linux joystick device as the simulated robot's remote."""

import os
import struct
from pathlib import Path

from onboard.configs.errors import LinkError
from onboard.runtime.remote import Button
from onboard.sim.remote import Remote

_EVENT = struct.Struct("<IhBB")  # time in ms, value, type, number: linux/joystick.h
_BUTTON, _AXIS, _INITIAL = 0x01, 0x02, 0x80
_BUTTONS = (Button.A, Button.B, Button.X, Button.Y, Button.L1, Button.R1, Button.SELECT, Button.START)
_STICKS = {0: ("lx", 1), 1: ("ly", -1), 3: ("rx", 1), 4: ("ry", -1)}  # the device counts down as positive
_TRIGGERS = {2: Button.L2, 5: Button.R2}
_CROSS = {6: (Button.LEFT, Button.RIGHT), 7: (Button.UP, Button.DOWN)}


class Gamepad:
    """A Linux joystick device (`/dev/input/js0`) with the layout of an Xbox controller."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            there = sorted(str(device) for device in Path("/dev/input").glob("js*"))
            raise LinkError(
                f"gamepad {path}: {error.strerror}; joystick devices here: {', '.join(there) or 'none'}"
            ) from error

    def update(self, remote: Remote) -> None:
        """Bring the remote to where the gamepad is now."""
        try:
            data = os.read(self._descriptor, 64 * _EVENT.size)
        except OSError:
            return  # nothing new, or unplugged: sticks and buttons stay where they were
        for _, value, kind, number in _EVENT.iter_unpack(data[: len(data) // _EVENT.size * _EVENT.size]):
            kind &= ~_INITIAL
            if kind == _BUTTON and number < len(_BUTTONS):
                self._hold(remote, _BUTTONS[number], value != 0)
            elif kind == _AXIS:
                self._axis(remote, number, value / 32767)

    def close(self) -> None:
        """Release the device."""
        os.close(self._descriptor)

    def _axis(self, remote: Remote, number: int, value: float) -> None:
        if number in _STICKS:
            name, sign = _STICKS[number]
            remote.move(name, sign * value)
        elif number in _TRIGGERS:
            self._hold(remote, _TRIGGERS[number], value > 0)
        elif number in _CROSS:
            low, high = _CROSS[number]
            self._hold(remote, low, value < 0)
            self._hold(remote, high, value > 0)

    @staticmethod
    def _hold(remote: Remote, button: Button, down: bool) -> None:
        remote.held = remote.held | button if down else remote.held & ~button
