"""What can be said about a policy without golden vectors: finite output, and sane targets at the start."""

from dataclasses import dataclass

import numpy as np

from onboard.configs.robot import RobotConfig
from onboard.policies.bundle import PolicyBundle
from onboard.policies.contract import Contract
from onboard.policies.policy import Policy
from onboard.runtime.link import State

TICKS = 100
FED_BACK = 5.0
"""Bound of the last action that a random state is combined with: on random states, which no policy was
trained on, the loop through the last action may be unstable."""

START_LIMIT_RAD = 1.0
"""A first target further than this from the start pose points to a wrong scale, order or default pose.

Nominal first targets of the published policies stay within 0.9 rad, most of them within 0.4.
"""


@dataclass(frozen=True)
class PlausibleReport:
    """Result of the check.

    Attributes:
        ticks: with random states.
        finite: observation, raw action and target were finite in all of them.
        raw_max_abs: largest raw output.
        start_max_rad: how far the first target is from the start pose, standing still there.
        ok: nothing found.
        findings: what is wrong, one sentence each.
    """

    ticks: int
    finite: bool
    raw_max_abs: float
    start_max_rad: float
    ok: bool
    findings: tuple[str, ...]


def check_plausible(bundle: PolicyBundle, robot: RobotConfig, seed: int = 0) -> PlausibleReport:
    """Run the policy on random states, and on the robot standing still in the start pose."""
    policy = Policy(bundle, robot)
    bad, raw_max = _random_ticks(policy, robot, np.random.default_rng(seed))
    findings = [f"{name} is not finite on a random state" for name in bad]
    start = _first_target(policy) - policy.start_pose
    worst = int(np.abs(start).argmax())
    if not np.isfinite(start).all():
        findings.append("the first target at the start pose is not finite")
    elif abs(start[worst]) > START_LIMIT_RAD:
        findings.append(
            f"standing still in the start pose, the first target moves {robot.joint_names[worst]} by "
            f"{start[worst]:.2f} rad (expected at most {START_LIMIT_RAD}): look at scale, joint order and "
            "default pose"
        )
    return PlausibleReport(
        ticks=TICKS,
        finite=not bad,
        raw_max_abs=raw_max,
        start_max_rad=float(np.abs(start).max()),
        ok=not findings,
        findings=tuple(findings),
    )


def _random_ticks(policy: Policy, robot: RobotConfig, rng: np.random.Generator) -> tuple[list[str], float]:
    """Names of what was not finite, and the largest raw output, over random walks of the state."""
    state, command = State(), policy.neutral_command()
    ranges = _ranges(policy.bundle.contract)
    bad: dict[str, None] = {}
    raw_max = 0.0
    for tick in range(TICKS):
        state.q[:] = rng.uniform(robot.lower, robot.upper)
        state.dq[:] = rng.uniform(-0.2, 0.2, len(robot.speed)) * robot.speed
        for array in (state.gyro_body, state.torso_gyro):
            array[:] = rng.uniform(-2.0, 2.0, 3)
        for array in (state.quat_wxyz, state.torso_quat_wxyz):
            array[:] = (quat := rng.normal(size=4) * (1.0, 0.1, 0.1, 1.0)) / np.linalg.norm(quat)
        command.set_velocity(*(float(rng.uniform(low, high)) for low, high in ranges))
        for view in policy.provided.values():
            view[:] = rng.uniform(-0.5, 0.5, len(view))
        if tick == 0:
            policy.reset(state)
        obs = policy.observe(state, command, tick)
        raw = policy.infer()
        named = {"the observation": obs, "the raw action": raw, "the target": policy.target(raw)}
        bad |= {name: None for name, array in named.items() if not np.isfinite(array).all()}
        raw_max = max(raw_max, float(np.abs(raw).max()))
        policy.commit(raw.clip(-FED_BACK, FED_BACK))
    return list(bad), raw_max


def _first_target(policy: Policy) -> np.ndarray:
    state = State()
    state.q[:] = policy.start_pose
    state.torso_quat_wxyz[:], state.torso_gyro[:] = (1, 0, 0, 0), 0
    for view in policy.provided.values():
        view[:] = 0.0
    policy.reset(state)
    policy.observe(state, policy.neutral_command(), 0)
    return policy.target(policy.infer())


def _ranges(contract: Contract) -> list[tuple[float, float]]:
    commands = contract.commands
    return [limits or (-0.5, 0.5) for limits in (commands.lin_vel_x, commands.lin_vel_y, commands.ang_vel_z)]
