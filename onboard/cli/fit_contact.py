"""`onboard fit --by-contact`: a delta for each contact phase, from bench runs and walks."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.table import Table

from onboard.analysis.fit.by_contact import PhaseFit, fit_by_contact
from onboard.analysis.fit.contact_files import contact_networks, contact_residual, one_residual, plot_phases
from onboard.analysis.fit.contact_report import ContactReport, contact_headline, contact_report
from onboard.analysis.fit.fit import Wish
from onboard.analysis.fit.network import NetworkFit, fit_network
from onboard.analysis.fit.phases import gather_phases
from onboard.cli.options import say, write_json
from onboard.configs.robot import RobotConfig
from onboard.policies.residual.contract import Phase
from onboard.policies.residual.files import write_residual

if TYPE_CHECKING:  # it imports this one where it is wanted
    from onboard.cli.fit import FitArgs


def run_by_contact(args: "FitArgs", wish: Wish, robot: RobotConfig) -> bool:
    """Fit, write, show; whether the held-out error dropped."""
    data = gather_phases(wish, robot)
    for phase, each in data.items():
        fitted_s, tested_s = (sum(t.seconds for t in ts) for ts in (each.fitted, each.held_out))
        say(f"phase {phase}: {fitted_s:.1f} s to fit, {tested_s:.1f} s held out")
    fits = fit_by_contact(data, robot, latency=wish.latency, tell=say)
    networks = _networks(args, fits) if args.kind == "network" else {}
    report = contact_report(fits, robot, networks)
    files = _write(args.out, fits, report, robot, networks)
    if args.json:
        write_json(args.json, {**msgspec.to_builtins(report), "files": files})
    for warning in report.warnings:
        say(f"warning: {warning}")
    if args.json != "-":
        _show(report, files)
    judged = report.overall["network" if networks else "by_contact"]
    return judged["heldout_after_deg"] < judged["heldout_before_deg"]


def _networks(args: "FitArgs", fits: tuple[PhaseFit, ...]) -> dict[Phase, NetworkFit]:
    found: dict[Phase, NetworkFit] = {}
    for each in fits:

        def progress(iteration: int, rms_deg: float, phase: Phase = each.phase) -> None:
            say(f"network, {phase}: iteration {iteration}, {rms_deg:.3f} deg RMS")

        found[each.phase] = fit_network(
            each.fit, each.own, hidden=args.hidden, frames=args.frames, seed=args.seed, progress=progress
        )
    return found


def _write(
    out: Path,
    fits: tuple[PhaseFit, ...],
    report: ContactReport,
    robot: RobotConfig,
    networks: dict[Phase, NetworkFit],
) -> dict[str, str]:
    """The residual, the one without phases, and the picture; their paths by what they are."""
    one = out.with_name(f"{out.stem}_one.yaml")
    if networks:
        residual = contact_networks(fits, networks, report, robot, out)
    else:
        residual = contact_residual(fits, report, robot, out.stem)
    return {
        "plot": str(plot_phases(report, out.with_name(f"{out.stem}_by_contact.png"))),
        "one delta": str(write_residual(one_residual(fits, report, robot, one.stem), one)),
        "residual": str(write_residual(residual, out)),
    }


def _show(report: ContactReport, files: dict[str, str]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("phase", "joint", "a", "b", "a, one", "b, one", "none (deg)", "one", "by contact"):
        table.add_column(name, justify="left" if name in {"phase", "joint"} else "right")
    one, own = report.explanations["one"], report.explanations["by_contact"]
    for phase, figures in own.items():
        for joint, values in figures.coefficients.items():
            shared, errors = one[phase].coefficients[joint], figures.joints[joint]
            table.add_row(
                phase,
                joint,
                *(f"{each[knob]:.3f}" for each in (values, shared) for knob in ("a", "b")),
                f"{errors.heldout_before_deg:.2f}",
                f"{one[phase].joints[joint].heldout_after_deg:.2f}",
                f"{errors.heldout_after_deg:.2f}",
            )
    table.caption, table.caption_justify = "errors: held out, RMS", "left"
    Console(highlight=False).print(table)
    sys.stdout.writelines(f"{file}\n" for file in files.values())
    for which, overall in report.overall.items():
        latency_s = next(iter(report.explanations[which].values())).latency_s
        sys.stdout.write(contact_headline(which.replace("_", " "), overall, latency_s) + "\n")
