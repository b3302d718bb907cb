"""How old a sample is, when the sender's clock is not ours.

DDS gives no time of reception and the newest sample is taken on demand, so what is known of a
sample is when the sender says it wrote it. The smallest difference ever seen between that and our
clock belongs to the freshest sample; whatever a later sample has on top of it is its age.

Clocks drift, so the smallest difference may rise slowly: by 500 ppm, the most that time
synchronisation slews a clock, against some 50 ppm between two free quartz clocks. The robot's own
counter serves as a second such clock: a step of the sender's wall clock (set by hand, or by time
synchronisation) must not look like an old state.
"""

_DRIFT_PPM = 500
_DISAGREE_NS = 50_000_000
_TICK_NS = 1_000_000  # milliseconds in every simulator known; checked against the clock before use
_CALIBRATION_NS = 1_000_000_000
_TICK_PERIOD = 1 << 32


class SenderClock:
    """One clock of the sender, related to ours by the smallest difference seen."""

    def __init__(self) -> None:
        self._floor_ns: int | None = None
        self._recv_ns = 0

    def age_ns(self, sent_ns: int, recv_ns: int) -> int:
        """Age at `recv_ns` (our clock) of what was sent at `sent_ns` (theirs)."""
        difference = recv_ns - sent_ns
        if self._floor_ns is None or difference <= self._floor_ns:
            self._floor_ns = difference
        else:
            rise_ns = (recv_ns - self._recv_ns) * _DRIFT_PPM // 1_000_000
            self._floor_ns = min(self._floor_ns + rise_ns, difference)
        self._recv_ns = recv_ns
        return difference - self._floor_ns

    def set(self, sent_ns: int, recv_ns: int, age_ns: int) -> None:
        """Start again from a sample whose age is known from elsewhere."""
        self._floor_ns = recv_ns - sent_ns - age_ns
        self._recv_ns = recv_ns


class SampleAge:
    """Age of state samples from the source stamp and the robot's tick, whichever makes it smaller.

    Both grow when samples really come late. When only one does, that clock was set, or counts in
    another unit, and the other one is right; a clock that disagrees by more than 50 ms is restarted.
    The tick takes part once it has been seen to count milliseconds (within 1 %, over a second), or
    from the start where there is no usable source stamp.
    """

    def __init__(self) -> None:
        self._source, self._tick = SenderClock(), SenderClock()
        self._first: tuple[int, int] | None = None
        self._last_tick = 0
        self._tick_base = 0
        self._tick_counts_ms = False

    def at_reception_ns(self, source_time_ns: int, robot_tick: int, recv_ns: int) -> int:
        """Age of a sample at the moment it was taken.

        Args:
            source_time_ns: the sender's stamp; 0 or less means that there is none.
            robot_tick: LowState's counter, wraps at 2³².
            recv_ns: CLOCK_MONOTONIC of this machine.
        """
        tick_ns = self._unwrapped_ns(robot_tick)
        by_tick = self._tick.age_ns(tick_ns, recv_ns)
        if source_time_ns <= 0:
            return by_tick
        by_source = self._source.age_ns(source_time_ns, recv_ns)
        if not self._calibrated(tick_ns, recv_ns):
            return by_source
        if by_source - by_tick > _DISAGREE_NS:
            self._source.set(source_time_ns, recv_ns, by_tick)
        elif by_tick - by_source > _DISAGREE_NS:
            self._tick.set(tick_ns, recv_ns, by_source)
        return min(by_source, by_tick)

    def _unwrapped_ns(self, robot_tick: int) -> int:
        if robot_tick < self._last_tick - _TICK_PERIOD // 2:
            self._tick_base += _TICK_PERIOD
        self._last_tick = robot_tick
        return (self._tick_base + robot_tick) * _TICK_NS

    def _calibrated(self, tick_ns: int, recv_ns: int) -> bool:
        """Whether the tick counts milliseconds, judged anew every second."""
        if self._first is None:
            self._first = tick_ns, recv_ns
        elapsed_ns = recv_ns - self._first[1]
        if elapsed_ns >= _CALIBRATION_NS:
            advance_ns = tick_ns - self._first[0]
            self._tick_counts_ms = abs(advance_ns - elapsed_ns) < 0.01 * elapsed_ns + 5_000_000
            self._first = tick_ns, recv_ns
        return self._tick_counts_ms
