"""Gait clocks: one angle per foot that runs with the grid, stands still and restarts as the contract says.

A clock is a function of the step (grid periods since the reset, skipped ones included), not a sum over
ticks, so a skipped period or a tick without inference can't make it drift.
"""

import math

from onboard.policies.command import MotionCommand
from onboard.policies.contract import Gait

TURN = 2.0 * math.pi


class GaitClock:
    """The clock of one policy.

    Attributes:
        angles_rad: one per foot, in (-π, π], as of the last `update`.
    """

    def __init__(self, gait: Gait, period_s: float) -> None:
        self._gait = gait
        self._still = gait.still
        self._turn_per_step = TURN * period_s / gait.period_s
        self.angles_rad: list[float] = []
        self.reset()

    def reset(self) -> None:
        """Back to the state before the first tick, which counts as standing."""
        self.angles_rad = list(self._gait.offsets_rad)
        self._origin = self._next_origin = 0
        self._standing = self._next_standing = True

    def update(self, step: int, command: MotionCommand) -> None:
        """Set the angles for this tick; nothing is remembered before `commit`.

        Args:
            step: grid periods since the reset.
            command: of this tick.
        """
        still = self._still
        standing = still is not None and self._stands(command)
        origin = self._origin
        if still is not None and standing:
            self.angles_rad = [still.angle_rad] * len(self._gait.offsets_rad)
        else:
            if still is not None and still.restart and self._standing:
                origin = step
            turned = (step - origin) * self._turn_per_step
            self.angles_rad = [_wrap(offset + turned) for offset in self._gait.offsets_rad]
        self._next_standing, self._next_origin = standing, origin

    def commit(self) -> None:
        """Keep what the last `update` found out about standing and moving."""
        self._standing, self._origin = self._next_standing, self._next_origin

    def _stands(self, command: MotionCommand) -> bool:
        still = self._still
        if still is None:
            return False
        if still.when == "stand_flag":
            return command.stand == 0.0
        vx, vy, wz = command.velocity.tolist()
        return math.hypot(vx, vy) < still.below and abs(wz) < still.below


def _wrap(angle: float) -> float:
    return angle - TURN * math.ceil((angle - math.pi) / TURN)
