"""Does the policy fit the robot and itself, as far as that shows without moving anything?"""

from collections.abc import Callable, Sequence

import numpy as np

from onboard.configs.robot import RobotConfig
from onboard.policies.contract import Contract
from onboard.policies.fingerprint import check_fingerprint
from onboard.policies.fingerprint.deviation import trained_targets, unusual
from onboard.policies.plausible import check_plausible
from onboard.policies.policy import Policy
from onboard.policies.residual.files import RANGE_SHARE, ResidualBundle
from onboard.runtime.assembly import Plan
from onboard.runtime.link import State
from onboard.runtime.preflight.report import Check, Finding, judged, passed

START_WARN_RAD = 0.5
START_FAIL_RAD = 0.95
"""First targets of the published policies stay within 0.9 rad of their start pose."""
GAIN_SHARE = 3.0
"""A policy stiffer than the robot's own stand by so much is unusual."""
UNUSUAL = (5.0, 10.0)
"""Warn, fail: deviations of training; published policies in their start pose stay within 2.8."""
NEAR_RAD = 0.3
"""A joint that is further from the start pose is judged as if the ramp had brought it there."""
BEYOND_RAD = 0.1
"""Targets of training may reach so far past a joint's range: the way to ask for torque at its end."""


class PolicyChecks:
    """The checks of one policy.

    Args:
        policy: built, not yet in use.
        plan: of the run that it is for.
    """

    def __init__(self, policy: Policy, plan: Plan) -> None:
        self._policy = policy
        self._plan = plan

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        looks: list[tuple[str, Callable[[], Finding]]] = [
            ("contract", self._contract),
            ("fingerprint", self._fingerprint),
            ("first_action", self._first_action),
            ("start_pose", self._start_pose),
            ("gains", self._gains),
            ("limits", lambda: judge_limits(self._policy, self._plan.robot)),
        ]
        residual = self._plan.residual
        if residual is not None:
            looks.append(("residual", lambda: judge_residual(self._policy, residual)))
        return [Check("policy", name, look) for name, look in looks]

    def live(self, state: Callable[[], State]) -> list[Check]:
        """The check that needs a robot; `state` gives what it reports now."""
        return [Check("policy", "observation", lambda: judge_observation(self._policy, state()))]

    def _contract(self) -> Finding:
        notes = self._plan.notes
        filled = f"; {len(notes)} notes, printed at the start of a run" if notes else ""
        return passed(f"{self._policy.bundle.name} fits {self._plan.robot.name} and its models{filled}")

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
        report = check_plausible(self._policy.bundle, self._plan.robot)
        away = report.start_max_rad
        return judged(
            "; ".join(report.findings)
            or f"standing in the start pose, the first target is {away:.2f} rad away at most",
            warn=away > START_WARN_RAD,
            fail=not report.ok or away > START_FAIL_RAD,
            advice="look at scale, joint order and default pose of the contract",
            values={"first_target_rad": away} if np.isfinite(away) else {},
        )

    def _start_pose(self) -> Finding:
        robot, pose = self._plan.robot, self._policy.start_pose
        margin = np.where(robot.valid, np.minimum(pose - robot.lower, robot.upper - pose), np.inf)
        worst = int(margin.argmin())
        return judged(
            f"nearest limit: {robot.joint_names[worst]}, {margin[worst]:.3f} rad",
            warn=bool(margin[worst] < 0.02),
            fail=bool(margin[worst] < 0.0),
            advice="the ramp would end at a joint's stop; look at the contract's start pose",
            values={"margin_rad": float(margin[worst])},
        )

    def _gains(self) -> Finding:
        robot, kp, kd = self._plan.robot, self._policy.kp, self._policy.kd
        gateway = self._plan.safety.gateway
        ratio = np.divide(kp, robot.stand_kp, out=np.zeros_like(kp), where=robot.stand_kp > 0)
        worst = int(ratio.argmax())
        faults = _gain_faults(kp, kd, self._policy.bundle.contract, robot, gateway.kp_max, gateway.kd_max)
        return judged(
            "; ".join(faults)
            or f"as in the contract: kp up to {kp.max():g} N·m/rad, kd up to {kd.max():g} N·m·s/rad; "
            f"stiffest against the stand: {robot.joint_names[worst]}, {ratio[worst]:.1f} times",
            warn=bool(ratio[worst] > GAIN_SHARE),
            fail=bool(faults),
            advice="compare with the gains of the training; a joint with stiffness and no damping shakes",
        )


def _gain_faults(
    kp: np.ndarray, kd: np.ndarray, contract: Contract, robot: RobotConfig, kp_max: float, kd_max: float
) -> list[str]:
    """What is wrong with the gains that would be sent."""
    slots = [robot.slot(joint) for joint in contract.joints]
    bad = {
        "are not finite": ~(np.isfinite(kp) & np.isfinite(kd)),
        "are negative": (kp < 0) | (kd < 0),
        "have stiffness and no damping": (kp > 0) & (kd <= 0),
        f"exceed the gateway's limits (kp {kp_max:g}, kd {kd_max:g}), which would damp": (kp > kp_max)
        | (kd > kd_max),
    }
    other = np.zeros(kp.size, bool)
    other[slots] = ~(np.isclose(kp[slots], contract.kp) & np.isclose(kd[slots], contract.kd))
    bad["are not those of the contract"] = other
    return [f"gains of {_named(robot, mask)} {what}" for what, mask in bad.items() if mask.any()]


def judge_limits(policy: Policy, robot: RobotConfig) -> Finding:
    """Whether the joints' ranges leave the policy the room that it used in training."""
    low, high, known = trained_targets(policy)
    known = known & robot.valid
    if not known.any():
        return passed("how far the actions went in training is not known: no normaliser with a last action")
    beyond = np.where(known, np.maximum(robot.lower - low, high - robot.upper), -np.inf)
    cut, worst = beyond > BEYOND_RAD, int(beyond.argmax())
    return judged(
        f"of training's targets (1 to 99 %) {_named(robot, cut)} ask for up to {beyond[worst]:.2f} rad "
        f"beyond the range ({robot.joint_names[worst]})"
        if cut.any()
        else f"training's targets (1 to 99 %) lie inside the joints' ranges, or at most "
        f"{max(0.0, beyond[worst]):.2f} rad beyond",
        warn=bool(cut.any()),
        fail=False,
        advice="these targets are cut; onboard try tells how often",
        values={"beyond_rad": float(beyond[worst])},
    )


def judge_residual(policy: Policy, residual: ResidualBundle) -> Finding:
    """The bound against 30 % of the action's range: the file's own, else that of training."""
    config, robot = residual.config, policy.bundle.robot
    low, high, known = trained_targets(policy)
    widths = {
        name: float(high[slot] - low[slot]) for slot, name in enumerate(robot.joint_names) if known[slot]
    } | config.action_range_rad
    bound = config.bound_rad
    if bound is None:
        return judged(
            f"{config.name} has no bound",
            warn=True,
            fail=False,
            advice="a linear delta needs none, but bound_rad would keep an outlier small",
        )
    shares = {joint: bound / widths[joint] for joint in config.joints if widths.get(joint)}
    if not shares:
        return judged(
            f"{config.name}: bound {bound:g} rad; the range of the actions is not known",
            warn=True,
            fail=False,
            advice="give action_range_rad in the residual file (1 to 99 % of target less default)",
        )
    worst = max(shares, key=lambda joint: shares[joint])
    return judged(
        f"{config.name}: bound {bound:g} rad is {100 * shares[worst]:.0f} % of the action's range at {worst}",
        warn=len(shares) < len(config.joints),
        fail=shares[worst] > RANGE_SHARE,
        advice=f"beyond {100 * RANGE_SHARE:.0f} % the simulator is too far off: fix the model first"
        if shares[worst] > RANGE_SHARE
        else "of some joints the range is not known; give action_range_rad in the residual file",
        values={"share": shares[worst]},
    )


def judge_observation(policy: Policy, state: State) -> Finding:
    """What the policy would see of the robot now, against training; and what it would answer."""
    robot, start = policy.bundle.robot, policy.start_pose
    moved = robot.valid & (np.abs(state.q - start) > NEAR_RAD)
    state.q[:], state.dq[:] = np.where(moved, start, state.q), np.where(moved, 0.0, state.dq)
    policy.reset(state)
    obs = policy.observe(state, policy.neutral_command(), 0).copy()
    away = float(np.abs(policy.target(policy.infer()) - start).max())
    policy.reset(state)
    names, far = unusual(policy.bundle, obs)
    worst = int(np.abs(far).argmax()) if far.size else 0
    deviations = float(abs(far[worst])) if far.size else 0.0
    finite = bool(np.isfinite(obs).all() and np.isfinite(away))
    seen = f"{names[worst]} is {deviations:.1f} deviations from training" if far.size else "no normaliser"
    posed = f"; {int(moved.sum())} joints as after the ramp" if moved.any() else ""
    return judged(
        f"most unusual: {seen}; first target {away:.2f} rad from the start pose{posed}"
        if finite
        else "the observation or the answer to it is not finite: a sensor that the policy reads is silent",
        warn=deviations > UNUSUAL[0] or away > START_WARN_RAD,
        fail=not finite or deviations > UNUSUAL[1] or away > START_FAIL_RAD,
        advice="a frame, an order or a unit of what the robot reports is not the one of training",
        values={"deviations": deviations, "first_target_rad": away} if finite else {},
    )


def _named(robot: RobotConfig, mask: Sequence[bool] | np.ndarray) -> str:
    names = [name for name, chosen in zip(robot.joint_names, mask, strict=True) if chosen]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
