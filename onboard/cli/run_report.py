"""What `run` and `demo` tell at the end: the outcome and the timing table."""

import contextlib
import sys
from typing import Any

import msgspec
from rich.console import Console as Terminal
from rich.table import Table

from onboard.configs.errors import RolloutError
from onboard.logging.rollout import Rollout
from onboard.logging.summary import Summary, summarize
from onboard.runtime.launch import Outcome

SPREADS = ("tick_us", "wake_late_us", "state_age_ms")


def read_summary(outcome: Outcome) -> Summary | None:
    """Figures of the rollout; None where there is none to read."""
    if outcome.rollout is None:
        return None
    try:
        with Rollout(outcome.rollout) as rollout:
            return summarize(rollout)
    except RolloutError:
        return None


def run_result(outcome: Outcome, summary: Summary | None) -> dict[str, Any]:
    """The machine-readable result of a run."""
    result: dict[str, Any] = {
        "ok": outcome.exit_code == 0,
        "end": outcome.end,
        "exit_code": outcome.exit_code,
        "rollout": str(outcome.rollout) if outcome.rollout else None,
        "rows": outcome.policy_rows,
        "skipped_ticks": outcome.skipped_ticks,
        "rows_lost": summary.rows_lost if summary else outcome.rows_lost,
        "events": outcome.events,
        "faults": outcome.faults,
        "seconds": summary.seconds if summary else None,
        "rate_hz": summary.rate_hz if summary else None,
    }
    for name in SPREADS:
        result[name] = msgspec.to_builtins(getattr(summary, name)) if summary else None
    return result


def show(title: str, result: dict[str, Any]) -> None:
    """The outcome as two small tables on standard error, as far as there still is a terminal to take them."""
    with contextlib.suppress(OSError):
        _show(Terminal(file=sys.stderr), title, result)


def _show(terminal: Terminal, title: str, result: dict[str, Any]) -> None:
    facts = Table(title=title, show_header=False)
    for key, value in result.items():
        if key not in SPREADS and value is not None:
            facts.add_row(key, _text(value))
    terminal.print(facts)
    timing = Table("timing", "p50", "p99", "p99.9", "max")
    for name in SPREADS:
        spread = result[name]
        if spread:
            timing.add_row(name, *(f"{spread[key]:.3g}" for key in ("p50", "p99", "p999", "max")))
    if timing.row_count:
        terminal.print(timing)


def _text(value: Any) -> str:  # noqa: ANN401 - any plain value of a result
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items()) or "none"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
