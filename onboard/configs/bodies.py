"""Links of a robot as data: how they hang together, their masses and inertias, the outline of the soles.

What the estimators know about the robot's body, so that nothing needs a physics engine at run time.
The shipped tables are written by `python -m onboard.sim.body_table` from the simulator's model.
"""

from typing import Annotated

from msgspec import Meta, Struct

from onboard.configs.loader import CONFIG_ROOT, load, shipped
from onboard.configs.robot import N_JOINTS, Vector3

Quaternion = Annotated[tuple[float, ...], Meta(min_length=4, max_length=4)]
Inertia = Annotated[tuple[float, ...], Meta(min_length=6, max_length=6)]
Points = Annotated[tuple[Vector3, ...], Meta(min_length=3)]


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """One link and the joint that moves it; lengths in m, everything in the link's own frame.

    Attributes:
        name: as in the model.
        parent: number of the link that carries it; -1 for the first, the pelvis.
        position_m: of its frame in the parent's.
        quat_wxyz: of its frame in the parent's, at joint angle 0.
        axis: of its joint, unit vector; the joint sits in the frame's origin.
        mass_kg: of the link.
        com_m: centre of mass.
        inertia_kg_m2: about the centre of mass: xx, yy, zz, xy, xz, yz.
    """

    name: str
    parent: Annotated[int, Meta(ge=-1)]
    position_m: Vector3
    quat_wxyz: Quaternion
    axis: Vector3
    mass_kg: Annotated[float, Meta(gt=0)]
    com_m: Vector3
    inertia_kg_m2: Inertia


class BodyTable(Struct, frozen=True, forbid_unknown_fields=True):
    """All links: the pelvis, then the link behind each joint in SDK motor order.

    Attributes:
        robot: the description that it belongs to.
        links: 1 + 29.
        sole_m: outline of a sole in the foot's frame; the same on both sides.
        sole_radius_m: roundness of the outline; it reaches so far below its points.
    """

    robot: str
    links: Annotated[tuple[Link, ...], Meta(min_length=1 + N_JOINTS, max_length=1 + N_JOINTS)]
    sole_m: Points
    sole_radius_m: Annotated[float, Meta(ge=0)]

    def __post_init__(self) -> None:
        for number, link in enumerate(self.links):
            if link.parent >= number:
                raise ValueError(f"{link.name}: its parent must stand before it, found number {link.parent}")
        if [number for number, link in enumerate(self.links) if link.parent < 0] != [0]:
            raise ValueError("the first link, and no other, has parent -1")


def load_bodies(robot: str) -> BodyTable:
    """Read the shipped table of a robot (`g1_29dof`) or a YAML path.

    Raises:
        ConfigError: there is none, or the file does not fit.
    """
    return load(shipped("bodies", robot), BodyTable)


def has_bodies(robot: str) -> bool:
    """Whether a table of that robot ships with the package."""
    return (CONFIG_ROOT / "bodies" / f"{robot}.yaml").exists()
