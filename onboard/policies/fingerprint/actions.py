"""Fingerprints of actions: joints move as far as targets; the last action is what the network answers."""

import numpy as np

from onboard.policies.fingerprint.view import TrainedView

TRACKING_RATIO = (0.5, 1.35)
WALKING_RATIO = (0.2, 1.2)
"""Deviation of the joints by that of the scaled action: 0.79 to 0.85 for published tracking policies, 0.4 to
0.7 for walking ones, whose legs are held up by the ground."""

LEAST_CORRELATION = 0.6
SLOPE = (0.4, 2.2)
"""Mean answer of the network by the mean of its last action: 0.59 to 1.0 for published policies."""


def action_scale(view: TrainedView) -> list[str]:
    """Positions varied about as much as the targets."""
    action = view.bundle.contract.graphs[view.statistics.graph].action
    position = view.newest("joint_pos") or view.newest("joint_pos_absolute")
    last = view.newest("last_action")
    if action is None or position is None or last is None:
        return []
    columns = [position.joints.index(joint) for joint in last.joints if joint in position.joints]
    scale = np.broadcast_to(np.array(action.scale, float), (len(last.joints),))
    asked = np.abs(scale) * last.raw_deviation
    if len(columns) != len(asked) or not (asked > 0).all():
        return []
    ratio = float(np.median(position.raw_deviation[columns] / asked))
    low, high = TRACKING_RATIO if view.newest("ref_joint_pos") is not None else WALKING_RATIO
    if low < ratio < high:
        return []
    size = "small" if ratio >= high else "large"
    return [
        f"action scale: in training joints moved {ratio:.2f} times as far as these scales let the actions "
        f"ask, expected {low:g} to {high:g}: the action scale is too {size}, or that of the last action wrong"
    ]


def last_action(view: TrainedView) -> list[str]:
    """The network's own answers have the mean that its last action has."""
    last = view.newest("last_action")
    if last is None or np.isnan(last.raw_mean).any():
        return []
    expected, found = last.raw_mean, view.mean_output
    if np.ptp(expected) == 0.0 or np.ptp(found) == 0.0:
        return []
    correlation = float(np.corrcoef(expected, found)[0, 1])
    slope = float(found @ expected / (expected @ expected))
    if correlation < LEAST_CORRELATION or SLOPE[0] < slope < SLOPE[1]:
        return []
    return [
        f"last_action: the network's own answers average {slope:.2f} times what its last action did in "
        f"training, expected about 1: its scale of {float(np.median(last.scale)):g} is wrong; most families "
        "feed back the raw output"
    ]
