"""Figures of one episode, from its rows alone, so that a recorded robot and a simulator are measured alike.

Smaller is better for all of them. The first half second of an episode, in which targets and residual
fade in, does not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import RobotConfig
from onboard.logging.export.rootpose import MAX_AGE_S
from onboard.logging.preprocess.contact import Phase, foot_phases, robot_phase
from onboard.policies.bundle import PolicyBundle
from onboard.policies.residual.files import driven_scales

COLUMNS = (
    "q", "dq", "tau_est", "target", "command", "base_velocity", "external_velocity", "external_age_s",
    "quat_wxyz", "contact", "motion_index",
)  # fmt: skip
POLICY_COLUMNS = ("action_policy", "action_residual", "action_combined")
SETTLED_S = 0.5
MIN_ROWS = 25

GROUPS = {
    "ankles": ("ankle",),
    "legs": ("hip", "knee"),
    "waist": ("waist",),
    "arms": ("shoulder", "elbow", "wrist"),
}
"""Joint groups, by parts of the joints' names."""

Rows = Mapping[str, NDArray[np.generic]]
Float64Array = NDArray[np.float64]


@dataclass(frozen=True)
class Subject:
    """The policy whose episodes are measured.

    Attributes:
        slots, scale: (A,) SDK motor index and rad per unit of each element of the raw action.
        reference: (frames, 29) rad, what a tracking policy follows; None for others.
        groups: name to SDK motor indices of its joints that the policy drives.
        period_s: of its rows.
    """

    slots: NDArray[np.intp]
    scale: Float64Array
    reference: Float64Array | None
    groups: dict[str, list[int]]
    period_s: float

    @property
    def primary(self) -> str:
        """The metric that decides: joint error to the reference, or to the policy's own targets."""
        return "tracking_rad" if self.reference is None else "mpjpe_rad"


def make_subject(bundle: PolicyBundle, robot: RobotConfig) -> Subject:
    """What the metrics need to know about a policy."""
    scales = driven_scales(bundle.contract)
    names = {robot.slot(joint): joint for joint in scales}
    groups = {
        group: [slot for slot, joint in names.items() if any(part in joint for part in parts)]
        for group, parts in GROUPS.items()
    }
    frames = bundle.motion_frames
    return Subject(
        slots=np.array(list(names), np.intp),
        scale=np.array(list(scales.values()), np.float64),
        reference=None if frames is None else np.asarray(frames.joint_pos, np.float64),
        groups={group: slots for group, slots in groups.items() if slots},
        period_s=1.0 / bundle.contract.rate_hz,
    )


def episode_metrics(rows: Rows, subject: Subject) -> dict[str, float]:
    """Every figure of one episode; empty when it was too short to settle.

    Args:
        rows: `COLUMNS` and `POLICY_COLUMNS` of its ticks in mode policy, in order.
        subject: the policy.
    """
    settled = slice(round(SETTLED_S / subject.period_s), None)
    rows = {name: np.asarray(values)[settled] for name, values in rows.items()}
    if len(rows["q"]) < MIN_ROWS:
        return {}
    error, name = _joint_error(rows, subject), subject.primary
    found = {name: float(error[:, subject.slots].mean())}
    found |= {f"{name} {group}": float(error[:, slots].mean()) for group, slots in subject.groups.items()}
    found |= _by_phase(name, error[:, subject.slots].mean(axis=1), rows["contact"])
    if subject.reference is None:
        found |= _walking(rows)
    action, tau, dq = (_float64(rows[column]) for column in ("action_policy", "tau_est", "dq"))
    found["action_rate"] = float(np.abs(np.diff(action, axis=0)).mean())
    found["torque_nm"] = float(np.abs(tau).mean())
    found["power_w"] = float(np.abs(tau * dq).sum(axis=1).mean())
    return {key: value for key, value in found.items() if np.isfinite(value)}


def residual_share(rows: Rows, subject: Subject, default_rad: Float64Array) -> tuple[float, float]:
    """Largest correction of a joint, rad, and its share of that joint's action range.

    The range is the 1st to the 99th percentile of the policy's own target less the default pose.

    Args:
        rows: of one episode.
        subject: the policy.
        default_rad: (29,) its default pose.
    """
    added = np.abs(_float64(rows["action_residual"]) * subject.scale).max(axis=0)
    offset = (_asked(rows, subject) - default_rad)[:, subject.slots]
    low, high = np.percentile(offset, [1, 99], axis=0)
    share = added / np.maximum(high - low, 1e-3)
    return float(added.max()), float(share.max())


def _asked(rows: Rows, subject: Subject) -> Float64Array:
    """(n, 29) rad: the targets of the policy's own action, without what the residual added."""
    asked = _float64(rows["target"])
    added = _float64(rows["action_combined"]) - _float64(rows["action_policy"])
    asked[:, subject.slots] -= added * subject.scale
    return _float64(asked)


def _joint_error(rows: Rows, subject: Subject) -> Float64Array:
    """(n - 1, 29) rad: position less reference, or one tick later less the policy's own target."""
    q = _float64(rows["q"])
    if subject.reference is None:
        return _float64(np.abs(q[1:] - _asked(rows, subject)[:-1]))
    frames = np.clip(rows["motion_index"].astype(np.intp), 0, len(subject.reference) - 1)
    return _float64(np.abs(q - subject.reference[frames])[1:])


def _by_phase(name: str, error: Float64Array, contact: NDArray[np.generic]) -> dict[str, float]:
    """The error in each contact phase of the robot, where contact is known."""
    phases = robot_phase(foot_phases(np.asarray(contact)))[1:]
    found = {}
    for phase in (Phase.FLIGHT, Phase.TOUCHDOWN, Phase.STANCE, Phase.LIFT_OFF):
        inside = phases == phase
        if inside.sum() >= MIN_ROWS:
            found[f"{name} in {phase.name.lower()}"] = float(error[inside].mean())
    return found


def _walking(rows: Rows) -> dict[str, float]:
    command, velocity = _float64(rows["command"])[:, :2], _velocity(rows)[:, :2]
    _, x, y, _ = _float64(rows["quat_wxyz"]).T
    tilt = np.arccos(np.clip(1 - 2 * (x**2 + y**2), -1, 1))
    return {
        "velocity_error_m_s": float(np.linalg.norm(velocity - command, axis=1).mean()),
        "tilt_rad": float(np.sqrt((tilt**2).mean())),
    }


def _velocity(rows: Rows) -> Float64Array:
    """(n, 3) m/s: as seen from outside where that was heard all the time, else the robot's own estimate."""
    seen = _float64(rows["external_velocity"])
    heard = np.isfinite(seen).all() and bool((_float64(rows["external_age_s"]) <= MAX_AGE_S).all())
    return seen if heard else _float64(rows["base_velocity"])


def _float64(values: NDArray[np.generic]) -> Float64Array:
    return np.asarray(values).astype(np.float64)
