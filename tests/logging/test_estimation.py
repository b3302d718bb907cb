"""An estimator between the listener and the other processes: time, order, age."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.logging.estimation import CALIBRATION_SAMPLES, EstimatorFeed, TickTime
from onboard.logging.lowstate import LowStateListener
from onboard.runtime.ports import RECORDER
from onboard.runtime.wire import LowStateEncoder


@dataclass
class Sum:
    """Stands for an estimate."""

    time_s: float = 0.0
    contact: np.ndarray = field(default_factory=lambda: np.array([1, 0], np.int8))
    force_n: np.ndarray = field(default_factory=lambda: np.array([300.0, 2.0]))
    velocity_m_s: np.ndarray = field(default_factory=lambda: np.full(3, np.nan))


class Tenth:
    """An estimator that is due every tenth sample and reports the last q of joint 3 as velocity."""

    def __init__(self) -> None:
        self.due = False
        self.times: list[float] = []
        self.found = Sum()

    def add(self, time_s: float, q: np.ndarray, *rest: np.ndarray) -> None:
        assert q.shape == (29,)
        assert [len(one) for one in rest] == [29, 29, 4, 3, 3]
        self.times.append(time_s)
        self._q = float(q[3])
        self.due = len(self.times) % 10 == 0

    def tick(self) -> Sum:
        self.found.time_s, self.found.velocity_m_s[:] = self.times[-1], self._q
        self.due = False
        return self.found


class Message(NamedTuple):
    raw: bytes
    source_time_ns: int


class Wire:
    """A listener with an estimator, and messages on their way to it."""

    def __init__(self) -> None:
        self.estimator = Tenth()
        self.feed = EstimatorFeed(self.estimator)
        self.encoder = LowStateEncoder(5)
        self.listener = LowStateListener(self, None, self.feed)
        self.status = np.zeros((), RECORDER)
        self._waiting: list[Message] = []

    def send(self, first: int, last: int) -> None:
        for k in range(first, last + 1):
            self.encoder.q[...] = k
            self._waiting.append(Message(bytes(self.encoder.seal(2 * k)), 5_000 + 2_000_000 * k))

    def take_all(self) -> list[Message]:
        taken, self._waiting = self._waiting, []
        return taken

    def poll(self, now_ns: int) -> None:
        self.listener.poll(now_ns)
        self.feed.report(self.status, now_ns)


def test_the_newest_estimate_goes_into_the_port_with_its_age() -> None:
    wire = Wire()
    wire.send(0, CALIBRATION_SAMPLES + 14)  # 15 reach the estimator; its estimate is of the 10th
    wire.poll(7_000_000_000)
    assert wire.status["base_velocity"].tolist() == [CALIBRATION_SAMPLES + 9] * 3
    assert wire.status["contact"].tolist() == [1, 0]
    assert wire.status["contact_force"].tolist() == [300.0, 2.0]
    assert int(wire.status["contact_ns"]) == 7_000_000_000 - 5 * 2_000_000
    wire.poll(8_000_000_000)
    assert int(wire.status["contact_ns"]) == 7_000_000_000 - 5 * 2_000_000, "nothing new, so it grows older"


def test_samples_come_to_the_estimator_on_the_robots_clock() -> None:
    wire = Wire()
    wire.send(0, 300)
    wire.poll(1)
    np.testing.assert_allclose(np.diff(wire.estimator.times), 0.002, atol=1e-12)


def test_an_estimate_that_knows_nothing_yet_is_not_published() -> None:
    wire = Wire()
    wire.encoder.q[...] = np.nan
    for k in range(200):
        wire._waiting.append(Message(bytes(wire.encoder.seal(2 * k)), 2_000_000 * k))
    wire.poll(1)
    assert wire.feed.found is not None
    assert int(wire.status["contact_ns"]) == 0


@given(
    unit=st.sampled_from([(2, 1e-3), (1, 2e-3), (2000, 1e-6)]),
    start=st.integers(0, 2**32 - 1),
    slow=st.floats(0.8, 1.2),
)
def test_every_unit_of_the_counter_gives_seconds(unit: tuple[int, float], start: int, slow: float) -> None:
    """A simulator may run slow against the wall clock; its counter still means its own seconds."""
    step, _ = unit
    clock = TickTime()
    times = [
        clock.seconds((start + step * k) % 2**32, round(2_000_000 * slow * k))
        for k in range(CALIBRATION_SAMPLES + 50)
    ]
    assert times[:CALIBRATION_SAMPLES] == [None] * CALIBRATION_SAMPLES
    known = [time for time in times[CALIBRATION_SAMPLES:] if time is not None]
    np.testing.assert_allclose(np.diff(known), 0.002, atol=1e-9)


@pytest.mark.parametrize("jump", [-200_000, 3_000_000])
def test_a_restarted_counter_leaves_a_gap_and_goes_on(jump: int) -> None:
    clock = TickTime()
    ticks = [1_000_000 + 2 * k for k in range(200)]
    ticks += [1_000_400 + jump + 2 * k for k in range(100)]
    times = [clock.seconds(tick, 2_000_000 * k) or 0.0 for k, tick in enumerate(ticks)]
    steps = np.diff(times[CALIBRATION_SAMPLES:])
    np.testing.assert_allclose(np.delete(steps, 99), 0.002, atol=1e-9)
    assert steps[99] == pytest.approx(1.0)
