"""`onboard check`: is everything fit for a run?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from onboard.cli.check_gantry import Where, gantry_checks
from onboard.cli.check_replay import ReplayChecks
from onboard.cli.check_report import checked_rows, result, show
from onboard.cli.options import parse, write_json
from onboard.cli.run_options import Policy, Repeated, arm, run_config
from onboard.configs.errors import LinkError
from onboard.configs.run import RunConfig
from onboard.logging.layout import journal_dtype, lowstate_dtype
from onboard.policies.policy import Policy as BuiltPolicy
from onboard.runtime.assembly import Plan, make_plan, record_type
from onboard.runtime.dds import DdsDomain
from onboard.runtime.preflight.imu import ImuChecks
from onboard.runtime.preflight.network import NetworkChecks
from onboard.runtime.preflight.policy import PolicyChecks
from onboard.runtime.preflight.record import store_rows, subjects
from onboard.runtime.preflight.report import Check, Finding, Row, Verdict, run_checks
from onboard.runtime.preflight.robot import RobotChecks
from onboard.runtime.preflight.tilt import TiltChecks
from onboard.runtime.preflight.timing import TimingChecks

EPILOG = """Without --gantry nothing is commanded, nothing moves. `pass` will do, `warn` is a drawback, `fail`
must be mended. The result is kept in the folder of the rollouts, where `onboard run` looks for it: a
failed check refuses the run (docs/check.md).

examples:
  onboard check holosoma_loco_ppo --interface eth0
  onboard check policy/ --domain 1 --only network --json -
  onboard check policy/ --interface eth0 --gantry --release     it hangs: every joint takes a small step"""


LOWSTATE_HZ = 500.0


@dataclass(frozen=True)
class Args:
    """Check policy, network, computer and robot before a run; commands nothing without --gantry."""

    policy: Policy
    """Folder, ONNX file, or shipped name."""
    interface: str = "lo"
    """Network interface of the robot; eth0 on its own computer."""
    domain: int = 0
    """DDS domain id; 0 on the robot."""
    robot: str = "g1_29dof"
    """Robot description: shipped name or YAML path."""
    preset: str = ""
    """Preset for policies that do not say enough themselves."""
    provider: Literal["", "leg_odometry", "external"] = ""
    """As for the run: what provides base velocity and contact, where the contract names nobody."""
    format: str = ""
    """Read the policy as this format, as for the run."""
    set: Repeated = ()
    """key=value of the contract, dotted keys; may be given several times."""
    residual: str = ""
    """Residual file that the run will use."""
    residual_set: Repeated = ()
    """key=value of the residual, as for the run."""
    only: Repeated = ()
    """Only these: policy, network, robot, timing, imu, or one check such as network.loss; may be repeated.
    What --gantry adds is made all the same."""
    waive: Repeated = ()
    """A check whose failure does not count, such as timing.loop; may be given several times."""
    out: str = "rollouts"
    """Folder for the rollouts, where the result is kept too."""
    gantry: bool = False
    """The robot hangs, feet free: let every joint take a small step, and measure the latency. Not made when
    another check has failed."""
    release: bool = False
    """With --gantry: release the robot's built-in controller, after a press of START."""
    latency_joint: str = "left_elbow_joint"
    """With --gantry: the joint whose chirp measures the latency."""
    seconds: float = 10.0
    """How long the dry loop lasts."""
    minutes: float = 10.0
    """How long the planned run lasts."""
    replay: str = ""
    """Rollout of an earlier run of this policy: rebuild its observations here, bit by bit."""
    lowstate: bool = False
    """The run will record every LowState sample too."""
    tilt: bool = False
    """Ask for the robot to be tilted by hand, forward and left, and see whether the IMUs say the same."""
    json: str = ""
    """Write the result to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when no check failed that was not waived."""
    args = parse(Args, "check", f"{Args.__doc__}\n\n{EPILOG}", argv)
    plan = make_plan(_config(args))
    moving = _moving(args)
    rows = checked_rows(_rows(plan, args, moving), args.waive)
    stored = store_rows(Path(args.out), subjects(plan)[0], rows)
    told = result(rows, str(stored))
    if args.json:
        write_json(args.json, told)
    return 0 if told["ok"] else 1


def _config(args: Args) -> RunConfig:
    return run_config(
        policy=args.policy,
        interface=args.interface,
        domain=args.domain,
        robot=args.robot,
        preset=args.preset,
        provider=args.provider,
        format=args.format,
        policy_overrides=args.set,
        residual=args.residual,
        residual_overrides=args.residual_set,
        arm=arm(args.residual, ""),
        out=args.out,
    )


def _moving(args: Args) -> list[Check]:
    """The checks that move the robot."""
    if not args.gantry:
        return []
    where = Where(args.robot, args.interface, args.domain, args.out, args.release)
    return gantry_checks(where, args.latency_joint).checks()


def _rows(plan: Plan, args: Args, moving: list[Check]) -> list[Row]:
    """Make the chosen checks, each shown as soon as it is made."""
    console = Console(stderr=args.json == "-", highlight=False)
    try:
        dds = DdsDomain(args.domain, args.interface)
    except LinkError as error:
        refusal = Finding(Verdict.FAIL, str(error), "give --interface and --domain of the robot")
        checks = [Check("network", "interface", lambda: refusal), *_without_robot(plan, args)]
        return [show(console, row) for row in run_checks(_chosen(checks, args))]
    with dds:
        checks = [*_with_robot(dds, plan, args, console), *_without_robot(plan, args)]
        rows = [show(console, row) for row in run_checks(_chosen(checks, args))]
    return rows + [show(console, row) for row in run_checks(_unless_failed(moving, rows, args))]


def _unless_failed(moving: list[Check], before: list[Row], args: Args) -> list[Check]:
    """The checks that move the robot, or a refusal where an earlier one has failed and was not waived."""
    bad = [row.name for row in before if row.finding.verdict is Verdict.FAIL]
    failed = [name for name in bad if name not in args.waive]
    if not moving or not failed:
        return moving
    refusal = Finding(Verdict.FAIL, f"nothing was moved: {', '.join(failed)} failed", "mend that first")
    return [Check("robot", "probe", lambda: refusal)]


def _with_robot(dds: DdsDomain, plan: Plan, args: Args, console: Console) -> list[Check]:
    """Checks that listen to the robot."""
    imu = ImuChecks(dds)
    live = PolicyChecks(BuiltPolicy(plan.bundle, plan.robot), plan).live(lambda: imu.track().newest)
    of_robot = RobotChecks(dds, plan.robot, plan.safety).checks()
    checks = [*NetworkChecks(dds, plan.robot).checks(), *of_robot, *imu.checks(), *live]
    if args.tilt:
        checks += TiltChecks(dds, lambda line: console.print(f"  >>  {line}", style="bold cyan")).checks()
    return checks


def _without_robot(plan: Plan, args: Args) -> list[Check]:
    """Checks that need nobody on the network."""
    policy, out = BuiltPolicy(plan.bundle, plan.robot), Path(args.out)
    timing = TimingChecks(
        policy, plan.config.period_ns, args.seconds, out, _bytes_per_s(policy, plan, args), args.minutes
    )
    earlier = ReplayChecks(Path(args.replay), plan).checks() if args.replay else []
    return [*PolicyChecks(policy, plan).checks(), *timing.checks(), *earlier]


def _bytes_per_s(policy: BuiltPolicy, plan: Plan, args: Args) -> float:
    """What the recorder of the run will write."""
    rows = journal_dtype(record_type([policy])).itemsize * 1e9 / plan.config.period_ns
    return rows + (lowstate_dtype().itemsize * LOWSTATE_HZ if args.lowstate else 0.0)


def _chosen(checks: list[Check], args: Args) -> list[Check]:
    if not args.only:
        return checks
    return [check for check in checks if {check.group, f"{check.group}.{check.name}"} & {*args.only}]
