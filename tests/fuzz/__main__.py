"""`make fuzz`: spoiled and hostile inputs of every kind, against every reader of the package."""

import argparse
import json
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fuzz.kinds import KINDS
from tests.fuzz.runner import Result, fuzz, known
from tests.fuzz.worker import replay

KEEP = Path("fuzz-failures")
SAY_EVERY_S = 10.0


def show(results: list[Result]) -> Table:
    """A row for every kind."""
    table = Table("kind", "reads", "cases", "refused", "accepted", "seconds", "failures")
    for result in results:
        numbers = [str(number) for number in (result.cases, result.refused, result.accepted)]
        seconds, failures = f"{result.seconds:.1f}", str(len(result.failures))
        table.add_row(result.kind, KINDS[result.kind].about, *numbers, seconds, failures)
    return table


class Progress:
    """Says now and then how far it is."""

    def __init__(self, cases: int) -> None:
        self._cases = cases
        self._said_s = 0.0
        self._kind = ""

    def __call__(self, row: Result) -> None:
        """Look at the row at hand."""
        now = time.monotonic()
        if row.kind != self._kind or now - self._said_s > SAY_EVERY_S:
            self._kind, self._said_s = row.kind, now
            sys.stdout.write(f"{row.kind}: {row.cases} of {self._cases} cases, {row.seconds:.0f} s\n")
            sys.stdout.flush()


def main() -> int:
    """Entry of the program; 0 when nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=500, help="of each kind (default %(default)s)")
    parser.add_argument("--kinds", nargs="*", default=[], metavar="KIND", help="names or their beginnings")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same cases")
    parser.add_argument("--json", type=Path, help="write the table there too")
    parser.add_argument("--keep", type=Path, default=KEEP, help="folder for failing cases")
    parser.add_argument("--replay", type=Path, metavar="FOLDER", help="read a kept case again; needs --kinds")
    options = parser.parse_args()
    try:
        kinds = known(options.kinds)
    except ValueError as error:
        parser.error(str(error))
    console = Console()
    if options.replay:
        console.print(replay(KINDS[kinds[0]], options.replay), markup=False)
        return 0
    results = fuzz(dict.fromkeys(kinds, options.cases), options.seed, options.keep, Progress(options.cases))
    for failure in (failure for result in results for failure in result.failures):
        sys.stdout.write(f"{failure.kind} seed {failure.seed} case {failure.case}: {failure.wrong}\n")
        sys.stdout.write(f"  make fuzz ARGS='--kinds {failure.kind} --replay {failure.files}'\n")
    console.print(show(results))
    if options.json:
        rows = [result.as_json() for result in results]
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 1 if any(result.failures for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
