"""One picture of a fit: every joint as the robot, the nominal and the fitted simulator moved it."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onboard.analysis.fit.fit import Explained, Fit
from onboard.analysis.fit.solve import Comparison, joint_rms_deg
from onboard.analysis.fit.trajectory import Trajectory
from onboard.analysis.picture import save_picture
from onboard.configs.robot import RobotConfig

SHOWN_S = 6.0
_ROBOT, _BEFORE, _AFTER, _TARGET = "#222222", "#e07a2f", "#2f6fab", "#b5b5b5"


def plot_fit(fit: Fit, explained: Explained, robot: RobotConfig, out: Path) -> Path:
    """Draw one explanation into a PNG: first stretch of the fitted and of the held-out data.

    Raises:
        RolloutError: the picture can't be written.
    """
    figure = Figure(figsize=(15, 2.0 + 2.1 * len(fit.columns)), dpi=100, layout="constrained")
    axes = figure.subplots(len(fit.columns), 3, width_ratios=(3, 3, 1), squeeze=False)
    sides = (
        (fit.data.fitted[0], explained.fitted, "fitted"),
        (fit.data.held_out[0], explained.held_out, "held out"),
    )
    for row, slot in enumerate(fit.data.slots.tolist()):
        for column, (trajectory, comparison, side) in enumerate(sides):
            _joint(axes[row, column], trajectory, comparison, row, slot)
            if row == 0:
                axes[row, column].set_title(f"{side}: {trajectory.name}", loc="left", fontsize=9)
        axes[row, 0].set_ylabel(f"{robot.joint_names[slot].removesuffix('_joint')} (deg)", fontsize=8)
        _bars(axes[row, 2], explained, row)
    axes[0, 0].legend(loc="upper right", fontsize=7, ncols=4, frameon=False)
    axes[0, 2].set_title("RMS error (deg)", loc="left", fontsize=9)
    for column in range(2):
        axes[-1, column].set_xlabel("time (s)")
    figure.suptitle(
        f"{explained.kind}, RMS: {explained.fitted.before_deg:.2f} to {explained.fitted.after_deg:.2f} deg "
        "fitted, "
        f"{explained.held_out.before_deg:.2f} to {explained.held_out.after_deg:.2f} deg held out",
        x=0.01,
        ha="left",
    )
    return save_picture(figure, out)


def _joint(axes: Axes, trajectory: Trajectory, comparison: Comparison, joint: int, slot: int) -> None:
    t_s = trajectory.t_s[trajectory.first :] - trajectory.t_s[trajectory.first]
    shown = t_s[1:] <= SHOWN_S
    measured = trajectory.q[trajectory.first + 1 :, slot]
    target = trajectory.target[trajectory.first : -1, slot]
    curves = (
        ("target", target, _TARGET, "-"),
        ("robot", measured, _ROBOT, "-"),
        ("simulator", measured + comparison.before[0, : len(measured), joint], _BEFORE, "-"),
        ("with the fit", measured + comparison.after[0, : len(measured), joint], _AFTER, "--"),
    )
    for label, values, colour, style in curves:
        axes.plot(t_s[1:][shown], np.degrees(values[shown]), style, color=colour, lw=1.1, label=label)
    axes.grid(color="#eeeeee")
    axes.margins(x=0)


def _bars(axes: Axes, explained: Explained, joint: int) -> None:
    sides = (explained.fitted, explained.held_out)
    values = [joint_rms_deg(errors)[joint] for side in sides for errors in (side.before, side.after)]
    axes.bar(range(4), values, color=(_BEFORE, _AFTER) * 2)
    axes.set_xticks((0.5, 2.5), ("fitted", "held out"), fontsize=8)
    for place, value in enumerate(values):
        axes.text(place, value, f"{value:.2f}", ha="center", va="bottom", fontsize=7)
    axes.margins(y=0.2)
