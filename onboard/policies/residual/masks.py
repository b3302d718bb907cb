"""Which elements of the action a residual touches, and how raw actions and radians convert there."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import RobotConfig
from onboard.policies.contract import Contract
from onboard.policies.residual.files import driven_scales

Float32Array = NDArray[np.float32]


@dataclass(frozen=True)
class Mask:
    """A residual's joints in one policy's action.

    Attributes:
        slots: (n,) SDK motor index of each joint of the mask.
        elements: (n,) index of each in the raw action.
        scale: (n,) rad per unit of the raw action.
        driven: (A,) SDK motor index of each element of the raw action.
        driven_scale: (A,) rad per unit of each.
    """

    slots: NDArray[np.intp]
    elements: NDArray[np.intp]
    scale: Float32Array
    driven: NDArray[np.intp]
    driven_scale: Float32Array

    def raw(self, offset_rad: Float32Array) -> Float32Array:
        """Raw action (A,) for offsets (29,), rad; 0 where the policy scales a joint by 0."""
        scale = self.driven_scale
        return np.divide(offset_rad[self.driven], scale, out=np.zeros_like(scale), where=scale != 0)


def make_mask(joints: tuple[str, ...], contract: Contract, robot: RobotConfig) -> Mask:
    """The mask of some joints, all of which the policy drives."""
    scales = driven_scales(contract)
    order = list(scales)
    return Mask(
        slots=np.array([robot.slot(joint) for joint in joints], np.intp),
        elements=np.array([order.index(joint) for joint in joints], np.intp),
        scale=np.array([scales[joint] for joint in joints], np.float32),
        driven=np.array([robot.slot(joint) for joint in order], np.intp),
        driven_scale=np.array(list(scales.values()), np.float32),
    )
