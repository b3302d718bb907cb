"""How unusual one observation is, by the statistics of training; how far targets went in training."""

import numpy as np
from numpy.typing import NDArray

from onboard.policies.bundle import PolicyBundle
from onboard.policies.fingerprint.view import trained_views
from onboard.policies.labels import action_labels, observation_labels
from onboard.policies.layout import place
from onboard.policies.policy import Policy

Floats = NDArray[np.float64]

LEAST_DEVIATION = 0.01
"""What did not vary in training has a deviation of nearly 0; a smaller one than this counts as this."""
TAIL = 2.326
"""From the mean to the 1st and the 99th percentile, in deviations of a normal distribution."""


def unusual(bundle: PolicyBundle, obs: NDArray[np.float32]) -> tuple[list[str], Floats]:
    """Elements of an observation and how far each is from its mean in training, in deviations.

    Args:
        bundle: of the policy.
        obs: (N,) as `Policy.observe` returns it.

    Returns:
        Names of the elements that a normaliser knows, and as many numbers; both empty without one.
    """
    labels, starts = observation_labels(bundle), _starts(bundle)
    names: list[str] = []
    far: list[Floats] = []
    for view in trained_views(bundle):
        statistics = view.statistics
        start = starts[statistics.graph, statistics.input]
        part = slice(start, start + statistics.mean.size)
        names += labels[part]
        if statistics.origin == "contract":
            far.append(obs[part].astype(np.float64))  # normalised by the contract already
        else:
            far.append((obs[part] - statistics.mean) / np.maximum(statistics.deviation, LEAST_DEVIATION))
    return names, np.concatenate(far) if far else np.zeros(0)


def trained_targets(policy: Policy) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Where targets lay in training, from the statistics of the last action.

    Returns:
        (29,) 1st and 99th percentile, rad, by a normal distribution, and (29,) where they are known. With a
        reference they are those about the reference of the last observation.
    """
    bundle, joints = policy.bundle, action_labels(policy.bundle)
    low, high = np.zeros((2, policy.raw.size), np.float32)
    known: set[str] = set()
    for view in trained_views(bundle):
        seen = view.newest("last_action")
        if seen is None or not np.isfinite(seen.raw_deviation).all():
            continue
        at = [joints.index(joint) for joint in seen.joints]
        low[at] = seen.raw_mean - TAIL * seen.raw_deviation
        high[at] = seen.raw_mean + TAIL * seen.raw_deviation
        known |= {*seen.joints}
    ends = np.sort([policy.target(low).copy(), policy.target(high).copy()], axis=0).astype(np.float64)
    return ends[0], ends[1], np.array([name in known for name in bundle.robot.joint_names])


def _starts(bundle: PolicyBundle) -> dict[tuple[str, str], int]:
    """Where each input begins in the observation, by graph and input."""
    starts, start = {}, 0
    for graph in bundle.contract.graphs:
        stops = {item.input: item.stop for item in place(bundle.contract, graph, bundle.source_widths)}
        for name, stop in stops.items():
            starts[graph, name] = start
            start += stop
    return starts
