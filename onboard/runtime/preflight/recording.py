"""A probe's rollout on one clock: what was sent when, and how the joints moved, 500 times a second.

The robot counts time itself and stamps nothing with our clock. Every sample is received later than it
was made, sometimes much later, never earlier: so the robot's clock is laid along the lowest edge of the
receive times, stretch by stretch, because two clocks drift apart.
"""

from typing import NamedTuple

import numpy as np

from onboard.configs.errors import RolloutError
from onboard.configs.events import Mode
from onboard.logging.layout import NOT_PUBLISHED
from onboard.logging.rollout import Rollout
from onboard.policies.bench_signals import Course
from onboard.policies.estimators.kinematics import Float64Array

EDGE_PERCENT = 0.5
"""The lowest edge, less what a hold-up between stamping and taking may have put below it."""
AROUND_S = 3.0
"""So much before and after a stretch counts for its clock."""
SETTLE_S = 0.3
"""After the last target of a segment the joints still come to rest."""
BEFORE_S = 0.05
HEARD_SHARE = 0.9
"""Of a segment's ticks and samples: with fewer it is as if it had not been played."""


class Samples(NamedTuple):
    """Part of the full-rate stream.

    Attributes:
        time_s: (n,) when each was made, CLOCK_MONOTONIC of this machine.
        q, dq, tau_est: (n, 29) rad, rad/s, N·m.
        gyro, accel: (n, 3) rad/s and m/s², of the pelvis in its own frame.
    """

    time_s: Float64Array
    q: Float64Array
    dq: Float64Array
    tau_est: Float64Array
    gyro: Float64Array
    accel: Float64Array


class Recording:
    """One probe, as far as it was played.

    Args:
        rollout: of a bench run with the full-rate stream; may be closed afterwards.
        course: that was played.

    Raises:
        RolloutError: nothing was played, or the stream was not recorded.
    """

    def __init__(self, rollout: Rollout, course: Course) -> None:
        stream = [rollout.lowstate(name) for name in ("q", "dq", "tau_est", "gyro_body", "accel_body")]
        self._stream = [column.astype(np.float64) for column in stream]
        self._robot_s: Float64Array = rollout.lowstate("time_s").astype(np.float64)
        self._recv_s: Float64Array = rollout.lowstate("recv_ns") * 1e-9
        self._period_s = float(np.median(np.diff(self._robot_s))) if self._robot_s.size > 1 else np.inf
        mode, sent = rollout.column("mode"), rollout.column("send_ns")
        published = (sent != NOT_PUBLISHED) & np.isin(mode, (Mode.HOLD, Mode.POLICY))
        self._sent_s: Float64Array = sent[published] * 1e-9
        self._sent: Float64Array = rollout.column("action_sent")[published].astype(np.float64)
        playing = np.flatnonzero((mode == Mode.POLICY) & published)
        if not playing.size or not self._robot_s.size:
            raise RolloutError(f"{rollout.path}: the robot ended before anything was played")
        log = rollout.policies[0]
        played = dict(zip(log.rows.tolist(), log.column("obs")[:, 0].astype(int).tolist(), strict=True))
        course_row = np.array([played[row] for row in playing.tolist()])
        self._segment = course.segment[course_row]
        self._segment_s: Float64Array = sent[playing] * 1e-9
        self._lengths = np.bincount(course.segment[course.segment >= 0])

    def span_s(self, segment: int) -> tuple[float, float] | None:
        """First and last target of a segment, our clock; None when it was not played, or not heard."""
        times = self._segment_s[self._segment == segment]
        if times.size < HEARD_SHARE * self._lengths[segment] or self._sent_s[-1] < times[-1] + SETTLE_S:
            return None
        begin_s, end_s = float(times[0]), float(times[-1])
        heard = self.samples(begin_s, end_s).time_s.size
        return (begin_s, end_s) if heard > HEARD_SHARE * (end_s - begin_s) / self._period_s else None

    def rest(self) -> Samples:
        """The pose before the first segment, still and under the probe's gains."""
        moving = np.flatnonzero(self._segment >= 0)
        end = float(self._segment_s[moving[0]]) if moving.size else float(self._sent_s[-1])
        return self.samples(end - 0.2, end)

    def samples(self, begin_s: float, end_s: float) -> Samples:
        """The stream between two instants of our clock."""
        rough = self._recv_s - self._robot_s
        near = np.abs(self._recv_s - 0.5 * (begin_s + end_s)) < 0.5 * (end_s - begin_s) + AROUND_S
        offset_s = float(np.percentile(rough[near], EDGE_PERCENT)) if near.any() else 0.0
        time_s = self._robot_s + offset_s
        part = slice(*np.searchsorted(time_s, (begin_s, end_s)))
        return Samples(time_s[part], *(column[part] for column in self._stream))

    def asked(self, joint: int, time_s: Float64Array, lags_s: Float64Array) -> Float64Array:
        """(lags, n) rad·s, a joint's target, so much later, integrated since the first instant.

        A target holds from its publication by the gateway until the next one.
        """
        times = np.append(self._sent_s, self._sent_s[-1] + 60.0)
        total = np.concatenate([[0.0], np.cumsum(np.diff(times) * self._sent[:, joint])])
        late: Float64Array = np.interp(time_s[None] - lags_s[:, None], times, total)
        return late - late[:, :1]
