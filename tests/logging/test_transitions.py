"""Which neighbouring rows may be learned from."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.events import Mode
from onboard.logging.transitions import COLUMNS, find_transitions
from onboard.runtime.gateway_core import GatewayState

PERIOD_S = 0.02


def columns(n: int = 10) -> dict[str, np.ndarray]:
    return {
        "tick": np.arange(n, dtype=np.uint64),
        "time_s": np.arange(n) * PERIOD_S,
        "epoch": np.zeros(n, np.uint32),
        "episode": np.zeros(n, np.int32),
        "mode": np.full(n, Mode.POLICY, np.uint8),
        "safety_flag": np.zeros(n, np.uint8),
        "send_ns": np.arange(n) * 20_000_000 + 5,
        "gateway_state": np.full(n, GatewayState.PASSING, np.int8),
    }


def valid(data: dict[str, np.ndarray]) -> list[int]:
    return [int(row) for row in find_transitions(data.__getitem__, PERIOD_S).rows]


def test_nominal_rows_are_all_transitions() -> None:
    assert valid(columns()) == list(range(9))


def gap(data: dict[str, np.ndarray]) -> None:
    data["tick"][5:] += 1


def reset(data: dict[str, np.ndarray]) -> None:
    data["episode"][5:] = 1


def robot_restart(data: dict[str, np.ndarray]) -> None:
    data["epoch"][5:] = 1


def stale_state(data: dict[str, np.ndarray]) -> None:
    data["time_s"][5] = data["time_s"][4]


@pytest.mark.parametrize(
    ("change", "lost"),
    [(gap, {4}), (reset, {4}), (robot_restart, {4}), (stale_state, {4, 5})],
)
def test_never_across_a_gap_a_reset_or_a_stale_state(
    change: Callable[[dict[str, np.ndarray]], None], lost: set[int]
) -> None:
    data = columns()
    change(data)
    assert valid(data) == [k for k in range(9) if k not in lost]


@pytest.mark.parametrize(
    ("name", "value", "lost"),
    [
        ("safety_flag", 3, {4, 5}),
        ("mode", Mode.DAMP, {5}),
        ("mode", Mode.LIMP, {5}),
        ("send_ns", -1, {5}),
        ("gateway_state", GatewayState.DAMPING, {5}),
    ],
)
def test_never_where_nothing_acted_or_the_robot_was_unsafe(name: str, value: int, lost: set[int]) -> None:
    data = columns()
    data[name][5] = value
    assert valid(data) == [k for k in range(9) if k not in lost]


@pytest.mark.parametrize(
    ("dt_s", "good"), [(0.0149, False), (0.015, True), (0.02, True), (0.025, True), (0.0251, False)]
)
def test_clock_may_advance_by_three_to_five_quarters_of_a_period(dt_s: float, good: bool) -> None:
    data = columns(2)
    data["time_s"] = np.array([7.0, 7.0 + dt_s])
    assert valid(data) == ([0] if good else [])


@given(
    steps_ms=st.lists(st.integers(0, 60), min_size=1, max_size=60),
    skips=st.lists(st.integers(1, 3), min_size=1, max_size=60),
    flags=st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=2, max_size=61),
    episodes=st.lists(st.sampled_from([0, 0, 0, 1]), min_size=1, max_size=60),
    data=st.data(),
)
def test_every_valid_pair_keeps_every_promise(
    steps_ms: list[int], skips: list[int], flags: list[int], episodes: list[int], data: st.DataObject
) -> None:
    n = min(len(steps_ms), len(skips), len(flags) - 1, len(episodes)) + 1
    table = columns(n)
    table["time_s"] = np.concatenate([[0], np.cumsum(steps_ms[: n - 1])]) * 1e-3
    table["tick"] = np.concatenate([[0], np.cumsum(skips[: n - 1])])
    table["episode"] = np.concatenate([[0], np.cumsum(episodes[: n - 1])])
    table["safety_flag"] = np.array(flags[:n])
    table["mode"] = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    found = find_transitions(table.__getitem__, PERIOD_S)
    np.testing.assert_allclose(found.dt_s, np.diff(table["time_s"]))
    for k in range(n - 1):
        promised = (
            15 <= steps_ms[k] <= 25
            and skips[k] == 1
            and episodes[k] == 0
            and flags[k] == flags[k + 1] == 0
            and table["mode"][k] in {Mode.RAMP, Mode.HOLD, Mode.POLICY}
        )
        assert bool(found.valid[k]) == promised


def test_pairs_are_rows_and_their_successors() -> None:
    data = columns()
    data["safety_flag"][3] = 1
    data["q"] = np.arange(10)
    before, after = find_transitions(data.__getitem__, PERIOD_S).pairs("q")
    assert before.tolist() == [0, 1, 4, 5, 6, 7, 8]
    assert (after - before == 1).all()
    assert set(COLUMNS) <= set(data)


def test_full_rate_stream_gives_the_sample_one_period_later() -> None:
    data = columns(4)
    samples = np.concatenate([np.arange(0, 0.045, 0.002) + 0.0007, [0.08]])
    nearest = find_transitions(data.__getitem__, PERIOD_S, samples).next_sample
    assert nearest is not None
    np.testing.assert_allclose(samples[nearest[:2]], [0.0207, 0.0407])
    assert nearest[2] == -1, "nothing within a quarter of a period"
    empty = find_transitions(data.__getitem__, PERIOD_S, np.zeros(0)).next_sample
    assert empty is not None
    assert (empty == -1).all()


@pytest.mark.parametrize("n", [0, 1])
def test_too_short_for_a_transition(n: int) -> None:
    assert valid(columns(n)) == []
