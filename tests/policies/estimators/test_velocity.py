import numpy as np
import pytest

from onboard.configs.odometry import load_odometry
from onboard.policies.estimators.velocity import LegSaying, VelocityFilter

STILL = np.zeros(3)
GOAL = np.array([0.5, -0.1, 0.02])


def leg(
    velocity: np.ndarray = GOAL, share: float = 1.0, rolling: float = 0.0, loading: float = 0.0
) -> LegSaying:
    return LegSaying(velocity, share, rolling, loading)


@pytest.fixture
def settled() -> VelocityFilter:
    """A filter that has heard a standing leg for a while."""
    made = VelocityFilter(load_odometry().velocity)
    for _ in range(100):
        made.predict(STILL, 0.02)
        made.correct([leg(STILL)])
    return made


def step_of(made: VelocityFilter, saying: LegSaying) -> np.ndarray:
    """How far one word of a leg moves the filter."""
    before = made.velocity.copy()
    made.predict(STILL, 0.02)
    made.correct([saying])
    moved: np.ndarray = made.velocity - before
    return moved


def test_it_follows_the_accelerometer_between_and_the_legs_in_the_long_run(settled: VelocityFilter) -> None:
    settled.predict(np.array([10.0, 0.0, 0.0]), 0.02)
    np.testing.assert_allclose(settled.velocity, [0.2, 0, 0], atol=1e-12)
    for _ in range(200):
        settled.predict(STILL, 0.02)
        settled.correct([leg()])
    np.testing.assert_allclose(settled.velocity, GOAL, atol=1e-3)


@pytest.mark.parametrize("doubt", [{"share": 0.4}, {"rolling": 2.0}])
def test_a_leg_with_little_load_or_a_rolling_foot_counts_less(doubt: dict[str, float]) -> None:
    moved = []
    for saying in (leg(0.1 * GOAL), leg(0.1 * GOAL, **doubt)):
        made = VelocityFilter(load_odometry().velocity)
        for _ in range(100):
            made.predict(STILL, 0.02)
            made.correct([leg(STILL)])
        moved.append(step_of(made, saying)[0])
    assert 0 < moved[1] < 0.5 * moved[0]


def test_changing_load_makes_the_vertical_doubtful_alone(settled: VelocityFilter) -> None:
    x, y, z = step_of(settled, leg(np.full(3, 0.05), loading=8000.0))
    assert x == pytest.approx(y)
    assert z < 0.3 * x


def test_a_slipping_foot_moves_it_less_the_faster_it_slips(settled: VelocityFilter) -> None:
    slow = step_of(settled, leg(np.array([0.2, 0, 0])))[0]
    settled.velocity[:] = 0.0
    fast = step_of(settled, leg(np.array([2.0, 0, 0])))[0]
    assert fast < slow


def test_in_the_air_it_comes_to_rest_slowly(settled: VelocityFilter) -> None:
    settled.velocity[:] = GOAL
    for _ in range(15):
        settled.predict(STILL, 0.02)
        settled.correct([])
    assert settled.velocity[0] > 0.9 * GOAL[0], "a flight phase must not stop it"
    for _ in range(1000):
        settled.predict(STILL, 0.02)
        settled.correct([])
    assert abs(settled.velocity[0]) < 0.01
