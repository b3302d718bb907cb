"""Does the policy fit the robot and itself, as far as that shows without moving anything?"""

from collections.abc import Callable, Sequence

import numpy as np

from onboard.configs.robot import RobotConfig
from onboard.policies.fingerprint import check_fingerprint
from onboard.policies.plausible import check_plausible
from onboard.policies.policy import Policy
from onboard.runtime.preflight.report import Check, Finding, judged, passed

START_WARN_RAD = 0.5
START_FAIL_RAD = 0.95
"""First targets of the published policies stay within 0.9 rad of their start pose."""
GAIN_SHARE = 3.0
"""A policy stiffer than the robot's own stand by so much is unusual."""


class PolicyChecks:
    """The checks of one policy.

    Args:
        policy: built, not yet in use.
        robot: that it will run on.
        notes: what was overridden or filled in.
    """

    def __init__(self, policy: Policy, robot: RobotConfig, notes: Sequence[str]) -> None:
        self._policy = policy
        self._robot = robot
        self._notes = notes

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        looks: Sequence[tuple[str, Callable[[], Finding]]] = (
            ("contract", self._contract),
            ("fingerprint", self._fingerprint),
            ("first_action", self._first_action),
            ("start_pose", self._start_pose),
            ("gains", self._gains),
        )
        return [Check("policy", name, look) for name, look in looks]

    def _contract(self) -> Finding:
        filled = f"; {len(self._notes)} notes, printed at the start of a run" if self._notes else ""
        return passed(f"{self._policy.bundle.name} fits {self._robot.name} and its models{filled}")

    def _fingerprint(self) -> Finding:
        report = check_fingerprint(self._policy.bundle)
        if not report.inputs:
            return passed("no normaliser to compare with")
        return judged(
            "; ".join(report.findings) or f"fits what {', '.join(report.inputs)} saw in training",
            warn=False,
            fail=not report.ok,
            advice="the contract describes another observation than the policy was trained on",
        )

    def _first_action(self) -> Finding:
        report = check_plausible(self._policy.bundle, self._robot)
        return judged(
            "; ".join(report.findings)
            or f"standing in the start pose, the first target is {report.start_max_rad:.2f} rad away at most",
            warn=report.start_max_rad > START_WARN_RAD,
            fail=not report.ok or report.start_max_rad > START_FAIL_RAD,
            advice="look at scale, joint order and default pose of the contract",
        )

    def _start_pose(self) -> Finding:
        robot, pose = self._robot, self._policy.start_pose
        margin = np.where(robot.valid, np.minimum(pose - robot.lower, robot.upper - pose), np.inf)
        worst = int(margin.argmin())
        return judged(
            f"nearest limit: {robot.joint_names[worst]}, {margin[worst]:.3f} rad",
            warn=bool(margin[worst] < 0.02),
            fail=bool(margin[worst] < 0.0),
            advice="the ramp would end at a joint's stop; look at the contract's start pose",
        )

    def _gains(self) -> Finding:
        robot, kp, kd = self._robot, self._policy.kp, self._policy.kd
        ratio = np.divide(kp, robot.stand_kp, out=np.zeros_like(kp), where=robot.stand_kp > 0)
        worst = int(ratio.argmax())
        finite = bool(np.isfinite(kp).all() and np.isfinite(kd).all() and (kp >= 0).all() and (kd >= 0).all())
        return judged(
            f"kp up to {kp.max():g} N·m/rad, kd up to {kd.max():g} N·m·s/rad; stiffest against the stand: "
            f"{robot.joint_names[worst]}, {ratio[worst]:.1f} times",
            warn=bool(ratio[worst] > GAIN_SHARE),
            fail=not finite or not bool((kd[kp > 0] > 0).all()),
            advice="a joint with stiffness and no damping shakes; compare with the gains of the training",
        )
