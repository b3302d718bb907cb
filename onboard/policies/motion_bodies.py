"""A motion file that holds its bodies' orientations can be checked: does its waist carry its torso?"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError
from onboard.configs.robot import RobotConfig
from onboard.policies.motion import WAIST
from onboard.policies.motion_files import RawMotion
from onboard.policies.orders import isaac_order, order_name, sdk_order
from onboard.policies.rotations import torso_from_pelvis

Floats = NDArray[np.float64]

APART_RAD = 0.03
"""A torso further than this from the one that waist and pelvis give is not the same body."""

_SAMPLES = 50
_ORDERS: dict[str, Callable[[Sequence[str], RobotConfig], list[str]]] = {
    "SDK order": sdk_order,
    "Isaac order": isaac_order,
}


def check_bodies(
    path: Path, raw: RawMotion, root_wxyz: Floats, bodies_wxyz: Floats, robot: RobotConfig
) -> None:
    """Refuse a motion whose joints were named in the wrong order.

    Some body of the file must be turned as the torso that pelvis and waist joints give. Files of
    BeyondMimic are in Isaac's order, those of mjlab in the robot's own, and none says so.

    Raises:
        PolicyError: none is; names the order in which one would be.
    """
    if not set(WAIST) <= set(raw.joints):
        return

    def apart(joints: Sequence[str]) -> float:
        waist = raw.joint_pos[:, [list(joints).index(name) for name in WAIST]]
        return _nearest(waist, root_wxyz, bodies_wxyz)

    if apart(raw.joints) <= APART_RAD:
        return
    found = order_name(raw.joints, robot)
    fitting = [name for name, order in _ORDERS.items() if apart(order(raw.joints, robot)) <= APART_RAD]
    hint = f"; in {fitting[0]} one is: name motion.joints in that order" if fitting else ""
    raise PolicyError(
        f"{path}: with its joints in {found}, as motion.joints says, no body is turned as the torso that its "
        f"waist gives{hint}"
    )


def _nearest(waist: Floats, root_wxyz: Floats, bodies_wxyz: Floats) -> float:
    """Largest angle over the frames between the computed torso and the body that is nearest to it, rad."""
    rows = np.linspace(0, len(waist) - 1, min(_SAMPLES, len(waist))).astype(int)
    torso = np.array([torso_from_pelvis(root_wxyz[row].tolist(), *waist[row].tolist()) for row in rows])
    cosine = np.abs(np.einsum("tbi,ti->tb", bodies_wxyz[rows], torso)).clip(0.0, 1.0)
    return float((2.0 * np.arccos(cosine)).max(axis=0).min())
