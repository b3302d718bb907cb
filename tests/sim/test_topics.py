"""What the simulated robot does to its messages is what their listener counts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from onboard.logging.lowstate import CALIBRATION_SAMPLES, LowStateListener
from onboard.runtime import idl
from onboard.sim.console import parse
from onboard.sim.robot import SimRobot
from onboard.sim.topics import Topics

MakeRobot = Callable[..., SimRobot]


class Message(NamedTuple):
    """One message as it was sent."""

    raw: bytes
    source_time_ns: int = 0


class Wire:
    """A domain whose LowState goes straight to one reader."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def reader(self, *_: object, **__: object) -> "Wire":
        return Wire()

    def writer(self, topic: str, _kind: object) -> Any:
        return self if topic == idl.LOW_STATE_TOPIC else Wire()

    def write(self, data: bytes | bytearray) -> None:
        self.messages.append(Message(bytes(data)))

    def take_all(self) -> list[Message]:
        taken, self.messages = self.messages, []
        return taken


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("fault lost 7", (7, 0, 0, 0)),
        ("fault reordered 5", (0, 5, 0, 0)),
        ("fault duplicated 9", (0, 0, 9, 0)),
        ("fault frozen 4", (4, 0, 4, 0)),
        ("fault corrupt 6", (6, 0, 0, 6)),
        ("fault loss 0.1", (19, 0, 0, 0)),
    ],
)
def test_the_listener_counts_what_was_injected(
    released: MakeRobot, line: str, counts: tuple[int, int, int, int]
) -> None:
    wire, robot = Wire(), released()
    topics, listener = Topics(wire, robot), LowStateListener(wire, None)  # type: ignore[arg-type]
    for period in range(CALIBRATION_SAMPLES + 200):
        if period == CALIBRATION_SAMPLES + 10:
            parse(line)(robot)
        robot.advance()
        topics.publish(period)
    robot.faults.loss = 0.0
    robot.advance()
    topics.publish(0)
    listener.poll(0)
    ticks = listener.ticks
    assert (ticks.gaps, ticks.reordered, ticks.duplicates, listener.crc_errors) == counts
