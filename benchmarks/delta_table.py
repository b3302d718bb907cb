"""Which delta describes sticky ankles best: `python -m benchmarks.delta_table` (about two minutes).

The simulated robot hangs; its ankles have dry friction and play, its commands are late. The left ankle is
fitted to sines and a chirp, and every explanation is judged on several sines at once.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from onboard.analysis.fit.fit import Wish, fit, gather
from onboard.analysis.fit.network import fit_network
from onboard.analysis.fit.report import KindReport, network_figures, report
from onboard.analysis.fit.stepwise import step_by_step
from onboard.cli.bench import Args as BenchArgs
from onboard.cli.bench import bench_config, bench_script
from onboard.cli.options import parse, say, write_json
from onboard.cli.recorded_trial import RecordedTrial
from onboard.configs.bench import BenchProtocol, Excite, Segment, load_bench
from onboard.configs.robot import load_robot
from onboard.runtime.assembly import make_plan

JOINTS = ("left_ankle_pitch_joint", "left_ankle_roll_joint")
GAP = (
    'gap.friction_nm={"*_ankle_*": 1.0}',
    'gap.backlash_rad={"*_ankle_*": 0.03}',
    'gap.command_latency_s={"*": 0.02}',
)
HIDDEN = (12, 24)


@dataclass(frozen=True)
class Args:
    """Linear, physical and network delta of ankles with latency, friction and play, on held-out data."""

    json: str = ""
    """Write the figures as JSON there; `-` is standard output."""


def main(argv: list[str]) -> int:
    """Record, fit, compare; 0 when every explanation lowers the held-out error."""
    args = parse(Args, "delta-table", Args.__doc__ or "", argv)
    with tempfile.TemporaryDirectory() as folder:
        logs = [record(protocol, Path(folder)) for protocol in protocols()]
        figures = compare(logs)
    if args.json:
        write_json(args.json, {name: msgspec.to_builtins(each) for name, each in figures.items()})
    if args.json != "-":
        show(figures)
    return 0 if all(each.heldout_after_deg < each.heldout_before_deg for each in figures.values()) else 1


def protocols() -> tuple[BenchProtocol, BenchProtocol]:
    """The shipped ankle protocol, and one with other signals on the same joints."""
    fitted = load_bench("ankles")
    several = Segment(
        signal="multisine",
        for_s=6.0,
        hz_list=(0.4, 1.1, 1.9, 2.7),
        joints={"*_ankle_pitch_joint": Excite(0.3), "*_ankle_roll_joint": Excite(0.14)},
    )
    return fitted, msgspec.structs.replace(fitted, name="ankles_heldout", segments=(several,))


def record(protocol: BenchProtocol, out: Path) -> Path:
    """Play one protocol on the simulated robot; the rollout."""
    say(f"bench {protocol.name}")
    plan = make_plan(bench_config(BenchArgs(protocol.name, out=str(out)), protocol))
    trial = RecordedTrial(plan, bench_script(protocol), GAP, out, hanging=True)
    result: dict[str, Any] = trial.run(lambda seconds: None)
    return Path(result["rollout"])


def compare(logs: list[Path]) -> dict[str, KindReport]:
    """Every explanation of the first log, judged on the second."""
    robot = load_robot("g1_29dof")
    wish = Wish(tuple(logs[:1]), tuple(logs[1:]), joints=JOINTS)
    data = gather(wish, robot)
    found = fit(data, wish, robot, say)
    figures = dict(report(found, robot).explanations)
    single = step_by_step(found)
    figures["linear, step by step"] = msgspec.structs.replace(
        figures["linear"],
        after_deg=single.fitted.after_deg,
        heldout_after_deg=single.held_out.after_deg,
        latency_s=0.0,
        fit_s=single.solution.seconds,
    )
    for hidden in HIDDEN:
        say(f"network with {hidden} hidden units")
        network = fit_network(found, found.explained[0], hidden=hidden)
        figures[f"network, {hidden} hidden units"] = network_figures(found, network, robot)
    return figures


def show(figures: dict[str, KindReport]) -> None:
    """One line an explanation."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (
        "explanation",
        "fitted (deg RMS)",
        "held out (deg RMS)",
        "after/before",
        "latency (ms)",
        "s",
    ):
        table.add_column(name, justify="left" if name == "explanation" else "right")
    for name, each in figures.items():
        table.add_row(
            name,
            f"{each.before_deg:.2f} -> {each.after_deg:.2f}",
            f"{each.heldout_before_deg:.2f} -> {each.heldout_after_deg:.2f}",
            f"{each.heldout_after_deg / each.heldout_before_deg:.2f}",
            f"{each.latency_s * 1e3:.1f}",
            f"{each.fit_s:.1f}",
        )
    Console(highlight=False).print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
