import numpy as np

from onboard.configs.odometry import load_odometry
from onboard.policies.estimators.contact import ContactFlags, SupportWatch

CONFIG = load_odometry()
LEVEL = np.zeros(2)


def flags(forces: list[tuple[float, float]], height: np.ndarray = LEVEL, standing: bool = True) -> list[int]:
    """Flag of the left foot after each tick."""
    contact, seen = ContactFlags(CONFIG.contact), []
    for force in forces:
        contact.see(np.array(force), height, standing)
        seen.append(int(contact.flags[0]))
    return seen


def test_hysteresis() -> None:
    assert flags([(50, 0), (61, 0), (50, 0), (41, 0), (39, 0), (50, 0)]) == [0, 1, 1, 1, 0, 0]


def test_a_foot_above_the_other_does_not_stand() -> None:
    assert flags([(300, 300)], np.array([0.031, 0.0])) == [0]
    assert flags([(300, 300)], np.array([0.029, 0.0])) == [1]


def test_a_hanging_robot_needs_twice_the_force() -> None:
    assert flags([(110, 0), (130, 0), (90, 0), (70, 0)], standing=False) == [0, 1, 1, 0]


def test_support_is_found_and_lost_by_the_mean_share() -> None:
    support = SupportWatch(CONFIG.support)
    assert not support.standing
    for _ in range(100):
        support.see(300.0, 330.0, 0.02)
    assert support.standing
    support.see(0.0, 330.0, 0.02)
    assert support.standing, "one tick in flight is no hoist"
    for _ in range(50):
        support.see(10.0, 330.0, 0.02)
    assert not support.standing
    support.reset()
    assert support.carried == 0.0


def test_free_fall_says_nothing_about_support() -> None:
    support = SupportWatch(CONFIG.support)
    for _ in range(100):
        support.see(300.0, 330.0, 0.02)
    for _ in range(100):
        support.see(0.0, -1.0, 0.02)
    assert support.standing
