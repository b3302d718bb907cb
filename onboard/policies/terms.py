"""The catalogue of terms: every quantity that an observation may contain, its width and where it comes from.

Two terms of equal meaning but different name in two families are one term here; two of different
meaning are two, whatever the families call them.
"""

import difflib
from typing import Literal, NamedTuple

from onboard.configs.errors import PolicyError
from onboard.policies.contract import Contract
from onboard.policies.inputs import Term

PROVIDERS = ("simulator_truth", "leg_odometry", "external")
"""What can provide a privileged term: the simulator, the estimator on board, or a topic from outside."""


class Kind(NamedTuple):
    """One entry of the catalogue.

    Attributes:
        signal: the signal that it reads (`onboard.policies.signals`).
        width: how many numbers; `joints` one per joint, `action` one per raw output of its own graph,
            `feet` one per foot of the gait, `values` as many as the term lists, `source` as another
            graph's output.
        about: meaning, unit and frame.
        relative: the default pose is subtracted.
        privileged: the robot can't measure it; a provider must be named.
        residual: about the action that a delta is asked about; only a residual's network may read it.
    """

    signal: str
    width: int | Literal["joints", "action", "feet", "values", "source"]
    about: str
    relative: bool = False
    privileged: bool = False
    residual: bool = False


CATALOGUE: dict[str, Kind] = {
    "gyro": Kind("gyro", 3, "angular velocity of the IMU's body in its own frame, rad/s"),
    "gravity": Kind("gravity", 3, "unit gravity in the IMU's body frame, Rᵀ·(0, 0, -1)"),
    "base_roll_pitch": Kind("roll_pitch", 2, "roll and pitch of the IMU's body, rad"),
    "joint_pos": Kind("q", "joints", "joint position less the default pose, rad", relative=True),
    "joint_pos_absolute": Kind("q", "joints", "joint position, rad"),
    "joint_vel": Kind("dq", "joints", "joint velocity, rad/s"),
    "last_action": Kind(
        "action", "action", "raw output of this graph (or of `source`) a tick before, unclipped"
    ),
    "velocity": Kind("velocity", 3, "velocity command vx, vy, wz in the body frame, m/s and rad/s"),
    "velocity_xy": Kind("velocity_xy", 2, "velocity command vx, vy in the body frame, m/s"),
    "velocity_yaw": Kind("velocity_yaw", 1, "velocity command wz, rad/s"),
    "height": Kind("height", 1, "base height command, m"),
    "stand": Kind("stand", 1, "stand flag of the command: 1 steps, 0 stands"),
    "waist": Kind("waist", 3, "waist command yaw, roll, pitch, rad"),
    "hold_pos": Kind("hold", "joints", "what joints are asked to hold (upper-body reference), rad"),
    "gait_sin": Kind("gait_sin", "feet", "sine of the gait clock, per foot"),
    "gait_cos": Kind("gait_cos", "feet", "cosine of the gait clock, per foot"),
    "gait_phase": Kind("gait_phase", "feet", "gait clock as a share of its period, 0 to 1, per foot"),
    "motion_phase": Kind("motion_phase", 1, "share of the reference motion that has passed, 0 to 1"),
    "ref_joint_pos": Kind("ref_q", "joints", "reference joint position, rad"),
    "ref_joint_vel": Kind("ref_dq", "joints", "reference joint velocity, rad/s"),
    "anchor_orientation": Kind(
        "anchor", 6, "first two columns of the reference anchor's rotation seen from the robot's, row by row"
    ),
    "ref_root_velocity_xy": Kind("ref_velocity_xy", 2, "reference root velocity in its own heading, m/s"),
    "ref_root_height": Kind("ref_height", 1, "reference root height, m"),
    "ref_root_roll_pitch": Kind("ref_roll_pitch", 2, "reference root roll and pitch, rad"),
    "ref_root_yaw_rate": Kind("ref_yaw_rate", 1, "reference root angular velocity about its own z, rad/s"),
    "constant": Kind("constant", "values", "fixed numbers"),
    "graph_output": Kind("graph_output", "source", "output of a graph that runs before"),
    "base_lin_vel": Kind("base_lin_vel", 3, "velocity of the pelvis in its own frame, m/s", privileged=True),
    "base_lin_vel_imu": Kind(
        "base_lin_vel_imu", 3, "velocity of the pelvis IMU's site in the pelvis frame, m/s", privileged=True
    ),
    "base_height": Kind("base_height", 1, "height of the pelvis above the ground, m", privileged=True),
    "foot_force": Kind("foot_force", 6, "force on the left and right foot, x y z, N", privileged=True),
    "contact": Kind("contact", 2, "contact of the left and right foot, 0 or 1", privileged=True),
    "anchor_position": Kind(
        "anchor_position", 3, "reference anchor's position seen from the robot's, m", privileged=True
    ),
    "action": Kind("asked_action", "joints", "raw action asked for, 0 where not driven", residual=True),
    "target": Kind("asked_target", "joints", "joint target asked for, rad", residual=True),
    "target_error": Kind("asked_error", "joints", "joint target asked for less position, rad", residual=True),
}


def kind_of(term: Term, where: str) -> Kind:
    """Catalogue entry of a term.

    Raises:
        PolicyError: there is none of that name; `where` says which contract asks.
    """
    try:
        return CATALOGUE[term.term]
    except KeyError:
        close = difflib.get_close_matches(term.term, CATALOGUE, 1)
        hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(CATALOGUE)}"
        raise PolicyError(f"{where}: unknown term '{term.term}'; {hint}") from None


def width_of(term: Term, contract: Contract, graph: str, source_width: int = 0) -> int:
    """How many numbers a term contributes per frame.

    Args:
        term: with a name in the catalogue.
        contract: that it belongs to.
        graph: name of the graph that reads it.
        source_width: width of the other graph's output, for `graph_output`.
    """
    width = kind_of(term, contract.name).width
    if isinstance(width, int):
        return width
    acting = contract.graphs[term.source or graph if width == "action" else graph].action
    named = contract.constants[term.source].values if term.term == "constant" and term.source else ()
    return {
        "joints": len(term.joints or contract.observed_joints),
        "action": len(acting.joints) if acting else 0,
        "feet": len(contract.gait.offsets_rad) if contract.gait else 0,
        "values": len(named or term.values),
        "source": source_width,
    }[width]
