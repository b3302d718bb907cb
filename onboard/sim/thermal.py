"""Motor temperatures: a winding heated by torque squared, cooled by its casing, and that by the air.

Not identified on a motor. It is made to look right (minutes to warm up, warmer under load) so that
what reads temperatures has something to read.
"""

import numpy as np
from numpy.typing import NDArray

from onboard.sim.model import Float64Array

WINDING_S, CASING_S = 40.0, 600.0
"""Time constants."""
RISE_C = 90.0
"""Of the winding over its casing, at the torque limit for ever."""
SHARE = 0.5
"""Of the winding's rise that reaches the casing."""


class Thermal:
    """Temperatures of 29 motors.

    Attributes:
        celsius: (29, 2) casing and winding, as LowState reports them.
        forced: (29, 2) what to report instead, NaN where the model's own value holds.
    """

    def __init__(self, effort_nm: Float64Array, ambient_c: float) -> None:
        self._effort = effort_nm
        self._ambient = ambient_c
        self._casing = np.full(effort_nm.size, ambient_c)
        self._winding = self._casing.copy()
        self.celsius: NDArray[np.int16] = np.full((effort_nm.size, 2), round(ambient_c), np.int16)
        self.forced = np.full((effort_nm.size, 2), np.nan)

    def step(self, torque_nm: Float64Array, seconds: float) -> None:
        """Let a torque (29,) act for a while, short against the time constants."""
        load = np.square(torque_nm / self._effort)
        self._winding += (self._casing + RISE_C * load - self._winding) * (seconds / WINDING_S)
        settled = self._ambient + SHARE * (self._winding - self._ambient)
        self._casing += (settled - self._casing) * (seconds / CASING_S)
        both = np.stack([self._casing, self._winding], axis=1)
        self.celsius[:] = np.rint(np.where(np.isnan(self.forced), both, self.forced))
