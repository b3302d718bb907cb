"""The dry pass before a tick: it changes nothing, and it comes at the last moment that is early enough."""

from collections.abc import Callable

import numpy as np
import pytest

from onboard.configs.events import Mode
from onboard.runtime.clock import GridClock
from onboard.runtime.rehearsal import LastMoment, Rehearsal
from onboard.runtime.watch import NoWatch
from tests.runtime.flight import Flight

MS = 1_000_000


def rehearsal(flight: Flight) -> Rehearsal:
    return Rehearsal(flight.loop, flight.plan, flight.port, NoWatch(), lambda: None)


def assert_same_rows(one: Flight, other: Flight) -> None:
    assert len(one.rows) == len(other.rows)
    for row, twin in zip(one.rows, other.rows, strict=True):
        for name in set(row.dtype.names or ()) - {"stage_ns"}:
            np.testing.assert_array_equal(row[name], twin[name], err_msg=name)


def test_a_whole_run_is_the_same_with_and_without() -> None:
    """From damping through ramp, policy, a button, a bad sample, a push and a fall to damping again."""
    plain, rehearsed = Flight(), Flight()
    rehearse = rehearsal(rehearsed)
    events: dict[int, Callable[[Flight], object]] = {
        5: lambda flight: flight.port.press("start"),
        190: lambda flight: flight.port.press("go"),
        191: lambda flight: flight.robot.physics.gantry.release(),
        200: lambda flight: flight.port.set_velocity((0.4, 0.0, 0.2)),
        230: lambda flight: flight.port.press("mark"),
        240: lambda flight: setattr(flight.robot.faults, "corrupt", 1),
        250: lambda flight: flight.robot.remote.press(0x800, flight.robot.physics.time_s + 0.1),
        270: lambda flight: flight.robot.physics.push((0.0, 600.0, 0.0), 0.3),
    }
    for tick in range(400):
        for flight in (plain, rehearsed):
            if tick in events:
                events[tick](flight)
        rehearse()
        for flight in (plain, rehearsed):
            flight.fly(1)
    assert_same_rows(plain, rehearsed)
    assert set(plain.column("mode")) == {Mode.DAMP, Mode.RAMP, Mode.HOLD, Mode.POLICY}
    assert plain.column("mark")[-1] == 2
    assert plain.column("safety_flag")[-1] != 0
    assert plain.loop.gate.limited() == rehearsed.loop.gate.limited()
    assert plain.loop.recorder.events_seen == rehearsed.loop.recorder.events_seen
    assert plain.loop.recorder.policy_rows == rehearsed.loop.recorder.policy_rows


class FakeClock(GridClock):
    """A grid whose time passes only while one sleeps or works."""

    def __init__(self) -> None:
        super().__init__(20 * MS)
        self.left = 0

    def doze(self, lead_ns: int) -> None:
        self.left = lead_ns

    def left_ns(self) -> int:
        return self.left


def settle(durations_ns: list[int]) -> tuple[LastMoment, list[int]]:
    """Let it learn from these durations; the moment, and what was left after each of the last 1000."""
    clock = FakeClock()
    left_after: list[int] = []
    durations = iter(durations_ns)

    def work() -> None:
        clock.left -= next(durations)
        left_after.append(clock.left)

    moment = LastMoment(clock, work)
    for _ in durations_ns:
        moment()
    return moment, left_after[-1000:]


@pytest.mark.parametrize("typical_ns", [100_000, 800_000, 3_000_000])
def test_the_work_ends_at_the_grid_point(typical_ns: int) -> None:
    noise = np.random.default_rng(1).normal(1.0, 0.05, 6000)
    moment, left = settle((typical_ns * noise).astype(int).tolist())
    assert moment.lead_ns == pytest.approx(typical_ns, rel=0.1)
    assert 0.4 < np.mean([after < 0 for after in left]) < 0.6


def test_one_pass_that_was_held_up_moves_the_lead_by_one_step() -> None:
    usual = [500_000] * 3000
    before, _ = settle(usual)
    after, _ = settle([*usual, 15 * MS])
    assert abs(after.lead_ns - before.lead_ns) <= 2 * LastMoment.STEP_NS


def test_the_lead_stays_within_bounds() -> None:
    assert settle([15 * MS] * 2000)[0].lead_ns == LastMoment.LONGEST_NS
    assert settle([0] * 2000)[0].lead_ns <= LastMoment.STEP_NS
