"""Listening to `rt/lowstate` at its full rate: what got lost on the way, and every sample if asked for."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from onboard.configs.robot import N_JOINTS
from onboard.logging.estimation import EstimatorFeed
from onboard.logging.layout import lowstate_dtype
from onboard.runtime.wire import LOW_STATE, Frame

CALIBRATION_SAMPLES = 100
"""Differences between ticks that are looked at before one period counts as known."""

RESTART_TICKS = 1 << 20
"""A counter that moves by more than this, either way, was restarted: nothing got lost."""

RATE_WINDOW_NS = 1_000_000_000


class RawSample(Protocol):
    """One received message, `onboard.runtime.dds.Sample`."""

    @property
    def raw(self) -> bytes: ...  # noqa: D102 - header and CDR bytes

    @property
    def source_time_ns(self) -> int: ...  # noqa: D102 - the sender's clock


class SampleReader(Protocol):
    """Hands out every sample that arrived, `onboard.runtime.dds.RawReader`."""

    def take_all(self) -> Sequence[RawSample]: ...  # noqa: D102 - oldest first


class TickCounter:
    """Loss, reordering and duplicates by the robot's own counter.

    The counter's step per sample is what most neighbours differ by; until it is known, gaps are
    kept and counted afterwards.

    Attributes:
        gaps: samples missing between those that came; a late one that fills its gap is taken off.
        reordered: samples older than one before them.
        duplicates: samples with the tick of the newest one.
    """

    def __init__(self) -> None:
        self.gaps = self.reordered = self.duplicates = 0
        self._newest: int | None = None
        self._step = 0
        self._differences: Counter[int] = Counter()

    def see(self, robot_tick: int) -> None:
        """Count one good sample."""
        if self._newest is None:
            self._newest = robot_tick
            return
        moved = (robot_tick - self._newest + (1 << 31)) % (1 << 32) - (1 << 31)
        if abs(moved) > RESTART_TICKS:
            self._newest = robot_tick
        elif moved > 0:
            self._newest = robot_tick
            self._advance(moved)
        elif moved == 0:
            self.duplicates += 1
        else:
            self.reordered += 1
            self.gaps = max(0, self.gaps - 1)

    def _advance(self, moved: int) -> None:
        if self._step:
            self.gaps += max(0, round(moved / self._step) - 1)
            return
        self._differences[moved] += 1
        if self._differences.total() >= CALIBRATION_SAMPLES:
            self._step = self._differences.most_common(1)[0][0]
            self.gaps += sum(n * max(0, round(d / self._step) - 1) for d, n in self._differences.items())


class LowStateListener:
    """Counts every sample and passes every good one on, to an estimator and to whoever keeps it.

    Args:
        reader: of `rt/lowstate`, deep enough for what arrives between two polls.
        keep: takes every good one as a row of `lowstate_dtype`, 0-d and soon overwritten; None keeps none.
        feed: of an estimator, or None.
    """

    def __init__(
        self,
        reader: SampleReader,
        keep: Callable[[np.ndarray], None] | None,
        feed: EstimatorFeed | None = None,
    ) -> None:
        self._reader = reader
        self._keep = keep
        self._feed = feed
        self._frame = Frame(LOW_STATE)
        self._row = np.zeros((), lowstate_dtype())
        self._verdicts: deque[tuple[int, int, int]] = deque()
        self.ticks = TickCounter()
        self.received = 0
        self.crc_errors = 0

    def poll(self, now_ns: int | None = None) -> None:
        """Take what has arrived. Never blocks.

        Args:
            now_ns: what the samples are stamped with; None reads the clock once they are taken, so that
                whatever holds this process up makes a stamp late and never early.
        """
        bad_before, before = self.crc_errors, self.received
        samples = self._reader.take_all()
        now_ns = time.monotonic_ns() if now_ns is None else now_ns
        for sample in samples:
            self.received += 1
            if not (self._frame.load(sample.raw) and self._frame.checksum_holds()):
                self.crc_errors += 1
                continue
            self.ticks.see(int(self._frame.fields["tick"]))
            if self._feed is not None:
                self._feed.see(self._frame, sample.source_time_ns)
            if self._keep is not None:
                self._fill(sample.source_time_ns, now_ns)
                self._keep(self._row)
        self._verdicts.append((now_ns, self.received - before, self.crc_errors - bad_before))
        while self._verdicts[0][0] < now_ns - RATE_WINDOW_NS:
            self._verdicts.popleft()

    @property
    def crc_rate(self) -> float:
        """Share of bad samples over the last second."""
        received = sum(count for _, count, _ in self._verdicts)
        return sum(bad for _, _, bad in self._verdicts) / received if received else 0.0

    def _fill(self, source_time_ns: int, recv_ns: int) -> None:
        row, fields, joints = self._row, self._frame.fields, self._frame.motor[:N_JOINTS]
        row["source_time_ns"], row["recv_ns"], row["robot_tick"] = source_time_ns, recv_ns, fields["tick"]
        row["q"], row["dq"], row["ddq"], row["tau_est"] = (
            joints["q"],
            joints["dq"],
            joints["ddq"],
            joints["tau_est"],
        )
        row["quat_wxyz"], row["gyro_body"] = fields["quaternion"], fields["gyroscope"]
        row["accel_body"] = fields["accelerometer"]
        row["motor_voltage"], row["motor_temperature"] = joints["vol"], joints["temperature"]
