"""Whether a foot stands on the ground, and whether the feet carry the robot at all."""

import numpy as np
from numpy.typing import NDArray

from onboard.configs.odometry import Contact, Support
from onboard.policies.estimators.kinematics import Float64Array


class ContactFlags:
    """Flags of both feet from vertical force and height.

    The force alone takes a swinging foot for a standing one when it is braked hard before it lands;
    such a foot is still above the other.

    Attributes:
        flags: (2,) left and right.
    """

    def __init__(self, config: Contact) -> None:
        self._config = config
        self.flags: NDArray[np.bool_] = np.zeros(2, bool)

    def reset(self) -> None:
        """No foot stands."""
        self.flags[:] = False

    def see(self, vertical_n: Float64Array, height_m: Float64Array, standing: bool) -> None:
        """Judge one tick.

        Args:
            vertical_n: (2,) force on each foot.
            height_m: (2,) of each sole's lowest point, from any common level.
            standing: the feet carry the robot, see `SupportWatch`.
        """
        threshold = np.where(self.flags, self._config.off_n, self._config.on_n)
        if not standing:
            threshold *= self._config.hanging_factor
        self.flags[:] = (vertical_n > threshold) & (height_m < height_m.min() + self._config.height_m)


class SupportWatch:
    """Tells a standing robot from a hanging one by the share of its weight that the legs' torques show.

    While it hangs, the change of momentum says nothing about the feet: the rule that both feet
    together carry what the momentum needs would put the whole weight on two feet in the air.

    Attributes:
        carried: running mean of that share.
        standing: the feet carry the robot.
    """

    def __init__(self, config: Support) -> None:
        self._config = config
        self.carried = 0.0
        self.standing = False

    def reset(self) -> None:
        """Nothing is known: as if it hung."""
        self.carried, self.standing = 0.0, False

    def see(self, carried_n: float, needed_n: float, dt: float) -> None:
        """Judge one tick.

        Args:
            carried_n: sum of the vertical forces by the legs' torques alone.
            needed_n: by the change of the whole momentum.
            dt: length of the tick, s.
        """
        if needed_n <= 0.0:
            return
        share = min(max(carried_n / needed_n, 0.0), 1.5)
        self.carried += (share - self.carried) * min(1.0, dt / self._config.window_s)
        limit = self._config.lost_below if self.standing else self._config.found_above
        self.standing = self.carried > limit
