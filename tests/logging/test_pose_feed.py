"""The newest pose from outside, and how old it is by our clock."""

from collections.abc import Sequence

import numpy as np
import pytest

from onboard.logging.pose_feed import PoseFeed
from onboard.runtime.external_pose import Pose
from onboard.runtime.ports import RECORDER

MS = 1_000_000
BEHIND_NS = 77_000 * MS
"""The sender's clock shows that much less than ours."""


class Told:
    """A reader that hands out what the test says."""

    def __init__(self) -> None:
        self.waiting: list[Pose | None] = []

    def take_all(self) -> Sequence[Pose | None]:
        taken, self.waiting = self.waiting, []
        return taken


class Desk:
    """A feed, its reader and the record that it writes."""

    def __init__(self) -> None:
        self.reader = Told()
        self.feed = PoseFeed(self.reader)
        self.status = np.zeros((), RECORDER)

    def hear(self, now_ns: int, *poses: Pose | None) -> None:
        self.reader.waiting = list(poses)
        self.feed.poll(now_ns)
        self.feed.report(self.status)

    def age_ms(self, now_ns: int) -> float:
        return (now_ns - int(self.status["external_recv_ns"])) / MS


@pytest.fixture
def desk() -> Desk:
    return Desk()


def pose(made_ns: int, x: float = 0.0) -> Pose:
    """Made at a time by our clock, stamped by the sender's."""
    return Pose(
        made_ns - BEHIND_NS,
        np.array([x, 0.0, 0.8]),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.array([0.5, 0.0, 0.0], np.float32),
    )


def test_nothing_heard_is_nothing_told(desk: Desk) -> None:
    desk.hear(100_000 * MS)
    assert not desk.feed.fresh
    assert desk.status["external_pose_ns"] == desk.status["external_recv_ns"] == 0


def test_the_newest_of_several_is_told_once(desk: Desk) -> None:
    start = 100_000 * MS
    desk.reader.waiting = [pose(start + 1 * MS, x=1.0), pose(start + 5 * MS, x=2.0)]
    desk.feed.poll(start + 6 * MS)
    assert desk.feed.fresh
    desk.feed.report(desk.status)
    assert not desk.feed.fresh
    assert desk.status["external_pose"].tolist() == [2.0, 0.0, 0.8, 1.0, 0.0, 0.0, 0.0]
    assert desk.status["external_velocity"].tolist() == [0.5, 0.0, 0.0]
    assert desk.status["external_pose_ns"] == start + 5 * MS - BEHIND_NS


def test_damaged_late_and_repeated_messages_are_counted_and_change_nothing(desk: Desk) -> None:
    start = 100_000 * MS
    desk.hear(start + 20 * MS, pose(start + 10 * MS, x=1.0))
    desk.hear(start + 30 * MS, None, pose(start, x=3.0), pose(start + 10 * MS, x=4.0))
    assert (desk.status["external_received"], desk.status["external_dropped"]) == (4, 3)
    assert desk.status["external_pose"][0] == 1.0
    assert desk.age_ms(start + 30 * MS) == pytest.approx(10.0)


def test_time_in_a_queue_is_age_and_the_clocks_difference_is_not(desk: Desk) -> None:
    start = 100_000 * MS
    for k in range(10):
        made_ns = start + 10 * k * MS
        desk.hear(made_ns + 2 * MS, pose(made_ns))
        assert desk.age_ms(made_ns + 2 * MS) == 0.0
    late_ns = start + 100 * MS
    desk.hear(late_ns + 152 * MS, pose(late_ns))
    assert desk.age_ms(late_ns + 152 * MS) == pytest.approx(150.0, abs=0.2)


def test_a_sender_that_starts_again_is_heard_again(desk: Desk) -> None:
    start = 100_000 * MS
    desk.hear(start, pose(start, x=1.0))
    restarted = pose(start, x=2.0)._replace(stamp_ns=5)
    desk.hear(start + 40 * MS, restarted)
    assert desk.status["external_pose"][0] == 2.0
    assert desk.status["external_pose_ns"] == 5
    assert desk.age_ms(start + 40 * MS) == 0.0
    assert desk.feed.dropped == 0
