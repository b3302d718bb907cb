"""A contract held against what the policy saw in training, where a normaliser remembers it.

A normaliser's mean and deviation are a fingerprint of the observation: gravity points down, left and right
are alike, joints hang about the default pose, and nothing moves twenty times too fast. This finds the
commonest mistakes without a single recorded tick; what it can't see, golden vectors can (docs/policies).
"""

from collections.abc import Callable
from dataclasses import dataclass

from onboard.policies.bundle import PolicyBundle
from onboard.policies.fingerprint.actions import action_scale, last_action
from onboard.policies.fingerprint.joints import absolute_positions, default_pose, joint_order
from onboard.policies.fingerprint.statistics import twice_normalised
from onboard.policies.fingerprint.terms import anchor, blanks, gravity, history, speeds
from onboard.policies.fingerprint.view import TrainedView, trained_views

CHECKS: tuple[Callable[[TrainedView], list[str]], ...] = (
    gravity,
    anchor,
    history,
    joint_order,
    default_pose,
    absolute_positions,
    speeds,
    blanks,
    action_scale,
    last_action,
)


@dataclass(frozen=True)
class FingerprintReport:
    """Result of the test.

    Attributes:
        inputs: `graph.input` of every input with a normaliser; empty where there is nothing to read.
        findings: what does not fit, with the most likely mistake, one sentence each.
    """

    inputs: tuple[str, ...]
    findings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Nothing found; also where there was nothing to read."""
        return not self.findings


def check_fingerprint(bundle: PolicyBundle) -> FingerprintReport:
    """Hold the contract against the statistics of every normaliser."""
    views = trained_views(bundle)
    findings = twice_normalised(bundle)
    findings += [text for view in views for check in CHECKS for text in check(view)]
    return FingerprintReport(tuple(view.name for view in views), tuple(dict.fromkeys(findings)))
