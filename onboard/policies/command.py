"""What an operator asks of a policy in one tick."""

import numpy as np
from numpy.typing import NDArray

from onboard.policies.contract import Commands

WIDTH = 8
"""vx, vy, wz, height, stand, waist yaw, roll, pitch."""


class MotionCommand:
    """One operator command, overwritten in place.

    Attributes:
        values: (8,) float32, all of it, as it is logged: vx vy wz height stand waist(3).
        velocity: (3,) view, vx and vy in m/s (forward, left), wz in rad/s (counter-clockwise), body frame.
        waist_rad: (3,) view, yaw, roll, pitch.
    """

    __slots__ = ("values", "velocity", "waist_rad")

    def __init__(self, height_m: float = 0.0) -> None:
        self.values: NDArray[np.float32] = np.zeros(WIDTH, np.float32)
        self.velocity = self.values[:3]
        self.waist_rad = self.values[5:]
        self.values[3] = height_m

    @property
    def height_m(self) -> float:
        """Base height, m."""
        return float(self.values[3])

    @height_m.setter
    def height_m(self, value: float) -> None:
        self.values[3] = value

    @property
    def stand(self) -> float:
        """Stand flag as ASAP and FALCON mean it: 1 steps, 0 stands still."""
        return float(self.values[4])

    @stand.setter
    def stand(self, value: float) -> None:
        self.values[4] = value

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        """Ask for a velocity; the stand flag follows: 1 as soon as one component is not zero."""
        self.velocity[:] = (vx, vy, wz)
        self.values[4] = 1.0 if self.velocity.any() else 0.0


def clamp_velocity(velocity: NDArray[np.float32], commands: Commands) -> None:
    """Cut a velocity command (3,) to a contract's ranges, in place; an unstated range cuts nothing."""
    for index, limits in enumerate((commands.lin_vel_x, commands.lin_vel_y, commands.ang_vel_z)):
        if limits is not None:
            velocity[index] = min(max(velocity[index], limits[0]), limits[1])
