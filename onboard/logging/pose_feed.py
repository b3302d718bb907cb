"""Takes poses from outside as they arrive and tells the other processes the newest one."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from onboard.runtime.age import SenderClock
from onboard.runtime.external_pose import Pose

RESTART_NS = 1_000_000_000
"""A stamp that far behind the newest one is a sender that was restarted, not a message that came late."""


class PoseReader(Protocol):
    """Hands out every message that arrived, `onboard.runtime.external_pose.UdpPoses` or `DdsPoses`."""

    def take_all(self) -> Sequence[Pose | None]: ...  # noqa: D102 - oldest first; None for a bad one


class PoseFeed:
    """Keeps the newest pose.

    The sender has a clock of its own. How late a pose came is told by what its stamp's difference to our
    clock has on top of the smallest difference seen, so waiting in a queue counts as age, and the time
    that even the fastest message takes does not.

    Args:
        reader: of the messages.

    Attributes:
        received: messages so far.
        dropped: those of them that were damaged, no pose, late or repeated.
        fresh: the newest pose is newer than the last `report`.
    """

    def __init__(self, reader: PoseReader) -> None:
        self._reader = reader
        self._clock = SenderClock()
        self._newest: Pose | None = None
        self._made_ns = 0
        self.received = self.dropped = 0
        self.fresh = False

    def poll(self, now_ns: int) -> None:
        """Take what has arrived. Never blocks."""
        for pose in self._reader.take_all():
            self.received += 1
            if pose is None or not self._is_next(pose):
                self.dropped += 1
                continue
            self._newest, self.fresh = pose, True
            self._made_ns = now_ns - self._clock.age_ns(pose.stamp_ns, now_ns)

    def report(self, status: np.ndarray) -> None:
        """Write the newest pose and the counts into a `ports.RECORDER` record, 0-d."""
        status["external_received"], status["external_dropped"] = self.received, self.dropped
        pose = self._newest
        if pose is None or not self.fresh:
            return
        status["external_pose"][:3], status["external_pose"][3:] = pose.position_m, pose.quat_wxyz
        status["external_velocity"] = pose.velocity_m_s
        status["external_pose_ns"], status["external_recv_ns"] = pose.stamp_ns, self._made_ns
        self.fresh = False

    def _is_next(self, pose: Pose) -> bool:
        behind_ns = 0 if self._newest is None else self._newest.stamp_ns - pose.stamp_ns
        if behind_ns >= RESTART_NS:
            self._clock = SenderClock()
            return True
        return self._newest is None or behind_ns < 0
