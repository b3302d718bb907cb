"""One look at a run as a table for people."""

from typing import Any

from rich.table import Table
from rich.text import Text

STALE_MS = {"control": 100.0, "gateway": 100.0, "recorder": 500.0}
"""Age of a heartbeat that is shown in red."""
TIER_STYLE = {"none": "green", "warn": "yellow"}


def status_table(look: dict[str, Any]) -> Table:
    """Everything that `RunView.look` says."""
    table = Table(show_header=False, title=_title(look["run"]), title_justify="left")
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    rows = (("mode", _mode), ("tier", _tier), ("last events", _events), ("timing", _timing), ("link", _link))
    for name, cell in rows:
        table.add_row(name, cell(look))
    for name, values in look["joints"].items():
        shown = "  ".join(f"{joint.removesuffix('_joint')} {value:g}" for joint, value in values.items())
        table.add_row(name.replace("_", " "), shown or "none")
    for name in look["processes"]:
        table.add_row(name, _process(name, look["processes"][name]))
    return table


def _title(run: dict[str, Any]) -> str:
    dry = ", dry" if run["dry"] else ""
    return f"{', '.join(run['policies'])} on {run['robot']}, {run['interface']} domain {run['domain']}{dry}"


def _mode(look: dict[str, Any]) -> str:
    state = look["state"]
    vx, vy, wz = state["velocity"]
    policy = f"  policy {state['policy']}" if state["policy"] else ""
    return (
        f"{state['mode']} ({state['reason']}){policy}  arm {state['arm']}  episode {state['episode']}  "
        f"step {state['step']}  v {vx:+.2f} {vy:+.2f} {wz:+.2f}"
    )


def _tier(look: dict[str, Any]) -> Text:
    state = look["state"]
    active = f"  {', '.join(state['active_events'])}" if state["active_events"] else ""
    return Text(f"{state['tier']}{active}", TIER_STYLE.get(state["tier"], "bold red"))


def _events(look: dict[str, Any]) -> str:
    shown = (
        f"{event['event']} {event['age_s']:g} s ago" + (f" (x{event['times']})" if event["times"] > 1 else "")
        for event in look["events"]
    )
    return "  ".join(shown) or "none"


def _timing(look: dict[str, Any]) -> str:
    timing = look["timing"]
    cells = [
        f"{label} {timing[name]['p50']:g} / {timing[name]['p99']:g} / {timing[name]['max']:g} {unit}"
        for name, label, unit in (
            ("tick_us", "tick", "us"),
            ("wake_late_us", "late", "us"),
            ("state_age_ms", "state age", "ms"),
        )
        if timing[name]
    ]
    return "   ".join([*cells, f"skipped {timing['skipped_ticks']}"]) + "   (p50 / p99 / max of 1 s)"


def _link(look: dict[str, Any]) -> str:
    link = look["link"]
    rate = "rate unknown yet" if link["rate_hz"] is None else f"{link['rate_hz']:.0f} Hz"
    counts = "  ".join(
        f"{name.replace('_', ' ')} {link[name]}" for name in ("gaps", "reordered", "duplicates", "crc_errors")
    )
    return f"{rate}   {counts}   of {link['received']}"


def _process(name: str, process: dict[str, Any]) -> Text:
    age = process["heartbeat_ms"]
    if age is None:
        return Text("no heartbeat yet", "yellow")
    details = "  ".join(
        f"{key.replace('_', ' ')} {_size(value) if key == 'disk_free' else value}"
        for key, value in process.items()
        if key != "heartbeat_ms" and value != ""
    )
    fresh = age <= STALE_MS[name]
    return Text(f"heartbeat {age:.0f} ms ago  {details}", "" if fresh else "bold red")


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
