"""`onboard log diagnose`: where simulator and robot part, in numbers and one picture."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from onboard.cli.options import parse, write_json
from onboard.configs.errors import OnboardError
from onboard.logging.rollout import Rollout

WORST = 6


@dataclass(frozen=True)
class DiagnoseArgs:
    """Where simulator and robot part: by joint, time and contact phase; actions, spectra, timing.

    The nominal simulator starts at recorded states and gets the sent targets, for one control period and
    for the whole stretch. What the log does not know counts as it stands in the simulator: the height is
    that of feet on the floor, and an unknown base velocity is zero.

    Example: onboard log diagnose rollouts/20260808T120000Z_g1_29dof_walk_none.h5 --seconds 20
    """

    file: tyro.conf.Positional[Path]
    """Rollout (.h5) or journal."""
    start_s: float = 0.0
    """Start of the stretch, from the policy's first row."""
    seconds: float = 10.0
    """Its length, at most."""
    held: bool | None = None
    """The robot hung in a gantry; found out from the contact estimate by default."""
    out: Path | None = None
    """PNG to write; beside the rollout by default."""
    json: str = ""
    """Write all figures as JSON there; `-` is standard output."""


def run(argv: list[str]) -> int:
    """Run the verb."""
    args = parse(DiagnoseArgs, "log diagnose", DiagnoseArgs.__doc__ or "", argv)
    try:
        from onboard.analysis.diagnose import diagnose, hangs
        from onboard.analysis.diagnose_plot import plot_diagnosis
    except ModuleNotFoundError as error:
        raise OnboardError(
            f"diagnosing needs {error.name}; install it with: pip install 'onboard[sim,analysis]'"
        ) from error
    with Rollout(args.file) as rollout:
        held = hangs(rollout) if args.held is None else args.held
        diagnosis = diagnose(rollout, args.start_s, args.seconds, held=held)
    figures = {"file": str(args.file), "held": held, **diagnosis.figures()}
    title = f"{args.file.name}: {figures['seconds']:.1f} s from {args.start_s:g} s on"
    out = args.out or args.file.with_name(f"{args.file.stem}_diagnosis.png")
    figures["plot"] = str(plot_diagnosis(diagnosis, title, out))
    if args.json:
        write_json(args.json, figures)
    if args.json != "-":
        Console(highlight=False).print(_table(figures))
        above = ", ".join(f"{name} {share:.1%}" for name, share in figures["power_above_5_hz"].items())
        sys.stdout.write(f"power above 5 Hz: {above}\n")
        sys.stdout.write(f"control period: p50 {figures['period_ms']['p50']:.2f} ms, ")
        sys.stdout.write(f"p99 {figures['period_ms']['p99']:.2f} ms\n{figures['plot']}\n")
    return 0


def _table(figures: dict[str, Any]) -> Table:
    """Errors of the joints that are predicted worst, one step ahead."""
    phases = figures["one_step_rms_rad_by_phase"]
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    table.title = f"simulated less recorded, deg RMS, the {WORST} worst joints"
    for name in ("joint", "one step", *phases, "one run"):
        table.add_column(name, justify="left" if name == "joint" else "right")
    one_step = figures["one_step_rms_rad"]
    for joint in sorted(one_step, key=one_step.__getitem__, reverse=True)[:WORST]:
        values = [one_step[joint], *(each[joint] for each in phases.values())]
        values.append(figures["whole_rms_rad"][joint])
        table.add_row(joint, *(f"{np.degrees(value):.3f}" for value in values))
    return table
