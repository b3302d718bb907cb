import contextlib
import os
import pty
import struct
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from onboard.configs.errors import LinkError
from onboard.runtime.remote import Button
from onboard.sim.gamepad import Gamepad
from onboard.sim.hands import KeyInput, LineInput
from onboard.sim.remote import Remote


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for descriptor in (read, write):
        with contextlib.suppress(OSError):  # the test may have closed it itself
            os.close(descriptor)


def test_lines_come_whole_and_without_comments(pipe: tuple[int, int]) -> None:
    read, write = pipe
    hands = LineInput(read)
    assert hands.lines() == []
    os.write(write, b"press sta")
    assert hands.lines() == []
    os.write(write, b"rt\n\n# nothing\n stick ly 0.5 # forward\nquit")
    assert hands.lines() == ["press start", "stick ly 0.5"]
    os.write(write, b"\n")
    assert hands.lines() == ["quit"]


def test_a_closed_input_gives_no_more_lines(pipe: tuple[int, int]) -> None:
    read, write = pipe
    hands = LineInput(read)
    os.close(write)
    assert hands.lines() == []
    assert hands.lines() == []
    hands.close()


def test_keys_are_commands_and_the_terminal_is_given_back() -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    hands = KeyInput(theirs)
    assert not termios.tcgetattr(theirs)[3] & termios.ICANON
    os.write(ours, b"1w?L")
    lines: list[str] = []
    while len(lines) < 3:  # the terminal hands bytes over in its own time
        lines += hands.lines()
    assert lines == ["press start", "nudge ly 0.1", "press limp"]
    hands.close()
    hands.close()
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def test_keys_need_a_terminal(pipe: tuple[int, int]) -> None:
    with pytest.raises(LinkError, match="needs a terminal"):
        KeyInput(pipe[0])


def event(kind: int, number: int, value: int) -> bytes:
    return struct.pack("<IhBB", 0, value, kind, number)


def test_gamepad_moves_sticks_and_holds_buttons(tmp_path: Path) -> None:
    device = tmp_path / "js0"
    os.mkfifo(device)
    gamepad, remote = Gamepad(device), Remote()
    with device.open("wb", buffering=0) as pad:
        gamepad.update(remote)
        assert remote.held == 0
        pad.write(event(0x81, 0, 0) + event(2, 1, -32767) + event(2, 3, 16384))
        pad.write(
            event(1, 7, 1) + event(1, 4, 1) + event(2, 7, -32767) + event(2, 5, 32767) + event(1, 40, 1)
        )
        gamepad.update(remote)
        assert remote.sticks == pytest.approx({"lx": 0, "ly": 1, "rx": 0.5, "ry": 0}, abs=1e-3)
        assert remote.held == Button.START | Button.L1 | Button.UP | Button.R2
        pad.write(event(1, 7, 0) + event(2, 7, 0) + event(2, 5, -32767) + event(1, 4, 0) + event(2, 1, 0))
        gamepad.update(remote)
        assert remote.held == 0
        assert remote.sticks["ly"] == 0
    gamepad.close()


def test_a_missing_gamepad_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match=r"js7: No such file.*joystick devices here"):
        Gamepad(tmp_path / "js7")
