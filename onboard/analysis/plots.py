"""One picture of a rollout: what was asked, what the robot did, what it cost, whether the clock held.

Left, over the whole run: modes and events, velocity, attitude, torque, timing. Right: sent target and
measured position of the twelve leg joints over a few seconds in which the robot moved most.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from onboard.analysis.picture import save_picture
from onboard.configs.errors import RolloutError
from onboard.configs.events import Event, Mode
from onboard.configs.robot import RobotConfig
from onboard.logging.rollout import Rollout

ZOOM_S = 4.0
LEG_JOINTS = 12
"""Left leg, then right leg, in SDK motor order: hip pitch, roll, yaw, knee, ankle pitch, roll."""

TORQUE_JOINTS = 4
"""Curves of the joints nearest to their limit."""

_MODE_COLOURS: dict[int, str] = {
    Mode.DAMP: "#8d99ae",
    Mode.RAMP: "#f4c95d",
    Mode.HOLD: "#7fb7be",
    Mode.POLICY: "#69b578",
    Mode.LIMP: "#d0d0d0",
}
_BLUE, _ORANGE, _GREEN, _RED, _GREY = "#2f6fab", "#e07a2f", "#3f8f57", "#c1272d", "#9a9a9a"
_STYLE = {
    "font.size": 9,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "agg.path.chunksize": 20_000,
}


@dataclass(frozen=True)
class _Run:
    """A rollout and the columns that several panels share."""

    rollout: Rollout
    robot: RobotConfig
    time_s: np.ndarray
    mode: np.ndarray


def plot_rollout(path: Path, out: Path) -> Path:
    """Draw one rollout into a PNG.

    Args:
        path: rollout or journal.
        out: the file to write.

    Raises:
        RolloutError: not a rollout, no rows to draw, or the picture can't be written.
    """
    with Rollout(path) as rollout, matplotlib.rc_context(_STYLE):
        if len(rollout) < 2:
            raise RolloutError(f"{path}: has {len(rollout)} rows, nothing to draw")
        figure = _draw(_Run(rollout, rollout.robot, rollout.column("time_s"), rollout.column("mode")))
        return save_picture(figure, out)


def _draw(run: _Run) -> Figure:
    figure = Figure(figsize=(19, 11.5), dpi=110, layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))  # type: ignore[misc] # an array
    _draw_run(left, run)
    _draw_legs(right, run)
    figure.suptitle(_title(run.rollout), x=0.01, ha="left", fontsize=12)
    return figure


def _draw_run(figure: SubFigure, run: _Run) -> None:
    rows = _event_rows(run)
    heights = (0.35 + 0.16 * len(rows), 1, 1, 1, 1.15)
    bands, velocity, attitude, torque, timing = figure.subplots(5, 1, sharex=True, height_ratios=heights)
    _bands(bands, run, rows)
    _velocity(velocity, run)
    _attitude(attitude, run)
    _torque(torque, run)
    _timing(timing, run)
    for axes in (velocity, attitude, torque, timing):
        _shade(axes, run)
        axes.margins(x=0)
    timing.set_xlim(run.time_s[0], run.time_s[-1])
    timing.set_xlabel("robot clock (s)")


def _bands(axes: Axes, run: _Run, rows: list[tuple[str, np.ndarray]]) -> None:
    """Modes as one coloured band, events and marks as rows below it."""
    for first, last, mode in _mode_spans(run):
        axes.barh(0, last - first, left=first, height=0.8, color=_MODE_COLOURS.get(mode, "white"))
        if last - first > 0.06 * (run.time_s[-1] - run.time_s[0]):
            axes.text((first + last) / 2, 0, Mode(mode).name.lower(), ha="center", va="center", fontsize=8)
    for index, (_, active) in enumerate(rows, 1):
        axes.plot(run.time_s[active], np.full(active.sum(), index), "|", color=_RED, markersize=7)
    axes.set_yticks(range(len(rows) + 1), ["mode", *(name for name, _ in rows)])
    axes.set_ylim(len(rows) + 0.6, -0.6)
    axes.grid(False)
    axes.set_title("Modes, safety events, operator's marks")


def _event_rows(run: _Run) -> list[tuple[str, np.ndarray]]:
    """Name and rows of everything that happened at single ticks."""
    masks = run.rollout.column("safety_events")
    rows = [
        (event.name.lower().replace("_", " "), (masks >> np.uint64(event) & np.uint64(1)).astype(bool))
        for event in Event
    ]
    rows.append(("skipped ticks", np.diff(run.rollout.column("skipped_ticks"), prepend=0) > 0))
    rows.append(("mark", np.diff(run.rollout.column("mark").astype(np.int64), prepend=0) > 0))
    return [(name, active) for name, active in rows if active.any()]


def _velocity(axes: Axes, run: _Run) -> None:
    command, estimate = run.rollout.column("command"), run.rollout.column("base_velocity")
    for column, name, colour in ((0, "vx", _BLUE), (1, "vy", _ORANGE)):
        axes.plot(run.time_s, command[:, column], color=colour, lw=2.2, alpha=0.5, label=f"{name} asked")
        if np.isfinite(estimate[:, column]).any():
            axes.plot(run.time_s, estimate[:, column], color=colour, lw=0.9, label=f"{name} estimated")
    axes.plot(run.time_s, command[:, 2], color=_GREEN, lw=2.2, alpha=0.5, label="wz asked")
    axes.plot(run.time_s, run.rollout.column("gyro_body")[:, 2], color=_GREEN, lw=0.7, label="wz measured")
    known = np.isfinite(estimate[:, 0]).any()
    axes.set_title(
        "Velocity in the body frame" + ("" if known else " (vx and vy were not estimated in this run)")
    )
    axes.set_ylabel("m/s, rad/s")
    _legend(axes, 6)


def _attitude(axes: Axes, run: _Run) -> None:
    w, x, y, z = run.rollout.column("quat_wxyz").astype(np.float64).T
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    axes.plot(run.time_s, np.degrees(roll), color=_BLUE, lw=1, label="roll")
    axes.plot(run.time_s, np.degrees(pitch), color=_ORANGE, lw=1, label="pitch")
    axes.set_title("Attitude of the pelvis")
    axes.set_ylabel("°")
    _legend(axes, 2)


def _torque(axes: Axes, run: _Run) -> None:
    share = np.abs(run.rollout.column("tau_est")) / run.robot.effort
    worst = np.argsort(np.percentile(share, 99.5, axis=0))[::-1][:TORQUE_JOINTS]
    for joint, colour in zip(worst, (_RED, _ORANGE, _BLUE, _GREEN), strict=False):
        name = run.robot.joint_names[joint].removesuffix("_joint").replace("_", " ")
        axes.plot(run.time_s, 100 * share[:, joint], color=colour, lw=0.8, label=name)
    axes.axhline(100, color=_GREY, lw=1, ls="--")
    axes.set_title("Torque, share of the joint's limit")
    axes.set_ylabel("%")
    axes.set_ylim(bottom=0)
    _legend(axes, TORQUE_JOINTS)


def _timing(axes: Axes, run: _Run) -> None:
    column = run.rollout.column
    curves = (
        ("tick", column("stage_ns").sum(1, dtype=np.int64) / 1e6, _BLUE),
        ("wake-up late", column("wake_late_ns") / 1e6, _ORANGE),
        ("state age", column("state_age_s") * 1e3, _GREEN),
    )
    for name, value_ms, colour in curves:
        label = f"{name}: p50 {np.percentile(value_ms, 50):.2f}, p99 {np.percentile(value_ms, 99):.2f} ms"
        axes.plot(run.time_s, value_ms, ".", color=colour, ms=2.2, alpha=0.7, label=label)
    axes.axhline(run.rollout.period_s * 1e3, color=_GREY, lw=1, ls="--")
    axes.set_yscale("log")
    axes.set_ylim(bottom=1e-2)
    axes.set_title("Timing (dashed: period)")
    axes.set_ylabel("ms")
    _legend(axes, 3)


def _draw_legs(figure: SubFigure, run: _Run) -> None:
    window = _busiest(run)
    time_s = run.time_s[window]
    q, sent = run.rollout.column("q", window)[:, :LEG_JOINTS], run.rollout.column("action_sent", window)
    cut = run.rollout.column("limit_mask", window)
    for number, axes in enumerate(figure.subplots(6, 2, sharex=True).T.flat):
        axes.plot(time_s, sent[:, number], color=_ORANGE, lw=1.6, alpha=0.8, label="sent target")
        axes.plot(time_s, q[:, number], color=_BLUE, lw=1.1, label="measured")
        limited = cut[:, number] > 0
        axes.plot(time_s[limited], sent[limited, number], ".", color=_RED, ms=4, label="cut by a limit")
        axes.set_title(run.robot.joint_names[number].removesuffix("_joint").replace("_", " "))
        axes.margins(x=0)
        if number % 6 == 5:
            axes.set_xlabel("robot clock (s)")
        if number < 6:
            axes.set_ylabel("rad")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="outside upper right", markerscale=2)


def _legend(axes: Axes, columns: int) -> None:
    """Above the panel at the right, where no curve runs."""
    axes.legend(
        ncols=columns,
        loc="lower right",
        bbox_to_anchor=(1, 1.01),
        borderaxespad=0,
        markerscale=3,
        handlelength=1.4,
    )


def _shade(axes: Axes, run: _Run) -> None:
    for first, last, mode in _mode_spans(run):
        axes.axvspan(first, last, color=_MODE_COLOURS.get(mode, "white"), alpha=0.13, lw=0)


def _busiest(run: _Run) -> slice:
    """The few seconds in which the legs moved most, in mode policy where there was any."""
    length = min(len(run.mode), max(2, round(ZOOM_S / run.rollout.period_s)))
    effort = np.abs(run.rollout.column("dq")[:, :LEG_JOINTS]).mean(1)
    effort[run.mode != Mode.POLICY] *= 0.01
    sums = np.convolve(np.nan_to_num(effort), np.ones(length), "valid")
    start = int(np.argmax(sums))
    return slice(start, start + length)


def _mode_spans(run: _Run) -> list[tuple[float, float, int]]:
    """Stretches of one mode as (begin, end, mode), seconds."""
    edges = [0, *(np.flatnonzero(np.diff(run.mode.astype(np.int64))) + 1).tolist(), len(run.mode) - 1]
    return [(run.time_s[start], run.time_s[stop], int(run.mode[start])) for start, stop in pairwise(edges)]


def _title(rollout: Rollout) -> str:
    names = ", ".join(policy.name for policy in rollout.policies) or "no policy"
    attributes = rollout.attributes
    return (
        f"{names} on {attributes['robot']}, {attributes['started_utc']}: {len(rollout)} rows, "
        f"{rollout.completeness}; ended by: {attributes['end_reason']}"
    )
