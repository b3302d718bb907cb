"""Remote, keys and script merged: edges, levels, stick mapping."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.run import Sticks
from onboard.runtime.link import State
from onboard.runtime.operator_input import Operator
from onboard.runtime.ports import OPERATOR
from onboard.runtime.remote import ACTIONS, DAMP, LIMP, START, encode_remote, keys, sticks

RANGES = ((-0.5, 1.0), (-0.3, 0.3), (-0.2, 0.2))


class FakePort:
    def __init__(self) -> None:
        self.record = np.zeros((), OPERATOR)

    def latest(self, out: np.ndarray) -> int:
        out[...] = self.record
        return 1


def make(smoothing_s: float = 0.0, dead_zone: float = 0.0) -> tuple[Operator, FakePort, State]:
    port, state = FakePort(), State()
    operator = Operator(port, Sticks(dead_zone, smoothing_s), RANGES, 0.02)
    operator.read(state)
    return operator, port, state


def press(state: State, buttons: int, **stick: float) -> None:
    state.remote[:] = np.frombuffer(encode_remote(buttons, **stick), np.uint8)


@pytest.mark.parametrize("action", ["start", "go", "stop", "limp", "mark"])
def test_a_held_button_is_one_edge(action: str) -> None:
    operator, _, state = make()
    press(state, ACTIONS[action])
    assert getattr(operator.read(state), action)
    assert not getattr(operator.read(state), action)
    press(state, 0)
    operator.read(state)
    press(state, ACTIONS[action])
    assert getattr(operator.read(state), action)


def test_the_emergency_stop_is_a_level() -> None:
    operator, _, state = make()
    press(state, DAMP)
    assert operator.read(state).damp
    assert operator.read(state).damp
    press(state, 0)
    assert not operator.read(state).damp


def test_what_was_pressed_before_the_first_look_is_no_wish() -> None:
    port, state = FakePort(), State()
    port.record["starts"] = 3
    press(state, START)
    operator = Operator(port, Sticks(), RANGES, 0.02)
    assert not operator.read(state).start
    assert not operator.read(state).start


def test_limp_needs_the_whole_combination() -> None:
    operator, _, state = make()
    press(state, LIMP & ~DAMP)
    assert not operator.read(state).limp
    press(state, LIMP)
    assert operator.read(state).limp


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_a_counter_of_the_port_is_one_edge(action: str) -> None:
    operator, port, state = make()
    port.record[f"{action}s"] += 1
    assert getattr(operator.read(state), action)
    assert not getattr(operator.read(state), action)


def test_marks_are_counted_from_both_ways() -> None:
    operator, port, state = make()
    port.record["marks"] += 1
    assert operator.read(state).marks == 1
    press(state, ACTIONS["mark"])
    assert operator.read(state).marks == 2
    assert operator.read(state).marks == 2


def test_requests_and_connection() -> None:
    operator, port, state = make()
    asked = operator.read(state)
    assert (asked.connected, asked.stop_request, asked.damp_request, asked.terminal_lost) == (False,) * 4
    port.record["stop_request"] = port.record["damp_request"] = port.record["terminal_lost"] = 1
    press(state, 0)
    asked = operator.read(state)
    assert (asked.connected, asked.stop_request, asked.damp_request, asked.terminal_lost) == (True,) * 4


def test_full_sticks_give_the_ends_of_the_ranges() -> None:
    operator, _, state = make()
    press(state, 0, ly=1.0, lx=1.0, rx=1.0)
    assert operator.read(state).velocity.tolist() == pytest.approx([1.0, -0.3, -0.2])
    press(state, 0, ly=-1.0, lx=-1.0, rx=-1.0)
    assert operator.read(state).velocity.tolist() == pytest.approx([-0.5, 0.3, 0.2])


def test_the_dead_zone_starts_from_zero_and_keeps_full_deflection() -> None:
    operator, _, state = make(dead_zone=0.1)
    press(state, 0, ly=0.099)
    assert operator.read(state).velocity[0] == 0.0
    press(state, 0, ly=0.55)
    assert operator.read(state).velocity[0] == pytest.approx(0.5)
    press(state, 0, ly=1.0)
    assert operator.read(state).velocity[0] == pytest.approx(1.0)


def test_smoothing_is_in_seconds_whatever_the_rate() -> None:
    reached = []
    for period_s in (0.02, 0.005):
        operator = Operator(FakePort(), Sticks(0.0, 0.1), RANGES, period_s)
        state = State()
        operator.read(state)
        press(state, 0, ly=1.0)
        for _ in range(round(0.1 / period_s)):
            velocity = operator.read(state).velocity
        reached.append(float(velocity[0]))
    assert reached == pytest.approx([1 - np.exp(-1)] * 2, abs=1e-6)


def test_keys_or_script_in_charge_override_the_sticks_and_are_clamped() -> None:
    operator, port, state = make()
    press(state, 0, ly=1.0)
    port.record["velocity_valid"], port.record["velocity"] = 1, (0.5, -2.0, 0.1)
    assert operator.read(state).velocity.tolist() == pytest.approx([0.5, -0.3, 0.1])


def test_a_stick_that_is_not_a_number_counts_as_centred() -> None:
    assert sticks(encode_remote(0, lx=float("nan"), ly=2.0)) == (0.0, 1.0, 0.0, 0.0)


@given(st.integers(0, 0xFFFF), *[st.floats(-1, 1, width=32)] * 4)
def test_the_remote_round_trips(buttons: int, lx: float, ly: float, rx: float, ry: float) -> None:
    remote = encode_remote(buttons, lx, ly, rx, ry)
    assert len(remote) == 40
    assert keys(remote) == buttons
    assert sticks(remote) == (lx, ly, rx, ry)


def test_the_layout_is_the_vendors() -> None:
    remote = encode_remote(START | DAMP, ly=1.0)
    assert remote[2:4] == b"\x04\x02"
    assert remote[20:24] == b"\x00\x00\x80\x3f"
