"""What a fit by contact phase leaves: residual files, networks, a picture."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

import onboard
from onboard.analysis.fit.by_contact import PhaseFit
from onboard.analysis.fit.contact_report import ContactReport, Networks, Which
from onboard.analysis.fit.network_file import BOUND, joint_names, write_part
from onboard.analysis.picture import save_picture
from onboard.configs.robot import RobotConfig
from onboard.policies.residual.contract import INVERT_A_MIN, Coefficients, Part, Phase, Provenance, Residual
from onboard.policies.residual.network import CONTRACTION

_COLOURS = {"none": "#b5b5b5", "one": "#e07a2f", "by_contact": "#2f6fab", "network": "#4f9a5f"}


def one_residual(fits: Sequence[PhaseFit], report: ContactReport, robot: RobotConfig, name: str) -> Residual:
    """The delta that all phases share, as a linear residual."""
    coefficients = _coefficients(report, "one", fits[0].phase)
    return Residual(
        schema=1,
        name=name,
        kind="linear",
        mode=_mode([coefficients]),
        unit="rad",
        joints=joint_names(fits[0].fit, robot),
        coefficients=coefficients,
        provenance=_provenance(fits, report, "one"),
    )


def contact_residual(
    fits: Sequence[PhaseFit], report: ContactReport, robot: RobotConfig, name: str
) -> Residual:
    """Each phase's own linear delta as a residual that is chosen by contact.

    Its mode is `invert`, unless a coefficient can't be inverted: then `add`, for simulators.
    """
    parts = {each.phase: _coefficients(report, "by_contact", each.phase) for each in fits}
    return Residual(
        schema=1,
        name=name,
        kind="by_contact",
        mode=_mode(parts.values()),
        unit="rad",
        joints=joint_names(fits[0].fit, robot),
        phases={phase: Part(coefficients=coefficients) for phase, coefficients in parts.items()},
        provenance=_provenance(fits, report, "by_contact"),
    )


def contact_networks(
    fits: Sequence[PhaseFit], networks: Networks, report: ContactReport, robot: RobotConfig, path: Path
) -> Residual:
    """Write each phase's network beside `path`; the residual that chooses among them.

    Raises:
        PolicyError: a file can't be written.
    """
    parts: dict[Phase, Part] = {}
    for each in fits:
        file = path.with_name(f"{path.stem}_{each.phase}.onnx")
        parts[each.phase] = Part(network=write_part(each.fit, networks[each.phase], robot, file))
    contracts = all(networks[each.phase].steepest(each.fit) < CONTRACTION for each in fits)
    return Residual(
        schema=1,
        name=path.stem,
        kind="by_contact",
        mode="invert" if contracts else "add",
        unit="rad",
        joints=joint_names(fits[0].fit, robot),
        phases=parts,
        bound_rad=BOUND * max(networks[each.phase].largest_rad(each.fit) for each in fits),
        provenance=_provenance(fits, report, "network"),
    )


def plot_phases(report: ContactReport, out: Path) -> Path:
    """Draw the held-out errors of every phase, joint and explanation into a PNG.

    Raises:
        RolloutError: the picture can't be written.
    """
    figure = Figure(figsize=(14, 3.2 * len(report.rows)), dpi=100, layout="constrained")
    grid = figure.subplots(len(report.rows), 1, squeeze=False)[:, 0]
    for axes, phase in zip(grid, report.rows, strict=True):
        joints = report.explanations["one"][phase].joints
        bars = {"none": [each.heldout_before_deg for each in joints.values()]}
        bars |= {
            which: [each.heldout_after_deg for each in phases[phase].joints.values()]
            for which, phases in report.explanations.items()
        }
        width = 0.8 / len(bars)
        for place, (which, values) in enumerate(bars.items()):
            x = np.arange(len(values)) + (place - (len(bars) - 1) / 2) * width
            axes.bar(x, values, width, color=_COLOURS[which], label=which.replace("_", " "))
        axes.set_xticks(range(len(joints)), [name.removesuffix("_joint") for name in joints], fontsize=8)
        axes.set_ylabel("held out (deg RMS)", fontsize=8)
        axes.set_title(phase, loc="left", fontsize=9)
    grid[0].legend(loc="upper right", fontsize=8, ncols=4, frameon=False)
    return save_picture(figure, out)


def _coefficients(report: ContactReport, which: Which, phase: Phase) -> dict[str, Coefficients]:
    found = report.explanations[which][phase].coefficients
    return {joint: Coefficients(**values) for joint, values in found.items()}


def _mode(parts: Iterable[Mapping[str, Coefficients]]) -> Literal["add", "invert"]:
    invertible = all(c.a > INVERT_A_MIN for part in parts for c in part.values())
    return "invert" if invertible else "add"


def _provenance(fits: Sequence[PhaseFit], report: ContactReport, which: Which) -> Provenance:
    errors, phases = report.overall[which], report.explanations[which]
    notes = [
        f"{phase}: held out {each.heldout_before_deg:.3f} -> {each.heldout_after_deg:.3f} deg RMS"
        for phase, each in phases.items()
    ]
    return Provenance(
        made_by=f"onboard fit {onboard.__version__}",
        logs=report.logs,
        heldout_logs=report.heldout_logs,
        simulator="; ".join(f"{phase}: {text}" for phase, text in report.simulators.items()),
        latency_s=phases[fits[0].phase].latency_s,
        before_deg=errors["before_deg"],
        after_deg=errors["after_deg"],
        heldout_before_deg=errors["heldout_before_deg"],
        heldout_after_deg=errors["heldout_after_deg"],
        notes=tuple(notes),
    )
