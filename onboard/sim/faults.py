"""Faults on the way from the robot to whoever reads it, for tests and for trying out what happens.

Each is a number of samples still to be spoiled. On the wire a sample is one LowState; for the
in-process link it is the one that a `latest` after a step would have shown.
"""

from dataclasses import dataclass
from enum import Enum


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
        mode_machine: reported instead of the robot's own, for ever; None for its own.
    """

    lost: int = 0
    corrupt: int = 0
    frozen: int = 0
    backwards: int = 0
    mode_machine: int | None = None
    _last_tick: int = 0

    def next(self) -> Fate:
        """Fate of the next sample; uses one up."""
        for name, fate in (("lost", Fate.LOST), ("corrupt", Fate.CORRUPT), ("frozen", Fate.FROZEN)):
            left = getattr(self, name)
            if left:
                setattr(self, name, left - 1)
                return fate
        return Fate.GOOD

    def tick(self, tick: int) -> int:
        """The tick that a good sample is stamped with."""
        if self.backwards:
            self.backwards -= 1
            tick = self._last_tick - 2
        self._last_tick = tick
        return tick & 0xFFFFFFFF
