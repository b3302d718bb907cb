"""Builds the parts of a run from its configuration; the same way for a robot and in lock-step."""

from dataclasses import dataclass

import msgspec
import numpy as np

from onboard.configs.errors import ConfigError
from onboard.configs.robot import RobotConfig, load_robot
from onboard.configs.run import RunConfig
from onboard.configs.safety import SafetyConfig, damping_kd, load_safety, with_policy_overrides
from onboard.logging.layout import PolicyShape, record_dtype
from onboard.logging.run_info import PolicyInfo, RunInfo, describe_run
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.policy import Policy
from onboard.runtime.clock import Clock
from onboard.runtime.gateway_core import GatewayConfig, make_config
from onboard.runtime.link import Float32Array, Link
from onboard.runtime.loop import ControlLoop, Sink, Watch
from onboard.runtime.modes import ModeMachine, ModeTimes
from onboard.runtime.operator_input import Operator, Port
from onboard.runtime.pilot import Pilot
from onboard.runtime.tick_recorder import TickRecorder
from onboard.safety.gate import Gate

DRY_OVERRIDES = ("events.RAMP_TRACKING.limit=.inf", "events.RAMP_TORQUE.limit=.inf")
"""In a dry run nobody follows the ramp."""

DEFAULT_RANGE = (-0.5, 0.5)
"""Command range where the policy's owner states none; m/s or rad/s."""


@dataclass(frozen=True)
class Plan:
    """A run's configuration with everything that it names read and checked.

    Attributes:
        safety: the robot's table with the policy's overrides.
        notes: what was overridden or filled in, one line each, for the operator and the log.
    """

    config: RunConfig
    robot: RobotConfig
    safety: SafetyConfig
    bundle: PolicyBundle
    notes: tuple[str, ...]

    @property
    def damping_kd(self) -> Float32Array:
        """(29,) gains of damping, N·m·s/rad."""
        return damping_kd(self.safety, self.robot)

    def gateway(self, expiry_ms: float) -> GatewayConfig:
        """The gateway's limits."""
        limits = self.safety.gateway
        return make_config(
            self.robot,
            self.damping_kd,
            expiry_ms=expiry_ms,
            tilt_limit_rad=limits.tilt_rad,
            range_margin_rad=limits.range_margin_rad,
            kp_max=limits.kp_max,
            kd_max=limits.kd_max,
        )

    def command_ranges(self) -> tuple[tuple[float, float], ...]:
        """((low, high), ...) of vx, vy, wz; a range that the contract does not state is ±0.5."""
        commands = self.bundle.contract.commands
        stated = (commands.lin_vel_x, commands.lin_vel_y, commands.ang_vel_z)
        return tuple((pair[0], pair[1]) if pair else DEFAULT_RANGE for pair in stated)


def make_plan(config: RunConfig) -> Plan:
    """Read and check everything that a run's configuration names.

    Raises:
        OnboardError: anything of it is missing or wrong.
    """
    robot = load_robot(config.robot)
    bundle = load_policy(config.policy, robot, config.preset or None, config.policy_overrides)
    unfollowed = DRY_OVERRIDES if config.dry else ()
    safety = load_safety(config.safety, [*config.safety_overrides, *unfollowed])
    safety, notes = with_policy_overrides(safety, bundle.contract.safety, bundle.name)
    if abs(bundle.contract.rate_hz - config.timing.rate_hz) > 1e-6:
        raise ConfigError(
            f"policy {bundle.name} runs at {bundle.contract.rate_hz:g} Hz, the loop at "
            f"{config.timing.rate_hz:g} Hz; give --rate-hz {bundle.contract.rate_hz:g}"
        )
    lines = (*notes, *(f"safety override: {line}" for line in config.safety_overrides), *bundle.defaults)
    return Plan(config, robot, safety, bundle, lines)


def policy_shape(policy: Policy) -> PolicyShape:
    """Widths of a policy's columns in the record."""
    extras = tuple((name, values.size) for name, values in policy.extras.items())
    return PolicyShape(policy.bundle.name, policy.obs.size, policy.raw.size, extras)


def record_type(policy: Policy) -> np.dtype:
    """Type of the run's records."""
    return record_dtype([policy_shape(policy)])


def run_info(plan: Plan, policy: Policy, arm: str = "none") -> RunInfo:
    """What the rollout says about the run."""
    bundle = plan.bundle
    contract = msgspec.yaml.encode(bundle.contract).decode()
    models = {path.rsplit("/", 1)[-1]: digest for path, digest in bundle.model_paths.items()}
    texts = {
        name: msgspec.yaml.encode(part).decode()
        for name, part in (("run", plan.config), ("robot", plan.robot), ("safety", plan.safety))
    }
    texts["notes"] = "\n".join(plan.notes)
    info = PolicyInfo(policy_shape(policy), contract, models=models)
    period_s = plan.config.period_ns / 1e9
    return describe_run(plan.robot, [info], period_s, texts, arm, plan.config.note)


def build_loop(
    plan: Plan, policy: Policy, *, link: Link, clock: Clock, port: Port, watch: Watch, sink: Sink
) -> ControlLoop:
    """The control loop with all its parts."""
    config = plan.config
    period_s = config.period_ns / 1e9
    times = plan.safety.times
    return ControlLoop(
        link=link,
        clock=clock,
        gate=Gate(plan.safety, plan.robot, period_s),
        operator=Operator(port, config.sticks, plan.command_ranges(), period_s),
        machine=ModeMachine(period_s, ModeTimes(times.settle_s, times.stop_hold_s, times.stop_damp_s)),
        pilot=Pilot(policy, plan.robot, plan.damping_kd, config),
        watch=watch,
        sink=sink,
        recorder=TickRecorder(record_type(policy)),
        gantry=config.gantry,
    )
