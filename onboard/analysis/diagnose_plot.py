"""The picture of a diagnosis: heat maps, contact phases, histograms, actions, spectra, timing."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onboard.analysis.diagnose import Diagnosis
from onboard.analysis.picture import save_picture

_BLUE, _ORANGE, _GREEN, _GREY = "#2f6fab", "#e07a2f", "#3f8f57", "#9a9a9a"
_COLOURS = {"before": _BLUE, "after": _ORANGE, "action": _BLUE, "residual": _ORANGE, "sent target": _GREEN}
LEGS = 12
"""Joints of both legs come first in SDK motor order."""


def plot_diagnosis(diagnosis: Diagnosis, title: str, out: Path) -> Path:
    """Draw it into a PNG.

    Raises:
        RolloutError: the picture can't be written.
    """
    figure = Figure(figsize=(18, 14), dpi=90, layout="constrained")
    axes = figure.subplots(4, 2, height_ratios=(1.5, 1, 1, 1))
    found = diagnosis.prediction
    names = [joint.removesuffix("_joint") for joint in diagnosis.joints]
    end_s = float(found.time_s[-1])
    _heat(axes[0, 0], np.degrees(found.one_step_rad), names, end_s, "one step ahead (deg)")
    _heat(axes[0, 1], np.degrees(found.whole_rad), names, end_s, "one run from the start (deg)")
    _phases(axes[1, 0], diagnosis, names)
    _histogram(axes[1, 1], diagnosis, names)
    _actions(axes[2, 0], diagnosis)
    _spectra(axes[2, 1], diagnosis)
    _stages(axes[3, 0], diagnosis)
    axes[3, 1].hist(diagnosis.period_ms, bins=80, color=_BLUE)
    axes[3, 1].set_title("control period (ms)", loc="left", fontsize=9)
    axes[3, 1].set_yscale("log")
    figure.suptitle(title, x=0.01, ha="left")
    return save_picture(figure, out)


def _heat(axes: Axes, values: np.ndarray, names: list[str], end_s: float, title: str) -> None:
    limit = max(float(np.nanpercentile(np.abs(values), 99.5)), 1e-6)
    extent = (0.0, end_s, len(names) - 0.5, -0.5)
    image = axes.imshow(values.T, aspect="auto", extent=extent, cmap="RdBu_r", vmin=-limit, vmax=limit)
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.set_title(f"simulated less recorded, {title}", loc="left", fontsize=9)
    axes.set_xlabel("time (s)", fontsize=8)
    if axes.figure is not None:
        axes.figure.colorbar(image, ax=axes)


def _phases(axes: Axes, diagnosis: Diagnosis, names: list[str]) -> None:
    phases = diagnosis.prediction.by_phase()
    width = 0.8 / max(len(phases), 1)
    for place, (phase, values) in enumerate(phases.items()):
        at = np.arange(LEGS) + (place - (len(phases) - 1) / 2) * width
        axes.bar(at, np.degrees(values[:LEGS]), width, label=phase)
    axes.set_xticks(range(LEGS), names[:LEGS], fontsize=6, rotation=30, ha="right")
    axes.set_title("one-step error by contact phase (deg RMS)", loc="left", fontsize=9)
    axes.legend(fontsize=7, frameon=False)


def _histogram(axes: Axes, diagnosis: Diagnosis, names: list[str]) -> None:
    """Spread of the one-step error of every leg joint, and of the residual where one ran."""
    error = np.degrees(diagnosis.prediction.one_step_rad[1:, :LEGS])
    limit = max(float(np.percentile(np.abs(error), 99)), 1e-9)
    bins = np.linspace(-limit, limit, 61).tolist()
    for joint in range(LEGS):
        axes.hist(error[:, joint], bins=bins, histtype="step", lw=0.9, label=names[joint])
    axes.set_yscale("log")
    axes.set_title("one-step error (deg), rows", loc="left", fontsize=9)
    axes.legend(fontsize=5.5, frameon=False, ncols=2)


def _actions(axes: Axes, diagnosis: Diagnosis) -> None:
    """p1 to p99 and the quartiles of every element, before and after the residual."""
    for shift, (name, values) in zip((-0.15, 0.15), diagnosis.actions.items(), strict=True):
        if not len(values):
            continue
        at = np.arange(values.shape[1]) + shift
        low, first, middle, third, high = np.percentile(values, (1, 25, 50, 75, 99), axis=0)
        axes.vlines(at, low, high, color=_COLOURS[name], lw=1)
        axes.vlines(at, first, third, color=_COLOURS[name], lw=4, label=f"{name} the residual")
        axes.plot(at, middle, "|", color="black", markersize=4)
    if diagnosis.residual is not None:
        largest = np.nanmax(np.abs(diagnosis.residual), axis=0)
        axes.plot(np.arange(len(largest)), largest, "_", color=_GREY, label="largest |residual|")
    axes.set_title("raw action by element: p1 to p99, quartiles, median", loc="left", fontsize=9)
    axes.legend(fontsize=7, frameon=False)


def _spectra(axes: Axes, diagnosis: Diagnosis) -> None:
    for name, spectrum in diagnosis.spectra.items():
        above = spectrum.hz > 0
        mean = np.maximum(spectrum.power[above].mean(axis=1), 1e-15)
        axes.loglog(spectrum.hz[above], mean, color=_COLOURS[name], label=name)
    axes.set_title("Welch spectra, mean of all elements (1/Hz)", loc="left", fontsize=9)
    axes.set_xlabel("Hz", fontsize=8)
    axes.legend(fontsize=7, frameon=False)


def _stages(axes: Axes, diagnosis: Diagnosis) -> None:
    names = list(diagnosis.stages_us)
    for place, (p50, p99) in enumerate(diagnosis.stages_us.values()):
        axes.barh(place, p99, color=_GREY, label="p99" if place == 0 else None)
        axes.barh(place, p50, color=_BLUE, label="p50" if place == 0 else None)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_title("stages of a tick (µs)", loc="left", fontsize=9)
    axes.legend(fontsize=7, frameon=False)
