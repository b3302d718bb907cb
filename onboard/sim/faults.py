"""Faults on the way from the robot to whoever reads it, for tests and for trying out what happens.

Each is a number of samples still to be spoiled. On the wire a sample is one LowState; for the
in-process link it is the one that a `latest` after a step would have shown.
"""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from onboard.runtime.link import Float32Array


class Readings(Protocol):
    """What a sensor fault changes in a report."""

    q: Float32Array
    dq: Float32Array
    tau_est: Float32Array
    quat_wxyz: Float32Array
    gyro_body: Float32Array
    accel_body: Float32Array


FIELDS = ("q", "dq", "tau_est", "quat_wxyz", "gyro_body", "accel_body")
"""Of the readings; every one of them is used by the loop."""


class Fate(Enum):
    """What becomes of one sample."""

    GOOD = "good"
    LOST = "lost"
    CORRUPT = "corrupt"
    FROZEN = "frozen"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"


@dataclass
class Faults:
    """Samples still to be lost, corrupted, frozen, or stamped with a tick that runs backwards.

    Attributes:
        lost: never arrive.
        corrupt: arrive with a checksum that does not hold.
        frozen: arrive as a copy of the last one, tick included.
        duplicated: arrive twice.
        reordered: arrive after the one that follows them.
        backwards: arrive fresh, with a tick two less than the one before.
        nan: arrive with a reading that is no number, the first element of `nan_field`.
        quaternion: arrive with an orientation whose length is 1.2.
        flipped: arrive with an orientation turned by 180 degrees about x, as by an IMU mounted so.
        tilt_rad: arrive with an orientation pitched forward by so much too much, for ever.
        tick_ms: added to every tick, for ever: a counter that jumped, or began anew.
        loss: share of all samples that never arrive, at random but the same in every run; for ever.
        mode_machine: reported instead of the robot's own, for ever; None for its own.
        mode_pr: reported for the ankles: 0 pitch and roll, 1 their actuators A and B.
        offset_rad: motor slot to what its encoder reports too much, for ever.
        torque_nm: motor slot to the torque that it reports, for ever.
    """

    lost: int = 0
    corrupt: int = 0
    frozen: int = 0
    duplicated: int = 0
    reordered: int = 0
    backwards: int = 0
    nan: int = 0
    nan_field: str = "q"
    quaternion: int = 0
    flipped: int = 0
    tilt_rad: float = 0.0
    tick_ms: int = 0
    loss: float = 0.0
    mode_machine: int | None = None
    mode_pr: int = 0
    offset_rad: dict[int, float] = field(default_factory=dict)
    torque_nm: dict[int, float] = field(default_factory=dict)
    _last_tick: int = 0
    _chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def next(self) -> Fate:
        """Fate of the next sample; uses one up."""
        for fate in _COUNTED:
            if self._uses(fate.value):
                return fate
        return Fate.LOST if self.loss and self._chance.random() < self.loss else Fate.GOOD

    def spoil(self, out: Readings) -> None:
        """Change what the sensors report; uses one sample up."""
        for slot, offset in self.offset_rad.items():
            out.q[slot] += offset
        for slot, torque in self.torque_nm.items():
            out.tau_est[slot] = torque
        if self._uses("nan"):
            getattr(out, self.nan_field)[0] = np.nan
        if self._uses("quaternion"):
            out.quat_wxyz[:] *= 1.2
        if self._uses("flipped"):
            out.quat_wxyz[:] = _turned(out.quat_wxyz, 0, math.pi)
        if self.tilt_rad:
            out.quat_wxyz[:] = _turned(out.quat_wxyz, 1, self.tilt_rad)

    def _uses(self, name: str) -> bool:
        left = getattr(self, name)
        setattr(self, name, max(0, left - 1))
        return bool(left)

    def tick(self, tick: int) -> int:
        """The tick that a good sample is stamped with."""
        if self.backwards:
            self.backwards -= 1
            tick = self._last_tick - 2
        self._last_tick = tick
        return (tick + self.tick_ms) & 0xFFFFFFFF


_COUNTED = tuple(fate for fate in Fate if fate is not Fate.GOOD)


def _turned(quat_wxyz: Float32Array, axis: int, angle_rad: float) -> list[float]:
    """An orientation turned about one of the body's own axes: 0 x, 1 y, 2 z."""
    w, *v = (float(value) for value in quat_wxyz)
    cosine, sine = math.cos(angle_rad / 2), math.sin(angle_rad / 2)
    # The product with a turn about one unit axis: v + w u and the cross product v x u, by components.
    after, last = (axis + 1) % 3, (axis + 2) % 3
    turned = [value * cosine for value in v]
    turned[axis] += w * sine
    turned[after] += v[last] * sine
    turned[last] -= v[after] * sine
    return [w * cosine - v[axis] * sine, *turned]
