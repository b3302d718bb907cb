"""The absolute grid, on a clock of the test's own."""

import time

import pytest

from onboard.runtime.clock import GridClock

MS = 1_000_000


class FakeTime:
    def __init__(self) -> None:
        self.now = 5 * MS
        self.naps = 0

    def monotonic_ns(self) -> int:
        self.now += 1000  # looking at the clock takes time too
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)
        self.naps += 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(time, "monotonic_ns", fake.monotonic_ns)
    monkeypatch.setattr(time, "sleep", fake.sleep)
    return fake


def test_an_oversleep_is_not_carried_on(fake: FakeTime) -> None:
    clock = GridClock(20 * MS)
    clock.start()
    origin = fake.now
    for tick in range(1, 1001):
        fake.now += 3 * MS  # work
        assert clock.wait() == 0
        assert 0 <= fake.now - (origin + tick * 20 * MS) < MS
        assert 0 <= clock.late_ns < MS


def test_missed_periods_are_skipped_and_the_phase_is_kept(fake: FakeTime) -> None:
    clock = GridClock(20 * MS)
    clock.start()
    origin = fake.now
    clock.wait()
    fake.now += 45 * MS  # from 20 to 65: the point at 40 is missed, that at 60 is 5 ms late
    assert clock.wait() == 1
    assert fake.now - origin == pytest.approx(65 * MS, abs=MS)
    assert clock.late_ns == pytest.approx(5 * MS, abs=MS)
    assert clock.wait() == 0
    assert fake.now - origin == pytest.approx(80 * MS, abs=MS)


def test_a_late_tick_within_the_period_runs_at_once(fake: FakeTime) -> None:
    clock = GridClock(20 * MS)
    clock.start()
    clock.wait()
    fake.now += 30 * MS
    assert clock.wait() == 0
    assert clock.late_ns == pytest.approx(10 * MS, abs=MS)
    assert clock.wait() == 0
    assert clock.late_ns < MS


def test_spinning_ends_sharper_than_sleeping(fake: FakeTime) -> None:
    clock = GridClock(20 * MS, spin_ns=MS)
    clock.start()
    clock.wait()
    assert clock.late_ns <= 1000


def test_the_real_clock_moves_forward() -> None:
    clock = GridClock(MS)
    before = clock.now_ns()
    clock.start()
    clock.wait()
    assert clock.now_ns() >= before + MS


def test_a_short_wait_is_spun(fake: FakeTime) -> None:
    clock = GridClock(20 * MS)
    clock.start()
    clock.doze(100_000)
    assert fake.naps == 1
    assert 0 < clock.left_ns() <= 100_000
    assert clock.wait() == 0
    assert fake.naps == 1
    assert clock.late_ns <= 1000
