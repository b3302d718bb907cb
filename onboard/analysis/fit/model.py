"""The simulator of a fit: a compiled model, and how its pelvis moves."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

TIMESTEP_S = 0.002


@dataclass(frozen=True)
class FitModel:
    """A compiled model whose pelvis comes first, then its joints.

    Attributes:
        mj: joints, actuators and degrees of freedom in one order.
        slots: SDK motor index of each of its joints.
        sha256: of the description that it was made from.
        held: the pelvis turns as it was recorded; else it is free, and there is a floor.
    """

    mj: mujoco.MjModel
    slots: NDArray[np.intp]
    sha256: str
    held: bool

    @property
    def base_q(self) -> int:
        """Positions of the pelvis before those of the joints; its quaternion is the last four."""
        return 4 if self.held else 7

    @property
    def base_v(self) -> int:
        """Velocities of the pelvis before those of the joints; angular, body frame, are the last three."""
        return 3 if self.held else 6

    @property
    def pelvis(self) -> str:
        """How the pelvis moves, for provenance."""
        return "pelvis as recorded" if self.held else "pelvis free, on the floor"

    def columns(self, slots: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
        """Where motors stand among the model's joints."""
        order = self.slots.tolist()
        return np.array([order.index(int(slot)) for slot in slots], dtype=np.intp)
