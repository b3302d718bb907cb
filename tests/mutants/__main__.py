"""`make mutants`: change the safety code one operator at a time and see whether a test notices.

The mutants are cosmic-ray's; see docs/mutation.md for what is left out, the result and the survivors.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.mutants import swap, trial
from tests.mutants.session import Mutant, Session
from tests.mutants.survivors import Argued, load_argued
from tests.mutants.targets import TARGETS, Target

GOAL = 0.95
"""Share of mutants that the tests must kill, file by file."""


def run(session: Session, mutants: Sequence[Mutant], workers: int, console: Console) -> None:
    """Try every mutant, several at a time: first all that share one collection of tests, then the rest."""
    if not mutants:
        return
    rest = []
    for index, outcome in swap.trials(
        session.target, session.source, len(mutants), lambda index: session.text(mutants[index]), workers
    ):
        if outcome is None:
            rest.append(mutants[index])
        else:
            _record(session, mutants[index], outcome, console)
    _run_alone(session, rest, workers, console)


def _record(session: Session, mutant: Mutant, outcome: trial.Outcome, console: Console) -> None:
    session.record(mutant, outcome)
    if (count := session.tally()["tried"]) % 100 == 0:
        console.print(f"{session.target.path}: {count} tried")


def _run_alone(session: Session, mutants: Sequence[Mutant], workers: int, console: Console) -> None:
    """Mutants that are imported, each in a process of its own."""
    if not mutants:
        return
    target = session.target
    limits_s = _limits(target, session.source)
    running: dict[int, tuple[Path, Mutant]] = {}
    for mutant in (*mutants, *[None] * workers):
        if len(running) == workers or (mutant is None and running):
            pid, status = os.wait()
            said, tried = running.pop(pid)
            _record(session, tried, trial.outcome(status, trial.take(said)), console)
        if mutant is not None:
            pid, said = trial.start(target, session.text(mutant), limits_s)
            running[pid] = said, mutant


def _limits(target: Target, source: str) -> list[float]:
    """CPU limits, s: twice what each file of tests takes without a mutation, and a second."""
    pid, said = trial.start(target, source, [600.0] * len(target.tests))
    outcome = trial.outcome(os.waitpid(pid, 0)[1], trial.take(said))
    if outcome.verdict != "survived":
        sys.exit(f"{target.path}: its tests fail without any mutation ({outcome.by}); mend them first")
    return [2 * cpu_s + 1 for cpu_s in outcome.cpu_s]


def report(session: Session, argued: list[Argued]) -> dict[str, Any]:
    """One file's result."""
    tally = session.tally()
    reasons = {(one.path, one.was, one.now): one.why for one in argued}
    survivors = []
    for mutant in session.survivors():
        was, now = session.change(mutant)
        why = reasons.get((session.target.path, was, now))
        survivors.append(
            {"line": mutant.line, "operator": mutant.operator, "was": was, "now": now, "why": why}
        )
    noticed = tally["killed"] + tally["timeout"]
    score = noticed / tally["tried"] if tally["tried"] else 0.0
    return {"file": session.target.path, **tally, "score": round(score, 4), "survivors": survivors}


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """The result for people: a row a file, then every survivor as a diff."""
    table = Table("file", "mutants", "left out", "tried", "killed", "timeout", "survived", "score")
    for row in rows:
        numbers = [str(row[key]) for key in ("mutants", "left_out", "tried", "killed", "timeout", "survived")]
        table.add_row(row["file"], *numbers, f"{100 * row['score']:.1f} %")
    console.print(table)
    for row in rows:
        for one in row["survivors"]:
            console.print(f"\n{row['file']}:{one['line']} {one['operator']}", markup=False, highlight=False)
            console.print(f"  - {one['was']}\n  + {one['now']}", markup=False, highlight=False)
            console.print(f"  {one['why'] or 'NOT ARGUED'}", markup=False, highlight=False)


def main() -> int:
    """Run, report; 1 where a file misses the goal or a survivor is not argued."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="parts of file names, such as gate.py")
    parser.add_argument(
        "--sample", type=int, help="about so many mutants of each file; all of them without it"
    )
    parser.add_argument("--survivors", action="store_true", help="try again those that survived")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=Path, default=Path(".mutants"), help="where results are kept")
    parser.add_argument("--json", type=Path, help="write the result there too")
    args = parser.parse_args()
    targets = [t for t in TARGETS if not args.only or any(part in t.path for part in args.only)]
    if not targets:
        known = ", ".join(target.path for target in TARGETS)
        parser.error(f"--only {' '.join(args.only)} names none of the files; there are {known}")
    console = Console()
    argued = load_argued()
    trial.warm()
    begin = time.monotonic()
    rows = []
    for target in targets:
        session = Session(target, args.folder, fresh=args.fresh)
        pending = session.pending(args.sample, survivors=args.survivors)
        run(session, pending, args.workers, console)
        rows.append(report(session, argued))
    show(rows, console)
    console.print(f"\n{(time.monotonic() - begin) / 60:.1f} minutes")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return int(any(row["score"] < GOAL or not all(one["why"] for one in row["survivors"]) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
