"""The two joint orders of the G1's world, told apart by name."""

from collections.abc import Sequence

from onboard.configs.robot import RobotConfig

ISAAC_SLOTS = (
    *(0, 6, 12, 1, 7, 13, 2, 8, 14, 3, 9, 15, 22, 4, 10, 16),
    *(23, 5, 11, 17, 24, 18, 25, 19, 26, 20, 27, 21, 28),
)
"""SDK motor slots in Isaac's order, which goes breadth first through the robot: left, right, waist, …

Source: `joint_ids_map` of unitree_rl_lab and `joint_names` of BeyondMimic's exporter, which agree.
"""


def isaac_order(joints: Sequence[str], robot: RobotConfig) -> list[str]:
    """The same joints in Isaac's order."""
    return [robot.joint_names[slot] for slot in ISAAC_SLOTS if robot.joint_names[slot] in joints]


def sdk_order(joints: Sequence[str], robot: RobotConfig) -> list[str]:
    """The same joints in SDK motor order."""
    return [name for name in robot.joint_names if name in joints]


def order_name(joints: Sequence[str], robot: RobotConfig) -> str:
    """`SDK order`, `Isaac order`, or `an order of its own`."""
    if list(joints) == sdk_order(joints, robot):
        return "SDK order"
    return "Isaac order" if list(joints) == isaac_order(joints, robot) else "an order of its own"
