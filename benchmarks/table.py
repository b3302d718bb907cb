"""The figures as tables for a terminal."""

from collections.abc import Mapping

from rich import box
from rich.table import Table

from benchmarks.figures import BASELINE, OURS, ROWS, Aim, Spread

SIDES = ("bytes", "objects", "callback", "onboard")


def comparison(
    compared: Mapping[str, Mapping[str, Spread]], ratio: Mapping[str, Mapping[str, float]]
) -> Table:
    """Every row with every side that was played: median and tail, and how many times dearer objects are."""
    sides = [side for side in SIDES if any(side in row for row in compared.values())]
    table = _table("µs at 50 Hz, cold: p50 / p99; ratios at p50")
    table.add_column("stage", no_wrap=True)
    for side in sides:
        table.add_column(side, justify="right", no_wrap=True)
    ours = [side for side in OURS if side in sides and BASELINE in sides]
    for side in ours:
        table.add_column(f"{BASELINE}\n/ {side}", justify="right", no_wrap=True)
    for row in ROWS:
        cells = [_spread(compared[row.key].get(side)) for side in sides]
        cells += [_times(ratio.get(row.key, {}).get(side)) for side in ours]
        table.add_row(row.label, *cells)
    return table


def details(stages: Mapping[str, Mapping[str, Spread]]) -> Table:
    """Every stage of every side as it was measured."""
    table = _table("every stage as it was measured, µs", "side", "stage")
    for name in ("p50", "p99", "ticks"):
        table.add_column(name, justify="right")
    for side, spreads in stages.items():
        for name, found in spreads.items():
            table.add_row(side, name, f"{found.p50:.0f}", f"{found.p99:.0f}", str(found.n))
        table.add_section()
    return table


def cpu(percent: Mapping[str, Mapping[str, float]]) -> Table:
    """Shares of a core beside 500 states a second."""
    table = _table("share of a core, 50 Hz beside 500 states/s", "side", "process")
    table.add_column("%", justify="right")
    for side, processes in percent.items():
        for process, value in processes.items():
            table.add_row(side, process, f"{value:.1f}")
    return table


def goals(aims: Mapping[str, Aim]) -> Table:
    """What was aimed at."""
    table = _table("aims", "aim", "found", "")
    for aim in aims.values():
        table.add_row(aim.about, f"{aim.found:.1f}", "met" if aim.met else "missed here")
    return table


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, box=box.SIMPLE_HEAD, pad_edge=False)


def _spread(found: Spread | None) -> str:
    return f"{found.p50:.0f} / {found.p99:.0f}" if found else ""


def _times(found: float | None) -> str:
    return f"{found:.1f}" if found else ""
