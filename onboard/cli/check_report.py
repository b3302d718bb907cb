"""What `onboard check` shows and hands to programs, row by row."""

from typing import Any

import msgspec
from rich.console import Console

from onboard.runtime.preflight.record import CheckedRow, plain_row
from onboard.runtime.preflight.report import Row, Verdict

STYLE = {Verdict.PASS: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}


def show(console: Console, row: Row) -> Row:
    """One or two lines for people, as soon as a check is made."""
    finding = row.finding
    console.print(f"{finding.verdict.name.lower():4}", style=STYLE[finding.verdict], end="  ")
    console.print(f"{row.name:23} {finding.measured}  ({row.seconds:.1f} s)", soft_wrap=True)
    if finding.advice:
        console.print(f"      {'':23} {finding.advice}", style="italic", soft_wrap=True)
    return row


def checked_rows(rows: list[Row], waived: tuple[str, ...]) -> list[CheckedRow]:
    """The rows as they are kept; `waived` names those whose failure does not count here."""
    return [plain_row(row, waived) for row in rows]


def result(rows: list[CheckedRow], stored: str) -> dict[str, Any]:
    """The machine-readable result; `stored` is where it is kept."""
    failed = [row.check for row in rows if row.failed and not row.waived]
    return {"ok": not failed, "failed": failed, "stored": stored, "checks": msgspec.to_builtins(rows)}
