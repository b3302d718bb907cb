"""What the operator asks for, whichever way it comes: the remote's bytes, keys, or a script.

Keys and scripts live in the parent, which presses "buttons" through edge counters in shared memory
(`ports.OPERATOR`); the remote's bytes come with the state. Both are merged here, once a tick.
"""

import math
from typing import Protocol

import numpy as np

from onboard.configs.run import Sticks
from onboard.runtime.link import Float32Array, State
from onboard.runtime.ports import OPERATOR
from onboard.runtime.remote import DAMP, GO, LIMP, MARK, NEXT_POLICY, START, STOP, keys, sticks

NEXT = -1
"""The policy after the one in charge."""

_ACTIONS = (("start", START), ("go", GO), ("stop", STOP), ("damp", DAMP), ("limp", LIMP), ("mark", MARK))


Ranges = tuple[tuple[float, float], ...]
"""((low, high), ...) of vx, vy, wz; m/s, m/s, rad/s."""


class Port(Protocol):
    """Where keys and scripts press buttons: a shared-memory ring, or a record in this process."""

    def latest(self, out: np.ndarray) -> int:
        """Copy the newest `ports.OPERATOR` record into `out`; 0 when there is none."""


class LocalPort:
    """A port in this process, for a run without a parent.

    Args:
        record: 0-d `ports.OPERATOR`; shared with whoever else must see the presses.
    """

    def __init__(self, record: np.ndarray) -> None:
        self.record = record

    def latest(self, out: np.ndarray) -> int:
        """Copy the record into `out`."""
        out[...] = self.record
        return 1

    def press(self, action: str) -> None:
        """Press a button."""
        self.record[f"{action}s"] += 1

    def switch(self, index: int) -> None:
        """Ask for another policy."""
        self.record["switch_to"] = index
        self.record["switches"] += 1

    def request(self, name: str) -> None:
        """Raise a flag."""
        self.record[name] = 1

    def set_velocity(self, velocity: tuple[float, float, float]) -> None:
        """Take the velocity over from the remote's sticks; m/s, m/s, rad/s."""
        self.record["velocity"], self.record["velocity_valid"] = velocity, 1


class OperatorInput:
    """The operator's wishes in one tick.

    Attributes:
        start, go, stop, limp, mark: pressed since the last tick.
        damp: the emergency stop is pressed now.
        stop_request: the run shall end in order.
        damp_request: the run shall damp now and end.
        terminal_lost: the terminal that the run was started from is gone.
        switch: index of the policy asked for since the last tick, -1 the next one; None for no wish.
        velocity: (3,) vx, vy, wz, clamped to the policy's command ranges.
        marks: how often mark was pressed so far.
        connected: the remote's bytes are not all zero.
    """

    __slots__ = (
        "connected",
        "damp",
        "damp_request",
        "go",
        "limp",
        "mark",
        "marks",
        "start",
        "stop",
        "stop_request",
        "switch",
        "terminal_lost",
        "velocity",
    )

    def __init__(self) -> None:
        self.start = self.go = self.stop = self.damp = self.limp = self.mark = False
        self.stop_request = self.damp_request = self.terminal_lost = self.connected = False
        self.marks = 0
        self.switch: int | None = None
        self.velocity: Float32Array = np.zeros(3, np.float32)


class Operator:
    """Merges remote and port.

    Args:
        port: keys and scripts.
        config: stick mapping.
        ranges: ((low, high), ...) for vx, vy, wz, from the policy's contract.
        period_s: control period, for the smoothing.
    """

    def __init__(self, port: Port, config: Sticks, ranges: Ranges, period_s: float) -> None:
        self._port = port
        self._record = np.zeros((), OPERATOR)
        self._counters: dict[str, int] = {}
        self._keys = 0
        self._switches = 0
        self._config = config
        self._keep = math.exp(-period_s / config.smoothing_s) if config.smoothing_s > 0 else 0.0
        self._smooth = [0.0, 0.0, 0.0]
        self._input = OperatorInput()
        self.set_ranges(ranges)

    def set_ranges(self, ranges: Ranges) -> None:
        """Take over the command ranges of another policy."""
        self._ranges = ranges

    def read(self, state: State) -> OperatorInput:
        """The wishes of this tick; always the same object."""
        asked, record, remote = self._input, self._record, state.remote.data
        self._port.latest(record)
        now = keys(remote)
        if not self._counters:
            # What was pressed before the first look, such as the release's confirmation, is no wish.
            self._counters = {name: int(record[f"{name}s"]) for name, _ in _ACTIONS}
            self._switches = int(record["switches"])
            self._keys = now
        for name, buttons in _ACTIONS:
            count = int(record[f"{name}s"])
            pressed = now & buttons == buttons and self._keys & buttons != buttons
            setattr(asked, name, pressed or count != self._counters[name])
            self._counters[name] = count
        asked.damp = asked.damp or now & DAMP == DAMP
        asked.marks += asked.mark
        asked.switch = self._read_switch(now)
        self._keys = now
        asked.connected = bool(state.remote.any())
        asked.stop_request = bool(record["stop_request"])
        asked.damp_request = bool(record["damp_request"])
        asked.terminal_lost = bool(record["terminal_lost"])
        self._set_velocity(remote, record)
        return asked

    def _read_switch(self, now: int) -> int | None:
        record = self._record
        if int(record["switches"]) != self._switches:
            self._switches = int(record["switches"])
            return int(record["switch_to"])
        return NEXT if now & NEXT_POLICY and not self._keys & NEXT_POLICY else None

    def _set_velocity(self, remote: memoryview, record: np.ndarray) -> None:
        """From the sticks, smoothed; keys or a script in charge give it as it is."""
        lx, ly, rx, _ = sticks(remote)
        velocity = self._input.velocity
        given = record["velocity"] if record["velocity_valid"] else None
        for axis, stick in enumerate((ly, -lx, -rx)):
            low, high = self._ranges[axis]
            wanted = self._live(stick)
            wanted *= high if wanted > 0 else -low
            self._smooth[axis] = wanted + self._keep * (self._smooth[axis] - wanted)
            value = self._smooth[axis] if given is None else float(given[axis])
            velocity[axis] = min(high, max(low, value))

    def _live(self, stick: float) -> float:
        """Stick deflection less the dead zone, rescaled so that a full stick stays full."""
        dead = self._config.dead_zone
        beyond = max(0.0, abs(stick) - dead) / (1.0 - dead)
        return math.copysign(beyond, stick)
