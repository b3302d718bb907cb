"""`make faults`: inject every fault of the list and show how fast what followed."""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from onboard.configs.faults import Fault, load_faults
from tests.disks import UnavailableError
from tests.faults import lock_step, real
from tests.faults.lock_step import Observed

LAST_LINES = 4
"""Of what a run that failed had said."""
TIERS = ("none", "warn", "settle", "hold", "damp")
OBSERVE = {"lock-step": lock_step.observe, "real DDS": real.observe}


def judge(name: str, fault: Fault, seen: Observed, near: Observed | None) -> dict[str, Any]:
    """One row of the result. `near`: what followed the fault just below its limit, where there is that."""
    code = seen.exit_code is None or seen.exit_code == fault.exit_code
    in_time = fault.limit_ms is None or (seen.reaction_ms is not None and seen.reaction_ms <= fault.limit_ms)
    below = near is None or (near.tier in TIERS[: TIERS.index(fault.tier)] and fault.log not in near.log)
    return {
        "fault": name,
        "tier": seen.tier,
        "expected": fault.tier,
        "reaction_ms": None if seen.reaction_ms is None else round(seen.reaction_ms, 1),
        "limit_ms": fault.limit_ms,
        "where": fault.where,
        "exit_code": seen.exit_code,
        "log": seen.log,
        "near_miss": None if near is None else near.tier,
        "ok": seen.tier == fault.tier and fault.log in seen.log and code and in_time and below,
    }


def inject(name: str, fault: Fault) -> dict[str, Any]:
    """Inject one fault; a run that fails otherwise, or can't be made here, is a row that is not ok."""
    near = None
    with tempfile.TemporaryDirectory() as folder:
        try:
            seen = OBSERVE[fault.where](name, fault, Path(folder))
            near = lock_step.near_miss(fault) if fault.near else None
        except UnavailableError as reason:
            seen = Observed("unavailable", None, str(reason))
        except Exception as error:  # whatever it was, the other rows are still to be seen
            said = " / ".join(str(error).splitlines()[-LAST_LINES:])
            seen = Observed("failed", None, said or type(error).__name__)
    return judge(name, fault, seen, near)


def show(rows: list[dict[str, Any]]) -> Table:
    """The rows for people; times of lock-step rows are simulated."""
    table = Table(
        Column("fault", no_wrap=True),
        "tier",
        "expected",
        "reaction ms",
        "limit ms",
        "near miss",
        "where",
        "ok",
    )
    for row in rows:
        times = ["" if row[key] is None else f"{row[key]:g}" for key in ("reaction_ms", "limit_ms")]
        table.add_row(
            row["fault"],
            row["tier"],
            row["expected"],
            *times,
            row["near_miss"] or "",
            row["where"],
            "yes" if row["ok"] else "NO",
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
    rows, began, load = [], time.monotonic(), os.getloadavg()[0]
    for name in options.names or faults:
        rows.append(inject(name, faults[name]))
        console.print(in_words(rows[-1]))
        if options.json:  # after every row: the whole list takes a while
            options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    console.print(show(rows))
    failed = [row["fault"] for row in rows if not row["ok"]]
    console.print(
        f"{len(rows) - len(failed)} of {len(rows)} faults end as the list says, "
        f"{sum(row['near_miss'] is not None for row in rows)} near misses; "
        f"{time.monotonic() - began:.0f} s, load {load:.1f} to {os.getloadavg()[0]:.1f}; "
        "times of lock-step rows are simulated"
    )
    if failed:
        console.print(f"not as the list says: {', '.join(failed)}")
    return 1 if failed else 0


def in_words(row: dict[str, Any]) -> str:
    """One row as a line; what was logged too where it is not as the list says."""
    line = f"{row['fault']}: {row['tier']}, {row['reaction_ms']} ms"
    return line if row["ok"] else f"{line}; NOT OK: exit code {row['exit_code']}, {row['log']}"


if __name__ == "__main__":
    sys.exit(main())
