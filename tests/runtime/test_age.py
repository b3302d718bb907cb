"""Age of samples across clocks that are set, drift, wrap and stop."""

import numpy as np
import pytest

from onboard.runtime.age import SampleAge, SenderClock

MS = 1_000_000
EPOCH = 1_800_000_000_000_000_000  # some wall clock


def ages_ms(
    delays_ms: list[float],
    *,
    period_ms: float = 20,
    drift_ppm: float = 0,
    first_tick: int = 5000,
    tick_per_ms: float = 1,
    wall_step_ms: tuple[int, float] = (0, 0),
    tick_step: tuple[int, int] = (0, 0),
    stamped: bool = True,
) -> list[float]:
    """Ages of samples sent every period and taken after their delay; steps are (from sample, by)."""
    estimate, ages = SampleAge(), []
    for index, delay in enumerate(delays_ms):
        sent_ms = index * period_ms
        wall = EPOCH + int(sent_ms * (1 + drift_ppm * 1e-6) * MS)
        wall += int((wall_step_ms[1] if index >= wall_step_ms[0] else 0) * MS)
        tick = first_tick + int(sent_ms * tick_per_ms) + (tick_step[1] if index >= tick_step[0] else 0)
        recv = 777 * MS + int((sent_ms + delay) * MS)
        ages.append(estimate.at_reception_ns(wall if stamped else 0, tick % 2**32, recv) / MS)
    return ages


def test_an_age_is_what_a_sample_has_on_top_of_the_freshest() -> None:
    assert ages_ms([3, 1, 1, 2.5]) == pytest.approx([0, 0, 0, 1.5], abs=0.02)


def test_a_late_sample_shows_at_once_and_only_while_it_is_late() -> None:
    ages = ages_ms([1.0] * 200 + [60.0, 120.0] + [1.0] * 5)
    assert ages[200:202] == pytest.approx([59, 119], abs=0.1)
    assert max(ages[202:]) < 0.1


@pytest.mark.parametrize("drift_ppm", [-100, 100])
def test_drifting_clocks_do_not_make_a_state_old(drift_ppm: float) -> None:
    generator = np.random.default_rng(1)
    delays = (0.2 + generator.uniform(0, 2, 50 * 600)).tolist()  # ten minutes, sender at 500 Hz
    assert max(ages_ms(delays, drift_ppm=drift_ppm, tick_per_ms=0.5)) < 2.5


@pytest.mark.parametrize("step_ms", [-3000.0, 3000.0])
def test_a_step_of_the_senders_wall_clock_does_not_make_a_state_old(step_ms: float) -> None:
    ages = ages_ms([1.0] * 400, wall_step_ms=(200, step_ms))
    assert max(ages) < 1.5


def test_after_a_step_late_samples_still_show() -> None:
    ages = ages_ms([1.0] * 300 + [90.0], wall_step_ms=(200, -3000.0))
    assert ages[-1] == pytest.approx(89, abs=0.5)


def test_a_restarted_tick_does_not_make_a_state_old() -> None:
    assert max(ages_ms([1.0] * 400, first_tick=10_000_000, tick_step=(200, -9_000_000))) < 1.5


def test_the_tick_may_wrap() -> None:
    ages = ages_ms([1.0] * 200 + [60.0] + [1.0] * 200, first_tick=2**32 - 3000)
    assert ages[200] == pytest.approx(59, abs=0.5)
    assert max(ages[:200] + ages[201:]) < 1.5


@pytest.mark.parametrize("tick_per_ms", [0.5, 1000, 0])
def test_a_tick_in_another_unit_hides_nothing(tick_per_ms: float) -> None:
    ages = ages_ms([1.0] * 200 + [60.0] + [1.0] * 200, tick_per_ms=tick_per_ms)
    assert ages[200] == pytest.approx(59, abs=0.5)
    assert max(ages[:200] + ages[201:]) < 0.5


def test_without_a_stamp_the_tick_alone_gives_the_age() -> None:
    ages = ages_ms([1.0] * 100 + [60.0, 1.0], stamped=False)
    assert ages[100:] == pytest.approx([59, 0], abs=0.1)


def test_a_slow_simulator_is_not_old() -> None:
    assert max(ages_ms([1.0] * 400, tick_per_ms=0.8)) < 0.1


def test_a_clock_can_be_set_from_a_known_age() -> None:
    clock = SenderClock()
    clock.set(sent_ns=1000, recv_ns=5000, age_ns=100)
    assert clock.age_ns(sent_ns=2000, recv_ns=6000) == 100
