"""Two pictures of one protocol: the intervals against the rule, every episode of the deciding metric."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

from onboard.analysis.ab.experiment import ProtocolResult
from onboard.analysis.ab.verdict import DROP_PERCENT, KEEP_PERCENT, Verdict

mpl.use("agg")

from matplotlib import pyplot

COLOURS = {"keep": "#1f5a96", "drop": "#d9822b", "undecided": "#8a8a8a"}
SHOWN_PERCENT = 120.0
"""Intervals that reach further are cut off and marked."""


def draw_intervals(result: ProtocolResult, out: Path) -> Path:
    """Change by dropping the residual, with its interval, metric by metric; returns the PNG's path."""
    verdicts = [verdict for verdict in result.verdicts if np.isfinite(verdict.change_percent)]
    figure, axis = pyplot.subplots(figsize=(8, 1.2 + 0.32 * max(1, len(verdicts))), layout="constrained")
    for row, verdict in enumerate(reversed(verdicts)):
        _interval(axis, row, verdict)
    for threshold in (DROP_PERCENT, KEEP_PERCENT):
        axis.axvline(threshold, color="#b03030", linewidth=0.8, linestyle="--")
    axis.axvline(0.0, color="#404040", linewidth=0.8)
    axis.set_yticks(range(len(verdicts)), [verdict.metric for verdict in reversed(verdicts)])
    axis.set_xlim(-SHOWN_PERCENT, SHOWN_PERCENT)
    axis.set_xlabel("change by dropping the residual, %; dashed: the rule's 10 and 20 %")
    axis.set_title(f"{result.name}: {result.word}")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=130)
    pyplot.close(figure)
    return out


def draw_episodes(result: ProtocolResult, out: Path) -> Path:
    """Every episode's value of the deciding metric, by arm and block; returns the PNG's path."""
    metric = result.verdicts[0].metric
    figure, axis = pyplot.subplots(figsize=(8, 3.2), layout="constrained")
    for arm, shift in (("keep", -0.12), ("drop", 0.12)):
        mine = [s for s in result.scores if s.arm == arm and metric in s.metrics and not s.aborted]
        stood = [(s.block + shift, s.metrics[metric]) for s in mine if not s.failed]
        failed = [(s.block + shift, s.metrics[metric]) for s in mine if s.failed]
        if stood:
            axis.scatter(*np.array(stood).T, s=22, color=COLOURS[arm], label=arm)
        if failed:
            label = f"{arm}, fell or stopped"
            axis.scatter(*np.array(failed).T, s=40, marker="x", color=COLOURS[arm], label=label)
    axis.set_xlabel("block")
    axis.set_ylabel(metric)
    axis.set_ylim(bottom=0.0)
    if axis.has_data():
        axis.legend(frameon=False, ncols=4, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=130)
    pyplot.close(figure)
    return out


def _interval(axis: "pyplot.Axes", row: int, verdict: Verdict) -> None:
    colour = COLOURS[verdict.word]
    low, high = np.clip(verdict.ci_percent, -SHOWN_PERCENT, SHOWN_PERCENT)
    axis.plot([low, high], [row, row], color=colour, linewidth=2)
    if abs(verdict.change_percent) <= SHOWN_PERCENT:
        axis.plot(verdict.change_percent, row, "o", color=colour)
    if verdict.ci_percent[1] > SHOWN_PERCENT:
        axis.plot(SHOWN_PERCENT, row, ">", color=colour, clip_on=False)
