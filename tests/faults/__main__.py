"""`make faults`: inject every fault of the list and show how fast what followed."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from onboard.configs.faults import Fault, load_faults
from tests.faults import lock_step, real
from tests.faults.lock_step import Observed

OBSERVE = {"lock-step": lock_step.observe, "real DDS": real.observe}


def judge(name: str, fault: Fault, seen: Observed) -> dict[str, Any]:
    """One row of the result."""
    code = seen.exit_code is None or seen.exit_code == fault.exit_code
    in_time = fault.limit_ms is None or (seen.reaction_ms is not None and seen.reaction_ms <= fault.limit_ms)
    return {
        "fault": name,
        "tier": seen.tier,
        "expected": fault.tier,
        "reaction_ms": None if seen.reaction_ms is None else round(seen.reaction_ms, 1),
        "limit_ms": fault.limit_ms,
        "where": fault.where,
        "exit_code": seen.exit_code,
        "log": seen.log,
        "ok": seen.tier == fault.tier and fault.log in seen.log and code and in_time,
    }


def inject(name: str, fault: Fault) -> dict[str, Any]:
    """Inject one fault; a run that fails otherwise is a row that is not ok."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            seen = OBSERVE[fault.where](name, fault, Path(folder))
        except AssertionError as error:
            lines = str(error).splitlines()
            seen = Observed(
                "failed", None, next((line for line in lines if "(" in line and "damp" in line), lines[-1])
            )
    return judge(name, fault, seen)


def show(rows: list[dict[str, Any]]) -> Table:
    """The rows for people; times of lock-step rows are simulated."""
    table = Table("fault", "tier", "expected", "reaction ms", "limit ms", "where", "ok")
    for row in rows:
        times = ["" if row[key] is None else f"{row[key]:g}" for key in ("reaction_ms", "limit_ms")]
        table.add_row(
            row["fault"], row["tier"], row["expected"], *times, row["where"], "yes" if row["ok"] else "NO"
        )
    return table


def main() -> int:
    """Entry of the program; 0 when every row is ok."""
    faults = load_faults()
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"only these: {', '.join(faults)}")
    parser.add_argument("--json", type=Path, help="write the list there too")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(faults))
    if unknown:
        parser.error(f"not in the list: {', '.join(unknown)}")
    console = Console()
    rows = []
    for name in options.names or faults:
        rows.append(inject(name, faults[name]))
        console.print(f"{name}: {rows[-1]['tier']}, {rows[-1]['reaction_ms']} ms")
    console.print(show(rows))
    console.print(f"load {os.getloadavg()[0]:.1f}; times of lock-step rows are simulated")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
