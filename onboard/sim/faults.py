"""Faults on the way from the robot to whoever reads it, for tests and for trying out what happens.

Each is a number of samples still to be spoiled. On the wire a sample is one LowState; for the
in-process link it is the one that a `latest` after a step would have shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from onboard.runtime.link import Float32Array


class Readings(Protocol):
    """What a sensor fault changes in a report."""

    q: Float32Array
    tau_est: Float32Array
    quat_wxyz: Float32Array


class Fate(Enum):
    """What becomes of one sample."""

    GOOD = "good"
    LOST = "lost"
    CORRUPT = "corrupt"
    FROZEN = "frozen"


@dataclass
class Faults:
    """Samples still to be lost, corrupted, frozen, or stamped with a tick that runs backwards.

    Attributes:
        lost: never arrive.
        corrupt: arrive with a checksum that does not hold.
        frozen: arrive as a copy of the last one, tick included.
        backwards: arrive fresh, with a tick two less than the one before.
        nan: arrive with a joint angle that is no number.
        quaternion: arrive with an orientation whose length is 1.2.
        flipped: arrive with an orientation turned by 180 degrees about x, as by an IMU mounted so.
        loss: share of all samples that never arrive, at random but the same in every run; for ever.
        mode_machine: reported instead of the robot's own, for ever; None for its own.
        offset_rad: motor slot to what its encoder reports too much, for ever.
        torque_nm: motor slot to the torque that it reports, for ever.
    """

    lost: int = 0
    corrupt: int = 0
    frozen: int = 0
    backwards: int = 0
    nan: int = 0
    quaternion: int = 0
    flipped: int = 0
    loss: float = 0.0
    mode_machine: int | None = None
    offset_rad: dict[int, float] = field(default_factory=dict)
    torque_nm: dict[int, float] = field(default_factory=dict)
    _last_tick: int = 0
    _chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def next(self) -> Fate:
        """Fate of the next sample; uses one up."""
        for name, fate in (("lost", Fate.LOST), ("corrupt", Fate.CORRUPT), ("frozen", Fate.FROZEN)):
            left = getattr(self, name)
            if left:
                setattr(self, name, left - 1)
                return fate
        return Fate.LOST if self.loss and self._chance.random() < self.loss else Fate.GOOD

    def spoil(self, out: Readings) -> None:
        """Change what the sensors report; uses one sample up."""
        for slot, offset in self.offset_rad.items():
            out.q[slot] += offset
        for slot, torque in self.torque_nm.items():
            out.tau_est[slot] = torque
        if self._uses("nan"):
            out.q[0] = np.nan
        if self._uses("quaternion"):
            out.quat_wxyz[:] *= 1.2
        if self._uses("flipped"):
            out.quat_wxyz[:] = _turned_about_x([float(value) for value in out.quat_wxyz])

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
        return tick & 0xFFFFFFFF


def _turned_about_x(quat_wxyz: Sequence[float]) -> tuple[float, float, float, float]:
    """An orientation whose own x axis stays and whose y and z axes are reversed."""
    w, x, y, z = quat_wxyz
    return -x, w, z, -y
