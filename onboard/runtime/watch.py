"""What control sees of the other processes, once a tick, from shared memory."""

import numpy as np

from onboard.configs.events import Event, bits
from onboard.configs.safety import SafetyConfig
from onboard.runtime.gateway_core import GatewayState, Reason
from onboard.runtime.ports import GATEWAY, OPERATOR, RECORDER
from onboard.runtime.shm import Shared

MS = 1_000_000
PARENT_LOST_NS = 200 * MS
RECORDER_LOST_NS = 500 * MS
ACCEPT_NS = 100 * MS
"""How long the gateway may take to accept a new session."""


class SharedWatch:
    """Reads the rings of gateway, recorder and parent.

    Args:
        shared: the run's mapping.
        safety: thresholds for the recorder's backlog, the free disk space and the share of bad checksums.
        has_gateway: false in a dry run.
    """

    def __init__(self, shared: Shared, safety: SafetyConfig, *, has_gateway: bool) -> None:
        self._shared = shared
        self._behind_rows = safety.limit(Event.RECORDER_BEHIND)
        self._disk_low_bytes = safety.limit(Event.DISK_LOW) * 1e6
        self._crc_share = safety.limit(Event.CRC_RATE)
        self._has_gateway = has_gateway
        self._gateway = np.zeros((), GATEWAY)
        self._recorder = np.zeros((), RECORDER)
        self._operator = np.zeros((), OPERATOR)
        self._session = 0
        self._session_ns = 0

    def look(self, now_ns: int, session: int, passing: bool) -> int:
        """Mask of what is wrong.

        Args:
            now_ns: CLOCK_MONOTONIC.
            session: control's session number.
            passing: control's last command asked to be passed on.
        """
        self._shared["operator"].latest(self._operator)
        raised = self._look_at_recorder(now_ns)
        if now_ns - int(self._operator["heartbeat_ns"]) > PARENT_LOST_NS:
            raised |= bits(Event.PARENT_LOST)
        if self._operator["terminal_lost"]:
            raised |= bits(Event.TERMINAL_LOST)
        if self._operator["gateway_lost"]:
            raised |= bits(Event.GATEWAY_LOST)
        if self._has_gateway:
            raised |= self._look_at_gateway(now_ns, session, passing)
        return raised

    def _look_at_recorder(self, now_ns: int) -> int:
        recorder = self._recorder
        self._shared["recorder"].latest(recorder)
        raised = 0
        if now_ns - int(recorder["heartbeat_ns"]) > RECORDER_LOST_NS:
            raised |= bits(Event.RECORDER_DEAD)
        if int(recorder["behind"]) > self._behind_rows or recorder["full"]:
            raised |= bits(Event.RECORDER_BEHIND)
        if int(recorder["disk_free"]) < self._disk_low_bytes:
            raised |= bits(Event.DISK_LOW)
        if float(recorder["crc_rate"]) > self._crc_share:
            raised |= bits(Event.CRC_RATE)  # over every sample; the gate itself sees one in ten
        return raised

    def _look_at_gateway(self, now_ns: int, session: int, passing: bool) -> int:
        gateway = self._gateway
        self._shared["gateway"].latest(gateway)
        if int(gateway["reason"]) == Reason.SECOND_PUBLISHER:
            return bits(Event.SECOND_PUBLISHER)
        if session != self._session:
            self._session, self._session_ns = session, now_ns
        if not passing or int(gateway["state"]) == GatewayState.PASSING:
            return 0
        due = int(gateway["session"]) >= session or now_ns - self._session_ns > ACCEPT_NS
        return bits(Event.GATEWAY_LATCHED) if due else 0


class NoWatch:
    """For a run in one process: there is nobody to look at."""

    def look(self, now_ns: int, session: int, passing: bool) -> int:
        """Nothing is ever wrong."""
        return 0
