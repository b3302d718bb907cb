"""Robots for the tests of this room."""

from collections.abc import Callable

import pytest

from onboard.configs.sim import load_sim
from onboard.sim.physics import Physics
from onboard.sim.robot import SimRobot

MakeRobot = Callable[..., SimRobot]


@pytest.fixture
def released() -> MakeRobot:
    """Makes a robot without its built-in controller; arguments are overrides of the configuration."""
    return lambda *overrides: SimRobot(load_sim(overrides=["builtin.active=false", *overrides]))


@pytest.fixture
def body() -> Callable[..., Physics]:
    """Makes a robot's body alone."""
    return lambda *overrides: Physics(load_sim(overrides=list(overrides)))
