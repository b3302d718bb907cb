"""What counts as standing, what a damped robot may do, and what a stop is called in the rollout."""

import pytest

from onboard.configs.events import Event, Mode, Tier, bits
from onboard.safety.events import Flag
from tests.safety.support import ROBOT, Bench, quaternion

ANKLE_ROLL = 5
STANDING = 10


def test_standing_needs_ten_calm_ticks() -> None:
    bench = Bench()
    for tick in range(1, 30):
        bench.tick()
        assert bench.gate.standing == (tick >= STANDING)


@pytest.mark.parametrize(
    ("name", "index", "still", "moving"),
    [("gyro_body", 1, -0.29, -0.31), ("dq", 7, -0.99, -1.01), ("dq", 28, 0.99, 1.01)],
)
def test_motion_ends_standing(name: str, index: int, still: float, moving: float) -> None:
    bench = Bench()
    getattr(bench.state, name)[index] = still
    for _ in range(STANDING):
        bench.tick()
    assert bench.gate.standing
    getattr(bench.state, name)[index] = moving
    bench.tick()
    assert not bench.gate.standing
    getattr(bench.state, name)[index] = still
    for tick in range(1, 13):
        bench.tick()
        assert bench.gate.standing == (tick >= STANDING)


@pytest.mark.parametrize(("roll", "standing"), [(0.34, True), (0.36, False)])
def test_a_leaning_robot_does_not_stand(roll: float, standing: bool) -> None:
    bench = Bench()
    bench.state.quat_wxyz[:] = quaternion(roll=roll)
    for _ in range(STANDING):
        bench.tick()
    assert bench.gate.standing == standing


def test_a_foot_known_to_be_in_the_air_is_no_stance() -> None:
    bench = Bench()
    for _ in range(STANDING):
        bench.tick()
    assert bench.gate.standing
    bench.airborne = True
    bench.tick()
    assert not bench.gate.standing
    bench.airborne = False
    bench.tick()
    assert bench.gate.standing


def test_a_damped_robot_may_sink_and_lie_without_a_word() -> None:
    bench = Bench()
    bench.mode = Mode.DAMP
    bench.tick()
    bench.state.quat_wxyz[:] = quaternion(pitch=1.4)
    bench.state.gyro_body[:] = 9
    bench.state.q[ANKLE_ROLL] = ROBOT.upper[ANKLE_ROLL] + 0.1
    for _ in range(100):
        assert bench.tick() is Tier.NONE
        assert bench.gate.events == 0
        assert bench.gate.flag == Flag.NORMAL
        assert not bench.gate.clear, "but it can't be started like that"


def test_a_gateway_that_is_latched_does_not_block_the_rearming_that_frees_it() -> None:
    bench = Bench()
    bench.mode = Mode.DAMP
    for _ in range(10):
        assert bench.tick(Event.GATEWAY_LATCHED) is Tier.NONE
    assert bench.gate.clear
    bench.gate.rearm()
    bench.mode = Mode.RAMP
    assert [bench.tick(Event.GATEWAY_LATCHED) for _ in range(3)] == [Tier.NONE, Tier.NONE, Tier.DAMP]


def fall(bench: Bench, *, roll: float = 1.3, ticks: int = 2) -> None:
    bench.state.quat_wxyz[:] = quaternion(roll=roll)
    for _ in range(ticks):
        bench.tick()


def test_a_fall_is_flagged_as_one() -> None:
    bench = Bench()
    bench.tick()
    fall(bench)
    assert bench.gate.flag == Flag.FALL
    bench.tick(Event.EMERGENCY_STOP)
    assert bench.gate.flag == Flag.FALL, "the first cause stays"


def test_a_tilt_that_becomes_a_fall_while_damping_is_flagged_as_a_fall() -> None:
    bench = Bench()
    bench.tick()
    fall(bench, roll=0.9)
    assert bench.gate.flag == Flag.OTHER_STOP
    bench.mode = Mode.DAMP
    fall(bench)
    assert bench.gate.flag == Flag.FALL
    assert bench.fires(Event.FALL)
    assert not bench.fires(Event.ROLL)


def test_a_tilt_without_recovery_is_a_fall_after_a_second() -> None:
    bench = Bench()
    bench.tick()
    fall(bench, roll=0.9)
    bench.mode = Mode.DAMP
    fall(bench, roll=0.9, ticks=47)
    assert bench.gate.flag == Flag.OTHER_STOP
    fall(bench, roll=0.9, ticks=1)
    assert bench.gate.flag == Flag.FALL


def test_lying_after_another_stop_is_not_a_fall() -> None:
    bench = Bench()
    bench.tick()
    bench.tick(Event.TERMINAL_LOST)
    bench.mode = Mode.DAMP
    fall(bench, ticks=100)
    assert bench.gate.flag == Flag.OTHER_STOP
    assert bench.gate.events == 0


def test_the_emergency_stop_is_flagged_as_one_even_when_the_robot_then_lies() -> None:
    bench = Bench()
    bench.tick()
    assert bench.tick() is Tier.NONE
    assert bench.gate.report(bits(Event.EMERGENCY_STOP)) is Tier.DAMP
    assert bench.gate.flag == Flag.EMERGENCY_STOP
    assert not bench.gate.clear
    bench.mode = Mode.DAMP
    fall(bench, ticks=100)
    assert bench.gate.flag == Flag.EMERGENCY_STOP
