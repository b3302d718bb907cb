"""One picture of a replay in the simulator: how the two runs part."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from onboard.analysis.picture import save_picture
from onboard.analysis.replay_sim import DRIFTED_RAD, Drift

_COLOURS = {"open loop": "#e07a2f", "closed loop": "#2f6fab"}


def plot_drift(drifts: Mapping[str, Drift], joints: tuple[str, ...], title: str, out: Path) -> Path:
    """Joint error and tilt over time, and a heat map of every joint for each replay.

    Raises:
        RolloutError: the picture can't be written.
    """
    figure = Figure(figsize=(14, 4 + 4 * len(drifts)), dpi=100, layout="constrained")
    rows = figure.subplots(1 + len(drifts), 2, width_ratios=(40, 1), squeeze=False)
    lines = rows[0, 0]
    for name, drift in drifts.items():
        colour = _COLOURS.get(name, "#222222")
        lines.plot(drift.time_s, drift.rms_rad, color=colour, label=f"{name}: joints, RMS")
        lines.plot(drift.time_s, drift.tilt_rad, ":", color=colour, label=f"{name}: tilt")
        if drift.fallen_s is not None:
            lines.axvline(drift.fallen_s, color=colour, lw=0.8, ls="--")
    lines.axhline(DRIFTED_RAD, color="#999999", lw=0.8)
    lines.set_ylabel("simulated less logged (rad)")
    lines.legend(fontsize=8, frameon=False)
    lines.margins(x=0)
    rows[0, 1].axis("off")
    for (axes, bar), (name, drift) in zip(rows[1:], drifts.items(), strict=True):
        limit = max(float(np.abs(drift.joint_rad).max()), 1e-6)
        extent = (0.0, float(drift.time_s[-1]), len(joints) - 0.5, -0.5)
        image = axes.imshow(
            drift.joint_rad.T, aspect="auto", extent=extent, cmap="RdBu_r", vmin=-limit, vmax=limit
        )
        axes.set_yticks(range(len(joints)), [joint.removesuffix("_joint") for joint in joints], fontsize=6)
        axes.set_title(f"{name}: joint error (rad)", loc="left", fontsize=9)
        axes.set_xlabel("time from the common start (s)")
        figure.colorbar(image, cax=bar)
    figure.suptitle(title, x=0.01, ha="left")
    return save_picture(figure, out)
