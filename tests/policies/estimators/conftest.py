"""Short walks in the simulator that the estimator's tests listen to."""

import pytest

from onboard.analysis.odometry_walk import Walk, WalkPlan, record_walk
from onboard.configs.errors import OnboardError
from onboard.configs.robot import load_robot
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy


@pytest.fixture(scope="session")
def walker() -> Policy:
    robot = load_robot("g1_29dof")
    try:
        return Policy(load_policy("holosoma_loco_ppo", robot), robot)
    except OnboardError as error:
        pytest.skip(f"holosoma's walker is not installed: {error}")


@pytest.fixture(scope="session")
def walk(walker: Policy) -> Walk:
    """Six seconds, two of them standing, with two pushes."""
    return record_walk(walker, WalkPlan(seconds=6.0, stand_s=2.0, pushes=2), seed=3)


@pytest.fixture(scope="session")
def hanging(walker: Policy) -> Walk:
    """The same policy with its feet in the air."""
    return record_walk(walker, WalkPlan(seconds=5.0, stand_s=1.0, pushes=0, hanging=True), seed=3)
