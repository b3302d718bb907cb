"""Builds the parts of a run from its configuration; the same way for a robot and in lock-step."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from onboard.configs.bodies import has_bodies
from onboard.configs.errors import ConfigError
from onboard.configs.events import Arm, Event
from onboard.configs.robot import RobotConfig, load_robot
from onboard.configs.run import RunConfig
from onboard.configs.safety import SafetyConfig, damping_kd, load_safety, with_policy_overrides
from onboard.logging.layout import PolicyShape, record_dtype
from onboard.logging.run_info import PolicyInfo, RunInfo, describe_run
from onboard.policies.actor import Actor
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.estimators.provider import EXTERNAL, LEG_ODOMETRY, Provision, Source
from onboard.policies.excitation import Excitation, bench_bundle
from onboard.policies.policy import Policy
from onboard.policies.residual.blocks import BlockSlot
from onboard.policies.residual.files import ResidualBundle, load_residual
from onboard.policies.residual.gains import make_slot
from onboard.policies.residual.slot import NoResidual, Slot
from onboard.runtime.clock import Clock
from onboard.runtime.gateway_core import GatewayConfig, make_config
from onboard.runtime.link import Float32Array, Link
from onboard.runtime.loop import ControlLoop, Sink, Watch
from onboard.runtime.modes import ModeMachine, ModeTimes
from onboard.runtime.operator_input import Operator, Port
from onboard.runtime.pilot import Pilot
from onboard.runtime.repertoire import Repertoire
from onboard.runtime.tick_recorder import TickRecorder
from onboard.safety.gate import Gate, make_tables

DRY_OVERRIDES = ("events.RAMP_TRACKING.limit=.inf", "events.RAMP_TORQUE.limit=.inf")
"""In a dry run nobody follows the ramp."""

_ARM_NAMES = {"blocks": "ab"}
"""How a rollout calls a run whose arm changes."""

DEFAULT_RANGE = (-0.5, 0.5)
"""Command range where the policy's owner states none; m/s or rad/s."""


@dataclass(frozen=True)
class Plan:
    """A run's configuration with everything that it names read and checked.

    Attributes:
        safety: the robot's table with the first policy's overrides.
        bundle: the first policy.
        bundles: every policy of the run, the first included.
        tables: the safety table with each policy's overrides.
        residual: of the first policy, None without one.
        notes: what was overridden or filled in, one line each, for the operator and the log.
    """

    config: RunConfig
    robot: RobotConfig
    bundles: tuple[PolicyBundle, ...]
    tables: tuple[SafetyConfig, ...]
    residual: ResidualBundle | None
    notes: tuple[str, ...]

    @property
    def bundle(self) -> PolicyBundle:
        """The first policy."""
        return self.bundles[0]

    @property
    def safety(self) -> SafetyConfig:
        """The table while the first policy is in charge."""
        return self.tables[0]

    @property
    def fingerprint(self) -> str:
        """Of everything read from files, defaults and overrides included: equal where it was read alike."""
        read = [msgspec.json.encode(part) for part in (self.robot, self.tables)]
        read += [msgspec.json.encode(bundle.contract) for bundle in self.bundles]
        read += [digest.encode() for bundle in self.bundles for digest in bundle.model_paths.values()]
        if self.residual is not None:
            read += [self.residual.text.encode(), *(d.encode() for d in self.residual.sha256.values())]
        return hashlib.sha256(b"\0".join(read)).hexdigest()

    @property
    def at_hand(self) -> list[str]:
        """Providers of a run with processes: the recorder estimates for robots whose links are known."""
        there = {LEG_ODOMETRY: has_bodies(self.robot.name), EXTERNAL: bool(self.config.external_pose)}
        return [name for name, is_there in there.items() if is_there]

    @property
    def providers(self) -> set[str]:
        """Names of everything that must provide what policies and the residual read."""
        named = {name for bundle in self.bundles for name in bundle.contract.providers.values()}
        by_contact = self.residual is not None and self.residual.config.kind == "by_contact"
        return named | ({LEG_ODOMETRY} if by_contact else set())

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

    def command_ranges(self, index: int = 0) -> tuple[tuple[float, float], ...]:
        """((low, high), ...) of vx, vy, wz of one policy; a range that is not stated is ±0.5."""
        commands = self.bundles[index].contract.commands
        stated = (commands.lin_vel_x, commands.lin_vel_y, commands.ang_vel_z)
        return tuple((pair[0], pair[1]) if pair else DEFAULT_RANGE for pair in stated)

    @property
    def arm(self) -> Arm:
        """Side of the A/B comparison that the first policy's ticks belong to; of blocks the first one's."""
        return Arm.DROP if self.config.arm == "blocks" else Arm[self.config.arm.upper()]

    def policies(self) -> list[Actor]:
        """Every policy, ready to run; on the bench the excitation."""
        if self.config.bench is not None:
            return [Excitation(self.bundle, self.config.bench, self.robot)]
        return [Policy(bundle, self.robot) for bundle in self.bundles]

    def slots(self, policies: Sequence[Actor]) -> list[Slot]:
        """Each policy's residual slot; a residual is the first policy's."""
        first, *others = policies
        slot: Slot = NoResidual(first.raw.size, self.arm)
        if self.residual is not None:
            slot = make_slot(self.residual, first, self.robot, self.arm)
        if self.config.arm == "blocks":
            slot = BlockSlot(slot, self.config.block_s, self.config.period_ns / 1e9, self.config.block_seed)
        return [slot, *(NoResidual(policy.raw.size) for policy in others)]


def make_plan(config: RunConfig) -> Plan:
    """Read and check everything that a run's configuration names.

    Raises:
        OnboardError: anything of it is missing or wrong.
    """
    robot = load_robot(config.robot)
    bundles = _bundles(config, robot)
    unfollowed = DRY_OVERRIDES if config.dry else ()
    safety = load_safety(config.safety, [*config.safety_overrides, *unfollowed])
    tables, notes = [], [f"safety override: {line}" for line in config.safety_overrides]
    for bundle in bundles:
        _check_rate(bundle, config)
        table, lines = with_policy_overrides(safety, bundle.contract.safety, bundle.name)
        tables.append(table)
        notes += [*lines, *bundle.defaults]
    residual = _residual(config, robot, bundles[0])
    if residual is not None:
        notes += residual.notes
    return Plan(config, robot, bundles, tuple(tables), residual, tuple(notes))


def _bundles(config: RunConfig, robot: RobotConfig) -> tuple[PolicyBundle, ...]:
    """The run's policies, or the one excitation of a bench run."""
    if config.bench is not None:
        return (bench_bundle(config.bench, robot, config.timing.rate_hz),)
    provider = config.provider or None
    first = load_policy(
        config.policy,
        robot,
        config.preset or None,
        config.policy_overrides,
        provider,
        format_name=config.format or None,
    )
    others = [
        load_policy(choice.policy, robot, choice.preset or None, provider=provider) for choice in config.also
    ]
    return (first, *others)


def _residual(config: RunConfig, robot: RobotConfig, bundle: PolicyBundle) -> ResidualBundle | None:
    """The run's residual, checked down to its networks; nothing that is only read at the start is left."""
    if bool(config.residual) != (config.arm != "none") and config.arm != "drop":
        raise ConfigError(
            f"residual '{config.residual}' with arm '{config.arm}': all arms but drop need a residual, and "
            "a residual needs an arm; give --residual FILE --arm keep, drop, shadow or blocks"
        )
    if not config.residual:
        return None
    residual = load_residual(config.residual, robot, bundle.contract, config.residual_overrides)
    make_slot(residual, Policy(bundle, robot), robot, Arm.SHADOW)
    return residual


def _check_rate(bundle: PolicyBundle, config: RunConfig) -> None:
    rate_hz = bundle.contract.rate_hz
    if abs(rate_hz - config.timing.rate_hz) > 1e-6:
        raise ConfigError(
            f"policy {bundle.name} runs at {rate_hz:g} Hz, the loop at {config.timing.rate_hz:g} Hz; "
            f"give --timing-set rate_hz={rate_hz:g}"
        )


def policy_shape(policy: Actor) -> PolicyShape:
    """Widths of a policy's columns in the record."""
    extras = tuple((name, values.size) for name, values in policy.extras.items())
    return PolicyShape(policy.bundle.name, policy.obs.size, policy.raw.size, extras)


def record_type(policies: Sequence[Actor]) -> np.dtype:
    """Type of the run's records."""
    return record_dtype([policy_shape(policy) for policy in policies])


def run_info(plan: Plan, policies: Sequence[Actor], check: str = "") -> RunInfo:
    """What the rollout says about the run; `check` is what `preflight.record.admit` found."""
    texts = {
        name: msgspec.yaml.encode(part).decode()
        for name, part in (("run", plan.config), ("robot", plan.robot), ("safety", plan.safety))
    }
    texts["notes"] = "\n".join(plan.notes)
    first, *others = policies
    infos = [_policy_info(first, plan.residual), *(_policy_info(policy, None) for policy in others)]
    period_s = plan.config.period_ns / 1e9
    arm = _ARM_NAMES.get(plan.config.arm, plan.config.arm)
    return describe_run(plan.robot, infos, period_s, texts, arm, plan.config.note, check)


def _policy_info(policy: Actor, residual: ResidualBundle | None) -> PolicyInfo:
    contract = msgspec.yaml.encode(policy.bundle.contract).decode()
    models = {path.rsplit("/", 1)[-1]: digest for path, digest in policy.bundle.model_paths.items()}
    if residual is None:
        return PolicyInfo(policy_shape(policy), contract, models=models)
    return PolicyInfo(policy_shape(policy), contract, residual.text, models | residual.sha256)


def build_loop(
    plan: Plan,
    policies: Sequence[Actor],
    *,
    link: Link,
    clock: Clock,
    port: Port,
    watch: Watch,
    sink: Sink,
    sources: Sequence[Source] = (),
) -> ControlLoop:
    """The control loop with all its parts.

    Raises:
        PolicyError: a policy reads what none of the sources gives.
    """
    config = plan.config
    period_s = config.period_ns / 1e9
    times = plan.safety.times
    provision = Provision(sources, policies, plan.safety.limit(Event.PROVIDER_OLD))
    repertoire = Repertoire(policies, period_s, config.motions.approach_s)
    return ControlLoop(
        link=link,
        clock=clock,
        gate=Gate(plan.safety, plan.robot, period_s, settle_is_hold=config.bench is not None),
        tables=[make_tables(table, plan.robot, period_s) for table in plan.tables],
        ranges=[plan.command_ranges(index) for index in range(len(plan.bundles))],
        operator=Operator(port, config.sticks, plan.command_ranges(), period_s),
        machine=ModeMachine(period_s, ModeTimes(times.settle_s, times.stop_hold_s, times.stop_damp_s)),
        pilot=Pilot(repertoire, plan.slots(policies), provision, plan.robot, plan.damping_kd, config),
        watch=watch,
        sink=sink,
        recorder=TickRecorder(record_type(policies)),
        provision=provision,
        gantry=config.gantry,
    )
