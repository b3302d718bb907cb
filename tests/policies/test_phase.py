import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.policies.command import MotionCommand
from onboard.policies.contract import Gait, Still
from onboard.policies.phase import GaitClock

PERIOD_S = 0.02
TWO_FEET = Gait(
    period_s=1.0,
    offsets_rad=(0.0, math.pi),
    still=Still(when="slow", below=0.01, angle_rad=math.pi, restart=True),
)
GATED = Gait(period_s=0.9, offsets_rad=(0.0,), still=Still(when="stand_flag", angle_rad=0.0, restart=False))
FREE = Gait(period_s=2 / 3, offsets_rad=(0.0, math.pi))


def command(vx: float = 0.0, vy: float = 0.0, wz: float = 0.0) -> MotionCommand:
    asked = MotionCommand()
    asked.set_velocity(vx, vy, wz)
    return asked


def ticks(clock: GaitClock, commands: list[MotionCommand]) -> list[list[float]]:
    angles = []
    for step, asked in enumerate(commands):
        clock.update(step, asked)
        angles.append(clock.angles_rad)
        clock.commit()
    return angles


def test_two_feet_stand_together_and_the_first_moving_tick_starts_at_the_offsets() -> None:
    clock = GaitClock(TWO_FEET, PERIOD_S)
    angles = ticks(clock, [command()] * 3 + [command(0.5)] * 3 + [command()] + [command(wz=0.2)] * 2)
    turn = 2 * math.pi * 0.02
    assert angles[:3] == [[math.pi, math.pi]] * 3
    assert angles[3] == [0.0, math.pi]
    assert angles[4] == pytest.approx([turn, turn - math.pi])
    assert angles[6] == [math.pi, math.pi]
    assert angles[7] == [0.0, math.pi]
    assert angles[8] == pytest.approx([turn, turn - math.pi])


def test_a_policy_that_starts_moving_starts_at_the_offsets() -> None:
    assert ticks(GaitClock(TWO_FEET, PERIOD_S), [command(0.5)])[0] == [0.0, math.pi]


@pytest.mark.parametrize(("speed", "stands"), [(0.0099, True), (0.0101, False)])
def test_slow_means_both_linear_and_angular_speed(speed: float, stands: bool) -> None:
    for asked in (command(vx=speed), command(vy=-speed), command(wz=speed)):
        assert (ticks(GaitClock(TWO_FEET, PERIOD_S), [asked])[0] == [math.pi, math.pi]) is stands


def test_the_stand_gated_clock_goes_on_unseen() -> None:
    angles = ticks(GaitClock(GATED, PERIOD_S), [command()] * 7 + [command(0.5)])
    assert angles[:7] == [[0.0]] * 7
    assert angles[7] == pytest.approx([2 * math.pi * 0.14 / 0.9])


def test_a_clock_without_still_never_stops() -> None:
    angles = ticks(GaitClock(FREE, PERIOD_S), [command()] * 2)
    assert angles[0] == [0.0, math.pi]
    assert angles[1] == pytest.approx([2 * math.pi * 1.5 * 0.02, 2 * math.pi * 1.5 * 0.02 - math.pi])


def test_a_tick_that_is_not_committed_leaves_no_trace() -> None:
    clock = GaitClock(TWO_FEET, PERIOD_S)
    clock.update(0, command(0.5))  # its inference failed, say
    clock.update(1, command(0.5))
    assert clock.angles_rad == [0.0, math.pi]
    clock.commit()
    clock.update(2, command(0.5))
    assert clock.angles_rad[0] == pytest.approx(2 * math.pi * 0.02)


@given(st.integers(0, 10**6))
def test_skipped_periods_count_and_angles_stay_in_range(step: int) -> None:
    clock = GaitClock(FREE, PERIOD_S)
    clock.update(step, command())
    for angle, offset in zip(clock.angles_rad, FREE.offsets_rad, strict=True):
        assert abs(angle) <= math.pi + 1e-9
        turned = offset + 2 * math.pi * 1.5 * 0.02 * step
        assert math.cos(angle) == pytest.approx(math.cos(turned), abs=1e-6)
        assert math.sin(angle) == pytest.approx(math.sin(turned), abs=1e-6)
