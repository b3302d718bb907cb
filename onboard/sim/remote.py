"""The simulated robot's wireless remote: buttons for a while, sticks until moved, and its 40 bytes."""

from onboard.runtime.remote import REMOTE_BYTES, encode_remote

AXES = ("lx", "ly", "rx", "ry")


class Remote:
    """What the operator's hands do.

    Attributes:
        sticks: lx, ly, rx, ry in [-1, 1] by name.
        connected: a remote that is lost reports 40 zeros.
        held: buttons that stay down until they are let go (a gamepad's).
    """

    def __init__(self) -> None:
        self.sticks = dict.fromkeys(AXES, 0.0)
        self.connected = True
        self.held = 0
        self._pressed: list[tuple[int, float]] = []

    def press(self, buttons: int, until_s: float) -> None:
        """Keep buttons down until a simulated time."""
        self._pressed.append((buttons, until_s))

    def move(self, axis: str, value: float) -> None:
        """Put one stick axis somewhere; beyond the end stays at the end."""
        self.sticks[axis] = min(1.0, max(-1.0, value))

    def buttons(self, now_s: float) -> int:
        """The buttons word at a simulated time."""
        self._pressed = [(buttons, until) for buttons, until in self._pressed if until > now_s]
        word = self.held
        for buttons, _ in self._pressed:
            word |= buttons
        return word

    def encode(self, now_s: float) -> bytes:
        """The 40 bytes at a simulated time."""
        if not self.connected:
            return bytes(REMOTE_BYTES)
        return encode_remote(self.buttons(now_s), **self.sticks)
