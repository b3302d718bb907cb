"""`onboard ab`: is the residual worth keeping? Paired episodes with and without it, and a verdict."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich import box
from rich.console import Console as Terminal
from rich.progress import Progress
from rich.table import Column, Table

from onboard.analysis.ab.experiment import ProtocolResult, experiment_json, judge_protocols
from onboard.analysis.ab.metrics import make_subject
from onboard.analysis.ab.report import HEADS, cells, write_report
from onboard.analysis.ab.schedule import Slot, make_schedule
from onboard.analysis.ab.scores import Score
from onboard.analysis.ab.verdict import overall
from onboard.cli.ab_flights import Flown, fly
from onboard.cli.ab_protocols import choose_protocols
from onboard.cli.ab_recorded import recorded_episodes
from onboard.cli.options import ask, parse, say, write_json
from onboard.cli.run_options import Policy, Repeated, gap_overrides, run_config
from onboard.configs.errors import ConfigError
from onboard.policies.residual.files import RANGE_SHARE
from onboard.runtime.assembly import Plan, make_plan

EPILOG = """examples:
  onboard ab holosoma_loco_ppo --residual r.yaml --gain 0.6 --latency-ms 10    a weak, late simulated robot
  onboard ab dance/ --residual r.yaml --sim-set "gap.gain={'*_ankle_*': 0.6}" --blocks 10 --out report/
  onboard ab my_policy/ --residual r.yaml --live --interface eth0              on the robot, with prompts
  onboard ab holosoma_loco_ppo --residual r.yaml --from a.h5 b.h5 c.h5 d.h5    arms recorded on the robot

By hand, --schedule prints the order; then
  onboard run POLICY --residual r.yaml --arm keep|drop --note PROTOCOL         records one episode
  onboard run POLICY --residual r.yaml --arm blocks --block-s 10               many without a reset"""

ENDED = "the operator ended the experiment"
EXIT_INTERRUPTED = 130
WIDTH = 110
"""Of a table that goes into a file."""


@dataclass(frozen=True)
class Args:
    """Compare a policy with and without its residual, and say whether to keep it."""

    policy: Policy
    """Folder, ONNX file, or shipped name."""
    residual: str
    """Residual file."""
    residual_set: Repeated = ()
    """key=value of the residual, for example mode=add or through=gains."""
    protocol: Repeated = ()
    """slow, fast, turn, motion, or a script; several times for several. Default: all that fit the policy."""
    blocks: int = 5
    """Blocks of four episodes (ABBA) for each protocol: 5 are 10 episodes an arm."""
    seconds: float = 10.0
    """Length of an episode; a shorter motion ends it earlier."""
    seed: int = 0
    """Of the schedule and the disturbed starts."""
    gain: float = 1.0
    """Factor on every joint's torque."""
    latency_ms: float = 0.0
    """Commands take effect so much later."""
    friction_nm: float = 0.0
    """Dry friction in every joint."""
    sim_set: Repeated = ()
    """key=value of the simulator's configuration."""
    logs: Annotated[tuple[str, ...], tyro.conf.arg(name="from", metavar="FILE")] = ()
    """Judge the arms in these rollouts and fly nothing."""
    live: bool = False
    """Fly on the robot over DDS instead of the simulator, one run an episode, with a prompt before each."""
    interface: str = "lo"
    """With --live: network interface of the robot."""
    domain: int = 0
    """With --live: DDS domain id; 0 on the robot."""
    release: bool = False
    """With --live: release the robot's built-in controller after a press of START. Gantry or seated only."""
    gantry: bool = False
    """With --live: the robot hangs."""
    schedule: bool = False
    """Print the order of the episodes and fly nothing."""
    robot: str = "g1_29dof"
    """Robot description."""
    preset: str = ""
    """Preset for a policy that does not say enough itself."""
    set: Repeated = ()
    """key=value of the contract, dotted keys."""
    safety: Repeated = ()
    """key=value of the safety table."""
    waive: Repeated = ()
    """With --live: a failed check of onboard check that shall not refuse the runs."""
    out: str = ""
    """Folder for the report (HTML, PNGs) and the schedule; ab_POLICY without a word."""
    json: str = ""
    """Write the result to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when the experiment was carried out, whatever its verdict."""
    args = parse(Args, "ab", EPILOG, argv)
    _check(args)
    plans = {arm: make_plan(_config(args, arm)) for arm in ("keep", "drop")}
    plan = plans["keep"]
    subject = make_subject(plan.bundle, plan.robot)
    out = _folder(args)
    orders = _register(args, plan, out)
    if args.schedule:
        return 0
    if args.logs:
        flown = recorded_episodes(map(Path, args.logs), subject, plan)
    elif args.live:
        flown = _fly_live(args, plans, orders)
    else:
        flown = _fly_all(args, plans, orders)
    results = judge_protocols([each.score for each in flown], subject.primary, args.seed)
    notes = [*plan.notes, *_remarks(flown)]
    ended = any(each.score.aborted == ENDED for each in flown)
    result = experiment_json(results) | {"ok": not ended, **_facts(args, plan), "residual_used": _used(flown)}
    report = write_report(results, _facts(args, plan) | {"schedule": orders}, notes, out)
    _show(results, notes)
    say(f"report: {report}")
    if args.json:
        write_json(args.json, result | {"report": str(report)})
    return EXIT_INTERRUPTED if ended else 0


def _check(args: Args) -> None:
    """Options that contradict each other.

    Raises:
        ConfigError: they do.
    """
    if args.blocks < 1 or args.seconds < 2:
        raise ConfigError(f"--blocks {args.blocks} --seconds {args.seconds:g}: give at least 1 and 2")
    if args.logs and (args.live or args.schedule):
        raise ConfigError("--from judges recorded rollouts; leave --live and --schedule out")
    if not args.live:
        return
    if gap := (*gap_overrides(args.gain, args.latency_ms, args.friction_nm), *args.sim_set):
        raise ConfigError(f"--live flies on a robot, whose {gap[0]} can't be set; leave it out")
    if not args.schedule and (before := sorted((_folder(args) / "rollouts").glob("*.h5"))):
        raise ConfigError(
            f"{_folder(args)} holds the {len(before)} rollouts of another experiment; name a new --out, "
            "or judge those with --from"
        )


def _config(args: Args, arm: str) -> Any:  # noqa: ANN401 - a RunConfig
    return run_config(
        policy=args.policy,
        robot=args.robot,
        preset=args.preset,
        policy_overrides=args.set,
        safety_overrides=args.safety,
        waive=args.waive,
        residual=args.residual,
        residual_overrides=args.residual_set,
        arm=arm,
        gantry=args.gantry or not args.live,
        provider="leg_odometry" if args.live else "simulator_truth",
        interface=args.interface,
        domain=args.domain,
        release=args.release,
        out=str(_folder(args) / "rollouts"),
    )


def _folder(args: Args) -> Path:
    return Path(args.out or f"ab_{Path(args.policy).stem}")


def _register(args: Args, plan: Plan, out: Path) -> dict[str, list[Slot]]:
    """Draw every protocol's schedule and write it down before anything flies."""
    protocols = choose_protocols(args.protocol, plan, args.seconds)
    orders = {name: make_schedule(args.blocks, args.seed + k) for k, name in enumerate(protocols)}
    if not args.logs:
        out.mkdir(parents=True, exist_ok=True)
        rows = {name: [slot._asdict() for slot in order] for name, order in orders.items()}
        text = json.dumps(_facts(args, plan) | {"schedule": rows}, indent=1)
        (out / "schedule.json").write_text(text + "\n", encoding="utf-8")
    if args.schedule:
        for name, order in orders.items():
            for slot in order:
                say(f"{name:>8} {slot.number:>3}  block {slot.block}  {slot.arm}")
        say(f"written to {out / 'schedule.json'}")
    return orders


def _fly_all(args: Args, plans: dict[str, Plan], orders: dict[str, list[Slot]]) -> list[Flown]:
    """Every episode of every schedule, in its order; an interrupt ends the experiment, not what was flown."""
    plan = plans["keep"]
    subject = make_subject(plan.bundle, plan.robot)
    scripts = choose_protocols(args.protocol, plan, args.seconds)
    sim = (*gap_overrides(args.gain, args.latency_ms, args.friction_nm), *args.sim_set)
    flown: list[Flown] = []
    with Progress(console=Terminal(file=sys.stderr), transient=True) as progress:
        try:
            for name, order in orders.items():
                task = progress.add_task(name, total=len(order))
                for slot in order:
                    falls = {arm: _falls(flown, name, arm) for arm in plans}
                    text = f"{name}: episode {slot.number + 1}/{len(order)} {slot.arm}, falls {falls}"
                    progress.update(task, completed=slot.number, description=text)
                    flown.append(fly(plans[slot.arm], name, scripts[name], slot, sim, subject, _unheard))
        except KeyboardInterrupt:
            return _end(flown, orders)
    return flown


def _fly_live(args: Args, plans: dict[str, Plan], orders: dict[str, list[Slot]]) -> list[Flown]:
    """The same on the robot; the end of the operator's input ends the experiment, not what was flown."""
    from onboard.cli.ab_live import fly_live  # DDS is not wanted elsewhere

    plan = plans["keep"]
    subject = make_subject(plan.bundle, plan.robot)
    scripts = choose_protocols(args.protocol, plan, args.seconds)
    flown: list[Flown] = []
    try:
        for name, order in orders.items():
            for slot in order:
                episode = fly_live(plans[slot.arm], name, scripts[name], slot, len(order), subject, ask)
                flown.append(episode)
    except (KeyboardInterrupt, EOFError):
        return _end(flown, orders)
    return flown


def _end(flown: list[Flown], orders: dict[str, list[Slot]]) -> list[Flown]:
    """What was flown, and everything that was not as aborted."""
    say("\ninterrupted: judging what was flown; this episode and the rest count as aborted")
    schedule = [(name, slot) for name, order in orders.items() for slot in order]
    left = [
        Score(name, slot.block, slot.arm, slot.seed, {}, aborted=ENDED)
        for name, slot in schedule[len(flown) :]
    ]
    return [*flown, *map(Flown, left)]


def _unheard(_done_s: float) -> None:
    """An episode's own progress: the experiment shows episodes."""


def _falls(flown: list[Flown], protocol: str, arm: str) -> int:
    return sum(each.score.fell for each in flown if (each.score.protocol, each.score.arm) == (protocol, arm))


def _facts(args: Args, plan: Plan) -> dict[str, Any]:
    residual = plan.residual
    return {
        "policy": plan.bundle.name,
        "residual": args.residual,
        "residual_set": list(args.residual_set),
        "mode": residual.config.mode if residual else None,
        "joints": list(residual.config.joints) if residual else [],
        "seed": args.seed,
        "blocks": args.blocks,
        "seconds": args.seconds,
        "sim": [*gap_overrides(args.gain, args.latency_ms, args.friction_nm), *args.sim_set],
        "logs": list(args.logs),
    }


def _used(flown: list[Flown]) -> dict[str, Any]:
    """What the residual did in the arm that kept it."""
    kept = [each for each in flown if each.score.arm == "keep" and each.score.metrics]
    if not kept:
        return {}
    bounded = [each.bounded_share for each in kept if each.bounded_share is not None]
    return {
        "largest_rad": max(each.largest_rad for each in kept),
        "range_share": max(each.range_share for each in kept),
        "bounded_share": sum(bounded) / len(bounded) if bounded else None,
        "cut_share": sum(each.cut_share for each in kept) / len(kept),
        "dropped": [each.dropped for each in kept if each.dropped],
    }


def _remarks(flown: list[Flown]) -> list[str]:
    """Sentences about what the residual did: its size, its bound, what the gate left of it."""
    used, remarks = _used(flown), []
    if used and used["range_share"] > RANGE_SHARE:
        remarks.append(
            f"The residual reaches {used['largest_rad']:.3f} rad, {100 * used['range_share']:.0f} % of a "
            f"joint's action range; beyond {100 * RANGE_SHARE:.0f} % the simulator is too far off: mend the "
            "model first."
        )
    if used and used["bounded_share"]:
        remarks.append(f"It was at its bound in {100 * used['bounded_share']:.1f} % of its ticks.")
    if used and used["cut_share"] > 0:
        remarks.append(f"The gate cut its joints' targets in {100 * used['cut_share']:.1f} % of the ticks.")
    if used and used["dropped"]:
        remarks.append(f"It dropped itself in {len(used['dropped'])} episodes: {used['dropped'][0]}.")
    return remarks


def _show(results: list[ProtocolResult], notes: list[str]) -> None:
    terminal = Terminal(file=sys.stderr, width=None if sys.stderr.isatty() else WIDTH)
    for result in results:
        falls = ", ".join(f"{count} in {arm}" for arm, count in result.falls.items())
        heads = (Column(HEADS[0], no_wrap=True), *HEADS[1:-1])
        title = f"{result.name}: {result.word}; falls: {falls}"
        table = Table(*heads, title=title, box=box.SIMPLE_HEAD, pad_edge=False)
        for verdict in result.verdicts:
            table.add_row(*cells(verdict)[:-1])
        terminal.print(table)
        if result.why:
            say(f"{result.name}: {result.why}")
    for note in notes:
        say(f"note: {note}")
    say(f"verdict: {overall([result.word for result in results])}")
