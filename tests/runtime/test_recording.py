"""The recorder's entry: the estimator that it hands in, fed with the simulator's messages."""

from typing import NamedTuple

import msgspec
import numpy as np

from onboard.configs.robot import load_robot
from onboard.logging.estimation import EstimatorFeed
from onboard.logging.lowstate import LowStateListener
from onboard.runtime.ports import RECORDER
from onboard.runtime.recording import estimator
from onboard.runtime.wire import LowStateEncoder
from tests.runtime.flight import Flight


def described(name: str) -> str:
    return msgspec.json.encode(load_robot(name)).decode()


class Message(NamedTuple):
    raw: bytes
    source_time_ns: int


def test_a_walk_over_the_wire_ends_in_the_port() -> None:
    """The messages of a walk, as the recorder takes them; what it publishes is what the robot does."""
    flight, encoder = Flight(), LowStateEncoder(5)
    messages: list[Message] = []

    def send() -> None:
        flight.robot.sense(encoder)
        now = flight.link.now_ns
        messages.append(Message(bytes(encoder.seal(flight.robot.tick)), now))

    flight.link.after_step = send
    flight.walk(0.5, ticks=200)
    made = estimator(described("g1_29dof"))
    assert made is not None
    feed, status = EstimatorFeed(made), np.zeros((), RECORDER)
    LowStateListener(Box(messages), None, feed).poll(flight.link.now_ns)
    feed.report(status, flight.link.now_ns)
    truth = flight.robot.physics.truth()
    np.testing.assert_allclose(status["base_velocity"], truth.velocity_body_m_s, atol=0.05)
    assert status["base_velocity"][0] > 0.2
    assert status["contact_force"].sum() > 150.0
    assert status["contact"].max() == 1
    assert 0 <= flight.link.now_ns - int(status["contact_ns"]) < 20_000_000


class Box:
    """A reader that has everything at once."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages

    def take_all(self) -> list[Message]:
        return self._messages


def test_a_robot_without_a_table_of_links_has_no_estimator() -> None:
    assert estimator(described("g1_23dof")) is None
