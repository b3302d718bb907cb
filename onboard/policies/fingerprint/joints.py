"""Fingerprints of joints: left and right are alike, and the default pose is where it should be."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import RobotConfig
from onboard.policies.fingerprint.view import Seen, TrainedView
from onboard.policies.orders import isaac_order, order_name, sdk_order

Floats = NDArray[np.float64]

BETTER = 0.5
ASYMMETRY = 0.2
"""Asymmetry of published policies in their own order: 0 to 0.34; read in the other one 0.16 to 1.2, and
always at least twice as large."""

POSE_RAD = 0.25
"""Published policies give their default pose back within 0.09 rad."""

SEEN_POSE_RAD = 0.5

_ORDERS: dict[str, Callable[[Sequence[str], RobotConfig], list[str]]] = {
    "SDK order": sdk_order,
    "Isaac order": isaac_order,
}


def joint_order(view: TrainedView) -> list[str]:
    """Statistics are symmetric in the order that the contract states, and not in another."""
    robot, findings = view.bundle.robot, []
    for term in ("joint_pos", "joint_pos_absolute", "joint_vel", "last_action", "ref_joint_pos"):
        seen = view.newest(term)
        if seen is None or not _paired(seen.joints) or np.isnan(seen.raw_mean).any():
            continue
        stated = _asymmetry(seen, seen.joints)
        others = {name: _asymmetry(seen, order(seen.joints, robot)) for name, order in _ORDERS.items()}
        best = min(others, key=lambda name: others[name])
        if stated > ASYMMETRY and others[best] < BETTER * stated:
            findings.append(
                f"{term}: its joints are in {order_name(seen.joints, robot)} by this contract, but left and "
                f"right are alike in training in {best}: the joint order is wrong"
            )
    return findings


def default_pose(view: TrainedView) -> list[str]:
    """The mean reference less the mean relative position is the default pose."""
    reference, relative = view.newest("ref_joint_pos"), view.newest("joint_pos")
    if reference is None or relative is None or set(reference.joints) != set(relative.joints):
        return []
    order = [reference.joints.index(joint) for joint in relative.joints]
    found = reference.raw_mean[order] - relative.raw_mean
    stated = view.of_joints(view.bundle.contract.default_rad, relative.joints)
    apart = np.abs(found - stated)
    if not apart.max() > POSE_RAD:
        return []
    worst = int(apart.argmax())
    text = (
        f"default_rad: in training the reference was {found[worst]:+.2f} rad from the relative position of "
        f"{relative.joints[worst]}, so that is its default pose; the contract says {stated[worst]:+.2f}"
    )
    if np.abs(found).max() < POSE_RAD:
        return [f"{text}; all are near 0: joint positions are absolute, or the default pose is zero"]
    if any(np.abs(found - pose).max() <= POSE_RAD for pose in _misread(view, relative.joints)):
        return [f"{text}; the same numbers in another order: the default pose was read in the wrong order"]
    return [f"{text}: the default pose or the joint order is wrong"]


def absolute_positions(view: TrainedView) -> list[str]:
    """Relative positions hang about 0, absolute ones about the default pose."""
    relative, absolute = view.newest("joint_pos"), view.newest("joint_pos_absolute")
    seen = relative or absolute
    if seen is None or view.newest("ref_joint_pos") is not None:
        return []
    default = view.of_joints(view.bundle.contract.default_rad, seen.joints)
    if np.abs(default).max() < SEEN_POSE_RAD:
        return []
    about_default = np.linalg.norm(seen.raw_mean - default) < np.linalg.norm(seen.raw_mean)
    if relative is not None and about_default:
        return ["joint_pos: its mean in training is the default pose, not 0: positions are absolute"]
    if absolute is not None and not about_default:
        return ["joint_pos_absolute: its mean in training is near 0, not the default pose: it is relative"]
    return []


def _misread(view: TrainedView, joints: Sequence[str]) -> list[Floats]:
    """What the default pose would be, had the contract's numbers been meant for another joint order."""
    contract, robot = view.bundle.contract, view.bundle.robot
    poses = []
    for order in _ORDERS.values():
        meant = order(contract.joints, robot)
        by_name = dict(zip(contract.joints, contract.default_rad, strict=True))
        read = dict(zip(meant, contract.default_rad, strict=True))
        unread = dict(zip(contract.joints, (by_name[joint] for joint in meant), strict=True))
        poses += [np.array([pose[joint] for joint in joints]) for pose in (read, unread)]
    return poses


def _paired(joints: Sequence[str]) -> bool:
    """Every left joint has its right one, and there are enough of them to tell orders apart."""
    left = {joint.removeprefix("left_") for joint in joints if joint.startswith("left_")}
    right = {joint.removeprefix("right_") for joint in joints if joint.startswith("right_")}
    return left == right and len(left) >= 6


def _asymmetry(seen: Seen, joints: Sequence[str]) -> float:
    """How different left and right are, were the elements the joints named: deviations and means."""
    place = {joint: index for index, joint in enumerate(joints)}
    left = [place[joint] for joint in joints if joint.startswith("left_")]
    right = [place[f"right_{joints[index].removeprefix('left_')}"] for index in left]
    mirrored = np.array([1.0 if _sagittal(joints[index]) else -1.0 for index in left])
    mean, deviation = seen.mean, seen.deviation + 1e-6
    spread = np.hypot(deviation[left], deviation[right])
    of_means: Floats = np.abs(mean[left] - mirrored * mean[right]) / spread
    of_deviations: Floats = np.abs(np.log(deviation[left] / deviation[right]))
    return float(of_means.mean() + of_deviations.mean())


def _sagittal(joint: str) -> bool:
    """It turns in the plane that left and right share, so that mirrored poses have the same sign."""
    return any(part in joint for part in ("pitch", "knee", "elbow"))
