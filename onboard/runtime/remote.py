"""The wireless remote's 40 bytes, little-endian, as they stand in LowState.

Bytes 2 to 3 hold the buttons, 4 lx, 8 rx, 12 ry, 20 ly as float32 in [-1, 1]; the rest is unused.
Source: Unitree's gamepad example for the G1.
"""

import struct
from enum import IntFlag

REMOTE_BYTES = 40


class Button(IntFlag):
    """Bits of the buttons word."""

    R1 = 1 << 0
    L1 = 1 << 1
    START = 1 << 2
    SELECT = 1 << 3
    R2 = 1 << 4
    L2 = 1 << 5
    F1 = 1 << 6
    F2 = 1 << 7
    A = 1 << 8
    B = 1 << 9
    X = 1 << 10
    Y = 1 << 11
    UP = 1 << 12
    RIGHT = 1 << 13
    DOWN = 1 << 14
    LEFT = 1 << 15


# What each button does; the same words are used by keys and scripts.
START = int(Button.START)
GO = int(Button.A)
STOP = int(Button.X)
DAMP = int(Button.B)
MARK = int(Button.Y)
NEXT_POLICY = int(Button.SELECT)
LIMP = int(Button.L1 | Button.R1 | Button.B)

ACTIONS = {"start": START, "go": GO, "stop": STOP, "damp": DAMP, "mark": MARK, "limp": LIMP}
"""Action to the buttons that ask for it."""


def keys(remote: memoryview | bytes) -> int:
    """The buttons word."""
    return remote[2] | remote[3] << 8


def sticks(remote: memoryview | bytes) -> tuple[float, float, float, float]:
    """Stick positions lx, ly, rx, ry in [-1, 1]; a value that is not finite counts as centred."""
    lx, rx, ry, _, ly = struct.unpack_from("<5f", remote, 4)
    return _unit(lx), _unit(ly), _unit(rx), _unit(ry)


def encode_remote(buttons: int, lx: float = 0.0, ly: float = 0.0, rx: float = 0.0, ry: float = 0.0) -> bytes:
    """The 40 bytes for a given state of the remote; the head marks a connected one."""
    return struct.pack("<2BH5f16x", 0x55, 0x51, buttons, lx, rx, ry, 0.0, ly)


def _unit(value: float) -> float:
    return min(1.0, max(-1.0, value)) if value == value else 0.0  # NaN alone differs from itself
