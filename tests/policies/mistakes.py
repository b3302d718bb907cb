"""The mistakes that people make with contracts, one by one, as changes of a good one.

Most are changes of the contract's data; those of whoever hands over the state, or of the code, are changes
of the recorded vectors: to a right contract they look the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from onboard.policies.orders import isaac_order, sdk_order
from tests.policies.models import ROBOT

Data = dict[str, Any]
Vectors = dict[str, Any]


def terms(data: Data) -> list[Data]:
    """All terms of all inputs."""
    inputs = [spec for graph in data["graphs"].values() for spec in graph["inputs"].values()]
    return [term for spec in inputs for block in spec.get("blocks", ()) for term in block["terms"]]


def histories(data: Data) -> list[Data]:
    """All blocks of several frames."""
    inputs = [spec for graph in data["graphs"].values() for spec in graph["inputs"].values()]
    return [block for spec in inputs for block in spec.get("blocks", ()) if block.get("frames", 1) > 1]


def rescale(name: str, factor: float) -> Callable[[Data], None]:
    """Another scale of one term, wherever it stands."""

    def change(data: Data) -> None:
        for term in terms(data):
            if term["term"] == name:
                term["scale"] = (np.array(term.get("scale", 1.0)) * factor).tolist()

    return change


def other_order(joints: list[str]) -> list[str]:
    """Isaac's order of joints in the robot's own, and the other way round."""
    natural = sdk_order(joints, ROBOT)
    return isaac_order(joints, ROBOT) if joints == natural else natural


def observe_in_other_order(data: Data) -> None:
    data["observed_joints"] = other_order(data["observed_joints"])


def act_in_other_order(data: Data) -> None:
    action = data["graphs"]["policy"]["action"]
    action["joints"] = other_order(action["joints"])


def in_other_order(*keys: str) -> Callable[[Data], None]:
    """Numbers that were meant for the joints in the other order."""

    def change(data: Data) -> None:
        for key in keys:
            read = dict(zip(other_order(data["joints"]), data[key], strict=True))
            data[key] = [read[joint] for joint in data["joints"]]

    return change


def other_layout(data: Data) -> None:
    """Frame-major for term-major and the other way round."""
    for graph in data["graphs"].values():
        for spec in graph["inputs"].values():
            blocks = spec.get("blocks", ())
            if len(blocks) > 1 and all(block.get("frames", 1) > 1 for block in blocks):
                merged = [term for block in blocks for term in block["terms"]]
                spec["blocks"] = [blocks[0] | {"terms": merged}]
    for block in histories(data):
        block["layout"] = "frame_major" if block["layout"] == "term_major" else "term_major"


def reversed_history(data: Data) -> None:
    for block in histories(data):
        block["order"] = "newest_first" if block["order"] == "oldest_first" else "oldest_first"


def current_in_history(data: Data) -> None:
    for block in histories(data):
        block["current"] = not block["current"]


def action_scale(scale: float | str) -> Callable[[Data], None]:
    """Another scale; `effort` is 0.25·effort/kp per joint."""

    def change(data: Data) -> None:
        action = data["graphs"]["policy"]["action"]
        kp = dict(zip(data["joints"], data["kp"], strict=True))
        effort = dict(zip(ROBOT.joint_names, ROBOT.effort.tolist(), strict=True))
        by_joint = [0.25 * effort[joint] / kp[joint] for joint in action["joints"]]
        action["scale"] = by_joint if scale == "effort" else scale

    return change


def clip_raw(data: Data) -> None:
    data["graphs"]["policy"]["action"]["clip_raw"] = [-5.0, 5.0]


def motion(**changes: Any) -> Callable[[Data], None]:
    """Another description of the reference."""
    return lambda data: data["motion"].update(changes)


def swapped_quaternions(vectors: Vectors) -> None:
    """Orientation handed over as x, y, z, w."""
    vectors["quat_wxyz"] = np.roll(vectors["quat_wxyz"], -1, axis=1)


def world_gyro(vectors: Vectors) -> None:
    """Angular velocity in the world's frame."""
    turned = Rotation.from_quat(np.roll(vectors["quat_wxyz"], -1, axis=1))
    vectors["gyro"] = turned.apply(vectors["gyro"])


def flattened_by_columns(vectors: Vectors, part: slice) -> None:
    """A network that wants the anchor's two columns one after the other."""
    rows = vectors["obs"][:, part]
    vectors["obs"][:, part] = rows[:, [0, 2, 4, 1, 3, 5]]
