"""The robot's counter as time: wrap, restart, jump, unit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.logging.robot_clock import read_clock


def recv(steps_s: np.ndarray) -> np.ndarray:
    return (10**12 + np.concatenate([[0], np.cumsum(steps_s)]) * 1e9).astype(np.int64)


@given(
    start=st.integers(0, 2**32 - 1),
    steps_ms=st.lists(st.integers(0, 200), min_size=1, max_size=100),
    jitter_ms=st.integers(0, 2),
)
def test_unwraps_over_32_bits(start: int, steps_ms: list[int], jitter_ms: int) -> None:
    steps = np.array(steps_ms)
    tick = ((start + np.concatenate([[0], np.cumsum(steps)])) % 2**32).astype(np.uint32)
    received = recv(steps * 1e-3)
    received[1::2] += jitter_ms * 1_000_000
    clock = read_clock(tick, received, 1e-3)
    np.testing.assert_allclose(np.diff(clock.time_s), steps * 1e-3, atol=1e-9)
    assert clock.time_s[0] == 0
    assert not clock.epoch.any()


@pytest.mark.parametrize("restart_at", [0, 7, 4_000_000_000])
def test_restart_is_a_new_epoch_and_time_goes_on(restart_at: int) -> None:
    tick = np.array([3_000_000_000, 3_000_000_020, restart_at, restart_at + 20], np.uint32)
    clock = read_clock(tick, recv(np.array([0.02, 5.0, 0.02])), 1e-3)
    np.testing.assert_allclose(clock.time_s, [0, 0.02, 5.02, 5.04])
    assert clock.epoch.tolist() == [0, 0, 1, 1]


@given(
    ticks=st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=60),
    waits_ms=st.lists(st.integers(1, 3_000), min_size=60, max_size=60),
)
def test_whatever_the_counter_does_time_never_falls_and_rises_with_every_advance(
    ticks: list[int], waits_ms: list[int]
) -> None:
    tick = np.array(ticks, np.uint32)
    clock = read_clock(tick, recv(np.array(waits_ms[: len(ticks) - 1]) * 1e-3), 1e-3)
    steps = np.diff(clock.time_s)
    assert np.all(steps >= 0)  # false for NaN
    assert np.all(steps[np.diff(tick) != 0] > 0)
    assert np.all(np.diff(clock.epoch.astype(int)) >= 0)


def test_a_real_pause_is_no_restart() -> None:
    clock = read_clock(np.array([0, 20, 9_020], np.uint32), recv(np.array([0.02, 9.0])), 1e-3)
    assert not clock.epoch.any()
    np.testing.assert_allclose(clock.time_s, [0, 0.02, 9.02])


@pytest.mark.parametrize(
    ("tick_s", "speed", "expected"),
    [(1e-3, 1.0, 1e-3), (1e-3, 0.8, 1e-3), (2e-3, 1.0, 2e-3), (1e-6, 1.0, 1e-6), (1.25e-4, 1.0, 1.25e-4)],
)
def test_unit_is_measured(tick_s: float, speed: float, expected: float) -> None:
    random = np.random.default_rng(3)
    tick = (np.arange(200) * round(0.02 / tick_s)).astype(np.uint32)
    received = recv(np.full(199, 0.02 / speed)) + random.integers(0, 2_000_000, 200)
    clock = read_clock(tick, received)
    assert clock.tick_s == pytest.approx(expected, rel=0.02)
    assert clock.measured_tick_s == pytest.approx(tick_s / speed, rel=0.02)


def test_too_little_to_measure_means_milliseconds() -> None:
    clock = read_clock(np.array([5, 25], np.uint32), recv(np.array([0.02])))
    assert clock.tick_s == 1e-3
    assert np.isnan(clock.measured_tick_s)
    assert len(read_clock(np.zeros(0, np.uint32), np.zeros(0, np.int64)).time_s) == 0
