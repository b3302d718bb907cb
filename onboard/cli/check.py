"""`onboard check`: is everything fit for a run?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from onboard.cli.options import parse, write_json
from onboard.cli.run_options import Policy, Repeated, run_config
from onboard.configs.errors import LinkError
from onboard.logging.layout import journal_dtype
from onboard.policies.policy import Policy as BuiltPolicy
from onboard.runtime.assembly import Plan, make_plan, record_type
from onboard.runtime.dds import DdsDomain
from onboard.runtime.preflight.network import NetworkChecks
from onboard.runtime.preflight.policy import PolicyChecks
from onboard.runtime.preflight.report import Check, Finding, Row, Verdict, run_checks
from onboard.runtime.preflight.timing import TimingChecks

EPILOG = """Nothing is commanded, nothing moves. `pass` will do, `warn` is a drawback, `fail` must be mended.

examples:
  onboard check holosoma_loco_ppo --interface eth0
  onboard check policy/ --domain 1 --only network --json -"""

STYLE = {Verdict.PASS: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}


@dataclass(frozen=True)
class Args:
    """Check policy, network and computer before a run; commands nothing."""

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
    set: Repeated = ()
    """key=value of the contract, dotted keys; may be given several times."""
    only: Repeated = ()
    """Only these: policy, network, timing, or one check such as network.loss; may be given several times."""
    waive: Repeated = ()
    """A check whose failure does not count, such as timing.loop; may be given several times."""
    out: str = "rollouts"
    """Folder for the rollouts."""
    seconds: float = 10.0
    """How long the dry loop lasts."""
    minutes: float = 10.0
    """How long the planned run lasts."""
    json: str = ""
    """Write the result to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when no check failed that was not waived."""
    args = parse(Args, "check", f"{Args.__doc__}\n\n{EPILOG}", argv)
    config = run_config(
        policy=args.policy,
        interface=args.interface,
        domain=args.domain,
        robot=args.robot,
        preset=args.preset,
        policy_overrides=args.set,
        out=args.out,
    )
    rows = _run(make_plan(config), args)
    failed = [row.name for row in rows if row.finding.verdict is Verdict.FAIL and row.name not in args.waive]
    result = {"ok": not failed, "failed": failed, "checks": [_plain(row, args.waive) for row in rows]}
    if args.json:
        write_json(args.json, result)
    return 1 if failed else 0


def _run(plan: Plan, args: Args) -> list[Row]:
    console = Console(stderr=args.json == "-", highlight=False)
    try:
        dds = DdsDomain(args.domain, args.interface)
    except LinkError as error:
        refusal = Finding(Verdict.FAIL, str(error), "give --interface and --domain of the robot")
        checks = _chosen(plan, args, [Check("network", "interface", lambda: refusal)])
        return [_show(console, row) for row in run_checks(checks)]
    with dds:
        checks = _chosen(plan, args, NetworkChecks(dds, plan.robot).checks())
        return [_show(console, row) for row in run_checks(checks)]


def _chosen(plan: Plan, args: Args, network: list[Check]) -> list[Check]:
    policy, out = BuiltPolicy(plan.bundle, plan.robot), Path(args.out)
    row_bytes = journal_dtype(record_type([policy])).itemsize
    timing = TimingChecks(policy, plan.config.period_ns, args.seconds, out, row_bytes, args.minutes)
    every = [*PolicyChecks(policy, plan.robot, plan.notes).checks(), *network, *timing.checks()]
    if not args.only:
        return every
    return [check for check in every if {check.group, f"{check.group}.{check.name}"} & {*args.only}]


def _show(console: Console, row: Row) -> Row:
    finding = row.finding
    console.print(f"{finding.verdict.name.lower():4}", style=STYLE[finding.verdict], end="  ")
    console.print(f"{row.name:23} {finding.measured}  ({row.seconds:.1f} s)", soft_wrap=True)
    if finding.advice:
        console.print(f"      {'':23} {finding.advice}", style="italic", soft_wrap=True)
    return row


def _plain(row: Row, waived: tuple[str, ...]) -> dict[str, Any]:
    return {
        "check": row.name,
        "verdict": row.finding.verdict.name.lower(),
        "measured": row.finding.measured,
        "advice": row.finding.advice,
        "seconds": round(row.seconds, 3),
        "waived": row.name in waived,
    }
