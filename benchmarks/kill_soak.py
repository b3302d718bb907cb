"""Processes of whole runs killed at random moments: is every record there? `python -m benchmarks.kill_soak`.

Real DDS, real processes, one simulator for all runs. In each run one process, or all of them at once, gets
SIGKILL at a random moment of a random stretch: damped, in the ramp, in hold, under the policy, while the
run ends, while the rollout is converted. Then what is left is held against what control had handed over,
row by row, as it stands in the shared memory that this program had mapped before.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.killed_run import STRETCHES, VICTIMS, Killed, Place, killing_ground

ATTEMPTS = 4
"""Runs that ended before their moment came, or never came to the stretch, are repeated."""


def soak(n: int, seed: int, victims: list[str], say: Callable[[str], None]) -> tuple[list[Killed], int]:
    """Kill in `n` runs, the victims in turn.

    Returns:
        What became of each run, and how many attempts were discarded.
    """
    found: list[Killed] = []
    discarded = 0
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory() as name, killing_ground(Path(name)) as place:
        for number in range(n):
            victim = victims[(seed + number) % len(victims)]
            for _ in range(ATTEMPTS):
                killed = _attempt(place, victim, choose)
                if killed is not None:
                    found.append(killed)
                    say(f"{number + 1}/{n} {killed.line}")
                    break
                discarded += 1
            else:
                say(f"{number + 1}/{n} {victim}: did not come about in {ATTEMPTS} attempts")
    return found, discarded


def _attempt(place: Place, victim: str, choose: random.Random) -> Killed | None:
    stretch = choose.choice(sorted(STRETCHES))
    return place.kill(victim, stretch, choose.uniform(0.0, STRETCHES[stretch]))


def figures(found: list[Killed]) -> dict[str, dict[str, Any]]:
    """By victim: runs, those that were not whole, rows, losses, and in which mode it happened."""
    rows: dict[str, dict[str, Any]] = {}
    for victim in VICTIMS:
        mine = [killed for killed in found if killed.victim == victim]
        if mine:
            rows[victim] = {
                "n": len(mine),
                "ok": sum(not killed.wrong for killed in mine),
                "recovered": sum(killed.recovered for killed in mine),
                "handed_over": sum(killed.handed_over for killed in mine),
                "lost": sum(killed.handed_over - killed.rows for killed in mine),
                "stretches": dict(Counter(killed.stretch for killed in mine)),
                "wrong": [killed.line for killed in mine if killed.wrong],
            }
    return rows


def show(rows: dict[str, dict[str, Any]]) -> Table:
    """The figures for people."""
    table = Table("killed", "n", "whole", "by log recover", "records handed over", "lost", "when")
    for victim, row in rows.items():
        when = ", ".join(f"{name} {count}" for name, count in sorted(row["stretches"].items()))
        counts = (row["n"], row["ok"], row["recovered"], row["handed_over"], row["lost"])
        table.add_row(victim, *map(str, counts), when)
    return table


def main() -> int:
    """Entry of the program; 0 when every run left every record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_soak", description=__doc__)
    parser.add_argument("--n", type=int, default=100, help="runs")
    parser.add_argument("--seed", type=int, default=0, help="of victims, stretches and moments")
    parser.add_argument("--victims", nargs="+", choices=VICTIMS, default=list(VICTIMS))
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args()
    terminal = Console()
    found, discarded = soak(options.n, options.seed, options.victims, terminal.print)
    rows = figures(found)
    terminal.print(show(rows))
    for row in rows.values():
        for line in row["wrong"]:
            terminal.print(f"NOT whole: {line}")
    terminal.print(f"{len(found)} runs, {discarded} attempts discarded, load {os.getloadavg()[0]:.1f}")
    if options.json:
        text = json.dumps({"victims": rows, "n": len(found), "discarded": discarded}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0 if len(found) == options.n and not any(killed.wrong for killed in found) else 1


if __name__ == "__main__":
    sys.exit(main())
