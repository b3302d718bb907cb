"""Whether anything grows in a long run: `python -m benchmarks.soak`.

A walk in lock-step on simulated time, then one on real DDS with every process of its own. Of each process
the resident memory and the open descriptors are followed; every record that was handed over must be in
the rollout. With `--hogs` it walks beside programs that take every processor they get.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.false_trips import hogs
from benchmarks.memory import MOST_PERCENT, Series, growth
from benchmarks.soak_runs import Say, lock_step, real_time
from benchmarks.stillness import in_words, watched_cores

LOCK_STEP_S, REAL_S = 7200.0, 1800.0


def soak(lock_step_s: float, real_s: float, say: Say) -> tuple[dict[str, Any], dict[str, Series]]:
    """Both walks; 0 leaves one out.

    Returns:
        The figures by walk, and the memory of each process over time.
    """
    result: dict[str, Any] = {}
    everyone: dict[str, Series] = {}
    for name, walk, seconds in (("lock_step", lock_step, lock_step_s), ("real_time", real_time, real_s)):
        if seconds <= 0.0:
            continue
        series, account = walk(seconds, say)
        processes = {who: growth(each) for who, each in series.items()}
        steady = all(each["ok"] for each in processes.values())
        ok = steady and account["whole"] and account["walked_through"]
        result[name] = {"ok": ok, **account, "processes": processes}
        everyone |= series
    return result, everyone


def show(result: dict[str, Any]) -> Table:
    """The figures for people."""
    table = Table("walk", "process", "MB", "MB at the end", "growth %", "files", "at the end", "ok")
    for name, walk in result.items():
        for who, row in walk["processes"].items():
            table.add_row(
                f"{name.replace('_', ' ')}, {walk['seconds']:.0f} s",
                who,
                f"{row['rss_mb']:.1f}",
                f"{row['rss_mb_end']:.1f}",
                f"{row['growth_percent']:+.2f} of {MOST_PERCENT:g}",
                str(row["files"]),
                str(row["files_end"]),
                "yes" if row["ok"] else "NO",
            )
    return table


def plot(everyone: Mapping[str, Series], out: Path) -> None:
    """Memory of each process over time, as a change against its own end of the warm-up."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        len(everyone), 1, figsize=(9, 1.8 * len(everyone) + 1), layout="constrained", squeeze=False
    )
    for axis, (name, series) in zip(axes[:, 0], everyone.items(), strict=True):
        axis.plot(series.seconds, [value / 1e6 for value in series.rss], color="#1f5a96", linewidth=0.9)
        axis.axvline(growth(series)["warm_up_s"], color="#d9822b", linewidth=0.8)
        axis.set_ylabel("MB")
        axis.set_title(f"{name}: {growth(series)['growth_percent']:+.2f} %", fontsize=9, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    axes[-1, 0].set_xlabel("s since the walk began; the warm-up ends at the orange line")
    figure.suptitle("resident memory")
    figure.savefig(out, dpi=120)
    pyplot.close(figure)


def main() -> int:
    """Entry of the program; 0 when nothing grew, fell or got lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--lock-step-s", type=float, default=LOCK_STEP_S, help="simulated seconds; 0: none")
    parser.add_argument("--real-s", type=float, default=REAL_S, help="seconds on real DDS; 0: none")
    parser.add_argument("--hogs", type=int, default=0, help="programs that take all the time they get")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--plot", type=Path, help="write a PNG of the memory over time")
    options = parser.parse_args()
    terminal = Console()
    with hogs(options.hogs), watched_cores() as still:
        result, everyone = soak(options.lock_step_s, options.real_s, terminal.print)
        for walk in result.values():
            walk["end"] += "" if walk["walked_through"] else still.before(walk.get("stopped_ns", 0))
        stood = still.account()
    terminal.print(show(result))
    for name, walk in result.items():
        terminal.print(
            f"{name.replace('_', ' ')}: {walk['handed_over']} records handed over, {walk['rows']} in the "
            f"rollout, {walk['lost']} lost; {walk['end']}: {'ok' if walk['ok'] else 'NOT ok'}"
        )
        seen = ", ".join(walk["events"]) or "none"
        terminal.print(f"ticks skipped: {walk.get('skipped_ticks', 0)}; safety events: {seen}")
    terminal.print(f"{in_words(stood)}; {options.hogs} hogs, load {os.getloadavg()[0]:.1f}")
    if options.json:
        text = json.dumps({**result, "stood_still": stood, "hogs": options.hogs}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.plot and everyone:
        plot(everyone, options.plot)
    return 0 if result and all(walk["ok"] for walk in result.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
