"""ASAP's motion file: a joblib pickle of `{name: motion}` that its motion library loads.

Exactly 50 rows a second, and row k is a state together with the action that *produced* it: the action of
the rollout's row before. So the first row of a stretch, whose action nobody knows, is left out.

ASAP applies `0.25 · action + default` to 23 joints. `action="raw"` writes the raw network output, which
is right for a policy with that scale and those defaults, and leaves out the first rows of an episode, in
which the runtime fades the policy in. `action="sent"` writes the targets that reached the motors in these
units, `(target - default) / 0.25`: right for any policy, with limits and residual in it.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onboard.configs.bodies import BodyTable
from onboard.configs.errors import RolloutError
from onboard.configs.robot import N_JOINTS
from onboard.logging.export.clips import Clip
from onboard.logging.export.rootpose import RootPose, root_pose

FPS = 50
SCALE = 0.25
"""rad per unit of action, `g1_29dof_anneal_23dof` of ASAP."""

DROPPED = ("wrist_roll", "wrist_pitch", "wrist_yaw")
"""Joints that ASAP's 23-joint G1 has not."""

HIP_PITCH, KNEE, ANKLE_PITCH = -0.1, 0.3, -0.2
"""ASAP's default pose, rad; all other joints 0."""

ADDED_BODIES = 3
"""left_hand, right_hand and head, which ASAP adds to the skeleton; they do not turn."""

Kind = Literal["raw", "sent"]
Floats = NDArray[np.float32]


def motion(clip: Clip, bodies: BodyTable, action: Kind = "raw") -> dict[str, Any]:
    """One clip as a motion of T rows.

    Keys that ASAP reads: `root_trans_offset` (T, 3) m, NaN where the run had no external pose; `pose_aa`
    (T, 27, 3) axis-angle: root, 23 joints, 3 zeros; `dof` (T, 23) rad; `root_rot` (T, 4) x y z w; `fps`;
    `action` (T, 23). Further: `root_valid` (T,), `action_policy` (T, A) the network's raw output before
    any residual (where a policy ran), `limited` (T,) whether what reached the motors was not what was
    asked for, `joint_names`, `about` (JSON).

    Args:
        clip: at 50 rows a second.
        bodies: the robot's links, for the joints' axes.
        action: `raw` or `sent`, see above.

    Raises:
        RolloutError: another rate, or `raw` and there is no raw action for all 23 joints.
    """
    if abs(clip.period_s * FPS - 1) > 1e-6:
        raise RolloutError(
            f"{clip.source}: {1 / clip.period_s:g} rows a second, ASAP reads {FPS} and resampling would "
            "invent actions; record at 50 Hz"
        )
    skipped = _rows_of_fade(clip) if action == "raw" else 0
    after, before = slice(skipped + 1, None), slice(skipped, -1)
    joints = kept_joints(clip.joint_names)
    track, root = clip.track, root_pose(clip.track, clip.period_s)
    chosen = _raw(clip, joints) if action == "raw" else _in_units(clip, joints)
    limited = np.abs(track["action_sent"] - track["target"]).max(1) > 1e-6
    extras = {"action_policy": track["action_policy"][before]} if "action_policy" in track else {}
    dof = track["q"][after][:, joints]
    return {
        "root_trans_offset": root.position_m[after].astype(np.float32),
        "pose_aa": pose_aa(dof, root.quat_wxyz[after], joint_axes(bodies)[joints]),
        "dof": dof,
        "root_rot": root.quat_wxyz[after][:, [1, 2, 3, 0]].astype(np.float32),
        "fps": FPS,
        "action": chosen[before],
        **extras,
        "root_valid": root.valid[after],
        "limited": limited[before],
        "joint_names": [clip.joint_names[joint] for joint in joints],
        "about": _about(clip, root, action, skipped),
    }


def kept_joints(names: tuple[str, ...]) -> list[int]:
    """SDK indices of ASAP's 23 joints."""
    return [slot for slot, name in enumerate(names) if not any(part in name for part in DROPPED)]


def default_pose(names: tuple[str, ...]) -> Floats:
    """ASAP's default pose (29,), rad."""
    bent = {"hip_pitch": HIP_PITCH, "knee": KNEE, "ankle_pitch": ANKLE_PITCH}
    pose = [next((angle for part, angle in bent.items() if part in name), 0.0) for name in names]
    return np.array(pose, np.float32)


def joint_axes(bodies: BodyTable) -> Floats:
    """(29, 3) unit axes in SDK motor order."""
    return np.array([link.axis for link in bodies.links[1 : 1 + N_JOINTS]], np.float32)


def pose_aa(dof: np.ndarray, root_wxyz: np.ndarray, axes: np.ndarray) -> Floats:
    """Axis-angle of root, joints and added bodies (T, 1 + J + 3, 3), rad.

    Args:
        dof: (T, J) rad.
        root_wxyz: (T, 4) world from pelvis.
        axes: (J, 3).
    """
    joints = dof[:, :, None] * axes
    added = np.zeros((len(dof), ADDED_BODIES, 3), np.float32)
    root = _rotation_vector(root_wxyz)[:, None]
    return np.concatenate([root, joints, added], axis=1).astype(np.float32)


def _rotation_vector(quat_wxyz: np.ndarray) -> np.ndarray:
    """(n, 3) rad, by the shorter way round."""
    quat = np.where(quat_wxyz[:, :1] < 0, -quat_wxyz, quat_wxyz)
    sine = np.linalg.norm(quat[:, 1:], axis=1, keepdims=True)
    angle = 2 * np.arctan2(sine, quat[:, :1])
    vector: np.ndarray = quat[:, 1:] * np.where(sine > 1e-12, angle / np.where(sine > 0, sine, 1), 2.0)
    return vector


def _rows_of_fade(clip: Clip) -> int:
    """Rows at the start that the runtime mixed with what was before."""
    faded = clip.track["step"] < clip.fade_rows
    return int(np.argmin(faded)) if faded.any() else 0


def _raw(clip: Clip, joints: list[int]) -> Floats:
    """(n, 23) raw action, residual included, in ASAP's joint order."""
    if clip.contract is None or "action_combined" not in clip.track:
        raise RolloutError(
            f"{clip.source}: no readable contract says which joints the raw action drives; "
            "use --action sent, which needs none"
        )
    order = clip.contract.action_joints
    missing = [clip.joint_names[j] for j in joints if clip.joint_names[j] not in order]
    if missing:
        raise RolloutError(
            f"{clip.source}: policy {clip.contract.name} has no action for {', '.join(missing)}; "
            "use --action sent, which writes all 23 targets in ASAP's units"
        )
    columns = [order.index(clip.joint_names[joint]) for joint in joints]
    raw: Floats = clip.track["action_combined"][:, columns]
    return raw


def _in_units(clip: Clip, joints: list[int]) -> Floats:
    """(n, 23) what reached the motors, in units of ASAP's action."""
    units = (clip.track["action_sent"] - default_pose(clip.joint_names)) / np.float32(SCALE)
    return np.asarray(units[:, joints], np.float32)


def _about(clip: Clip, root: RootPose, action: Kind, skipped: int) -> str:
    scales = [list(np.atleast_1d(a.scale)) for a in clip.contract.actions] if clip.contract else []
    return clip.account(**root.sources, action=action, action_scale=scales, rows_of_fade_left_out=skipped)
