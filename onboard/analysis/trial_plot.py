"""One picture of one trial."""

from pathlib import Path

import matplotlib as mpl
import numpy as np


def plot_trial(trace: list[tuple[float, float, float, float, float]], title: str, out: Path) -> Path:
    """Draw speed, height and tilt over time.

    Args:
        trace: rows of time s, vx m/s, vx asked m/s, pelvis height m, tilt rad.
        title: over the picture.
        out: PNG to write.
    """
    mpl.use("agg")
    from matplotlib import pyplot

    time_s, vx, asked, height, tilt = np.array(trace).T
    figure, axes = pyplot.subplots(3, 1, sharex=True, figsize=(9, 6.5), layout="constrained")
    smooth = np.convolve(vx, np.ones(25) / 25, mode="same")
    axes[0].plot(time_s, vx, color="#b0c4de", linewidth=0.8, label="vx")
    axes[0].plot(time_s, smooth, color="#1f5a96", label="vx, mean of 0.5 s")
    axes[0].plot(time_s, asked, color="#d9822b", label="asked")
    axes[0].set_ylabel("m/s")
    axes[0].legend(loc="upper right", ncols=3, frameon=False)
    axes[1].plot(time_s, height, color="#1f5a96")
    axes[1].set_ylabel("pelvis height, m")
    axes[2].plot(time_s, np.degrees(tilt), color="#1f5a96")
    axes[2].set_ylabel("tilt, °")
    axes[2].set_xlabel("s since the policy began")
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    figure.savefig(out, dpi=130)
    pyplot.close(figure)
    return out
