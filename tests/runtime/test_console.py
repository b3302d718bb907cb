"""Signals, script and keys reach the desk."""

import os
import pty
import signal
import time

import pytest

from onboard.configs.events import Mode
from onboard.configs.script import ScriptConfig, Step
from onboard.runtime.console import Console
from onboard.runtime.keyboard import Keyboard
from onboard.runtime.script import Script


class Desk:
    def __init__(self) -> None:
        self.pressed: list[str] = []
        self.requests: list[str] = []
        self.velocity: tuple[float, float, float] | None = None

    def press(self, action: str) -> None:
        self.pressed.append(action)

    def request(self, name: str) -> None:
        self.requests.append(name)

    def switch(self, index: int) -> None:
        self.pressed.append(f"policy {index}")

    def set_velocity(self, velocity: tuple[float, float, float]) -> None:
        self.velocity = velocity


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGTSTP])
def test_one_signal_is_a_stop_in_order(number: signal.Signals) -> None:
    desk, console = Desk(), Console()
    with console.signals():
        os.kill(os.getpid(), number)
        console.look(desk, 0, Mode.POLICY)
    assert desk.requests == ["stop_request"]
    assert console.end == number.name
    assert console.interrupted


def test_a_second_interrupt_damps_at_once() -> None:
    desk, console = Desk(), Console()
    with console.signals():
        os.kill(os.getpid(), signal.SIGINT)
        console.look(desk, 0, Mode.POLICY)
        os.kill(os.getpid(), signal.SIGINT)
        console.look(desk, 0, Mode.POLICY)
    assert desk.requests == ["stop_request", "damp_request"]
    assert console.end == "SIGINT twice"


def test_a_hang_up_means_that_the_terminal_is_gone() -> None:
    desk, console = Desk(), Console()
    with console.signals():
        os.kill(os.getpid(), signal.SIGHUP)
        console.look(desk, 0, Mode.POLICY)
    assert desk.requests == ["terminal_lost", "stop_request"]


def test_a_lost_terminal_stops_what_its_keys_asked_for_and_ends_the_run_unless_it_only_warns() -> None:
    for ends, requests in ((True, ["terminal_lost", "stop_request"]), (False, ["terminal_lost"])):
        keyboard, desk = Keyboard(0), Desk()
        keyboard.feed("w")
        console = Console(keyboard=keyboard, terminal_ends=ends)
        console.look(desk, 0, Mode.POLICY)
        assert desk.velocity == (0.1, 0.0, 0.0)
        keyboard.lost = True
        console.look(desk, 10, Mode.POLICY)
        console.look(desk, 20, Mode.POLICY)
        assert desk.velocity == (0.0, 0.0, 0.0)
        assert desk.requests == requests
        assert bool(console.end) is ends


def test_the_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Console().signals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_script_presses_and_ends_the_run() -> None:
    desk = Desk()
    script = Script(
        ScriptConfig((Step(press="start", until="hold"), Step(velocity=(0.3, 0.0, 0.1), for_s=1.0)))
    )
    console = Console(script)
    console.look(desk, 0, Mode.DAMP)
    assert desk.pressed == ["start"]
    console.look(desk, 10, Mode.HOLD)
    assert desk.velocity == (0.3, 0.0, 0.1)
    assert not desk.requests
    console.look(desk, 2_000_000_000, Mode.HOLD)
    assert desk.requests == ["stop_request"]
    assert console.end == "the script is over"
    assert not console.interrupted


def test_a_script_that_gives_up_ends_the_run_with_its_reason() -> None:
    desk = Desk()
    console = Console(Script(ScriptConfig((Step(until="policy", timeout_s=1.0),))))
    console.look(desk, 0, Mode.DAMP)
    console.look(desk, 2_000_000_000, Mode.DAMP)
    assert desk.requests == ["stop_request"]
    assert "'policy' was not reached" in console.end


def until(condition: object, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.001)


def test_keys_through_a_real_terminal() -> None:
    master, slave = pty.openpty()
    keyboard, desk = Keyboard(slave), Desk()
    keyboard.start()
    os.write(master, b"12wwa x")
    console = Console(keyboard=keyboard)

    def all_seen() -> bool:
        console.look(desk, 0, Mode.POLICY)
        return len(desk.pressed) == 4

    until(all_seen)
    assert desk.pressed == ["start", "go", "damp", "stop"]
    assert desk.velocity == (0.2, 0.1, 0.0)
    os.write(master, b"0")
    until(lambda: keyboard.velocity == [0.0, 0.0, 0.0])
    keyboard.close()
    os.close(master)  # the terminal goes away
    until(lambda: keyboard.lost)
    console.look(desk, 0, Mode.POLICY)
    assert desk.requests == ["terminal_lost", "stop_request"]
    os.close(slave)
