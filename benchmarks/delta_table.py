"""Which delta describes sticky ankles best: `make delta-table`.

The simulated robot's ankles have dry friction and play, its commands are late. Hanging, its left ankle is
fitted to sines and a chirp, and every explanation is judged on several sines at once. Then it walks too:
deltas of both ankles, from the bench alone or from bench and walk together, are judged by contact phase on
signals and a walk that none of them was fitted to.
"""

import dataclasses
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from onboard.analysis.fit.by_contact import PhaseFit, fit_by_contact
from onboard.analysis.fit.fit import Fit, Wish, fit, gather
from onboard.analysis.fit.knobs import Parameters, Settings, nominal_settings
from onboard.analysis.fit.network import NetworkFit, fit_network
from onboard.analysis.fit.phases import gather_phases
from onboard.analysis.fit.report import KindReport, network_figures, report
from onboard.analysis.fit.solve import compare as errors_of
from onboard.analysis.fit.stepwise import step_by_step
from onboard.cli.bench import Args as BenchArgs
from onboard.cli.bench import bench_config, bench_script, with_gains_of
from onboard.cli.options import parse, say, write_json
from onboard.cli.recorded_trial import RecordedTrial
from onboard.cli.run_options import run_config
from onboard.configs.bench import BenchProtocol, Excite, Segment, load_bench
from onboard.configs.robot import load_robot
from onboard.configs.script import ScriptConfig, Step
from onboard.runtime.assembly import make_plan

JOINTS = ("left_ankle_pitch_joint", "left_ankle_roll_joint")
GAP = (
    'gap.friction_nm={"*_ankle_*": 1.0}',
    'gap.backlash_rad={"*_ankle_*": 0.03}',
    'gap.command_latency_s={"*": 0.02}',
)
HIDDEN = (12, 24)
WALKER = "holosoma_loco_ppo"
ANKLES = tuple(f"{side}_ankle_{axis}_joint" for side in ("left", "right") for axis in ("pitch", "roll"))
BENCH_HIDDEN = 8
"""Of the network of both ankles: it costs a simulation for each weight, and four joints have many."""
STAND = (0.0, 0.0, 0.0)
WALKS = (
    ((0.3, 0.0, 0.0), (0.5, 0.0, 0.3), (0.0, 0.2, 0.0), (0.4, 0.0, -0.4)),
    ((0.4, 0.0, 0.0), (0.0, -0.2, 0.0), (0.2, 0.0, 0.5)),
)
"""Velocities (m/s, m/s, rad/s), 5 s each, of the walk to fit and of the one to hold out."""


@dataclass(frozen=True)
class Args:
    """Linear, physical and network delta of ankles with latency, friction and play, on held-out data."""

    part: Literal["all", "bench", "walk"] = "all"
    """The left ankle on the bench, both ankles on bench and walk by contact phase, or both tables."""
    json: str = ""
    """Write the figures as JSON there; `-` is standard output."""


def main(argv: list[str]) -> int:
    """Record, fit, compare; 0 when every explanation lowers the held-out error."""
    args = parse(Args, "delta-table", Args.__doc__ or "", argv)
    with tempfile.TemporaryDirectory() as folder:
        figures = {} if args.part == "walk" else on_the_bench(Path(folder))
        phases = {} if args.part == "bench" else by_phase(Path(folder))
    if args.json:
        plain = {name: msgspec.to_builtins(each) for name, each in figures.items()}
        write_json(args.json, {"bench": plain, "by_phase": phases})
    if args.json != "-":
        if figures:
            show(figures)
        if phases:
            show_phases(phases)
    improved = all(each.heldout_after_deg < each.heldout_before_deg for each in figures.values())
    return 0 if improved and not _worse_by_contact(phases) else 1


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


def on_the_bench(out: Path) -> dict[str, KindReport]:
    """Every explanation of the left ankle."""
    return compare([record(protocol, out) for protocol in protocols()])


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


def by_phase(out: Path) -> dict[str, dict[str, float]]:
    """Delta to phase to held-out error, deg RMS; bench and walk with the walker's gains."""
    robot = load_robot("g1_29dof")
    benches = [record(with_gains_of(each, WALKER, "", robot), out / "walker") for each in protocols()]
    walks = [walk(velocities, out, seed) for seed, velocities in enumerate(WALKS, 1)]
    wish = Wish((benches[0], walks[0]), (benches[1], walks[1]), joints=ANKLES)
    data = gather_phases(wish, robot)
    fits = fit_by_contact(data, robot, tell=say)
    bench = fit(data["flight"], Wish((), kinds=("linear",)), robot, say)
    say(f"network with {BENCH_HIDDEN} hidden units")
    network = fit_network(bench, bench.explained[0], hidden=BENCH_HIDDEN)
    held_out: dict[str, dict[str, float]] = {
        "none": {each.phase: each.own.held_out.before_deg for each in fits}
    }
    held_out["linear, bench alone"] = {each.phase: _linear_on(each, bench) for each in fits}
    held_out[f"network, bench alone, {BENCH_HIDDEN} hidden units"] = {
        each.phase: _network_on(each, network) for each in fits
    }
    held_out["linear, one for all phases"] = {each.phase: each.one.held_out.after_deg for each in fits}
    held_out["linear, by contact"] = {each.phase: each.own.held_out.after_deg for each in fits}
    return held_out


def _worse_by_contact(held_out: dict[str, dict[str, float]]) -> list[str]:
    """Phases in which the delta of its own describes the held-out data worse than none."""
    if not held_out:
        return []
    none, own = held_out["none"], held_out["linear, by contact"]
    return [phase for phase, error in own.items() if error >= none[phase]]


def walk(velocities: tuple[tuple[float, float, float], ...], out: Path, seed: int) -> Path:
    """Let the walker walk on the simulated robot; the rollout."""
    say(f"walk {seed}")
    steps = (
        Step(press="start", until="ramp"),
        Step(until="hold"),
        Step(press="go", velocity=STAND, until="policy", for_s=3.0),
        *(Step(velocity=velocity, for_s=5.0) for velocity in (*velocities, STAND)),
    )
    plan = make_plan(run_config(policy=WALKER, gantry=True))
    trial = RecordedTrial(plan, ScriptConfig(steps), GAP, out / f"walk_{seed}", seed=seed)
    return Path(trial.run(lambda seconds: None)["rollout"])


def _linear_on(each: PhaseFit, bench: Fit) -> float:
    """Held-out error of a phase with the linear delta of the bench alone."""
    phase, found = each.fit, bench.explained[0].solution
    parameters = Parameters(("a", "b"), phase.columns, len(phase.model.slots))
    settings = parameters.settings(found.scaled[:, None])
    return errors_of(phase.model, phase.data.held_out, phase.columns, settings).after_deg


def _network_on(each: PhaseFit, network: NetworkFit) -> float:
    """The same with a network: its hidden layer sees the same joints, wherever they stand in the model."""
    phase = each.fit
    features = dataclasses.replace(network.features, columns=phase.columns)
    nominal = nominal_settings(1, len(phase.model.slots))
    settings = Settings(nominal.joints, np.array([network.latency_s]), network.output[None])
    return errors_of(phase.model, phase.data.held_out, phase.columns, settings, features).after_deg


def show_phases(held_out: dict[str, dict[str, float]]) -> None:
    """One line a delta."""
    table = Table(box=None, pad_edge=False, header_style="bold", title="held out, deg RMS, both ankles")
    table.add_column("delta")
    for phase in held_out["none"]:
        table.add_column(phase, justify="right")
    for name, errors in held_out.items():
        table.add_row(name, *(f"{value:.3f}" for value in errors.values()))
    Console(highlight=False).print(table)


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
