"""One look at a run as a table for people."""

from typing import Any

from rich.table import Table
from rich.text import Text

STALE_MS = {"control": 100.0, "gateway": 100.0, "recorder": 500.0}
"""Age of a heartbeat that is shown in red."""
LOW_BATTERY = 20
"""Per cent; the vendor's own programs stop there."""
LIT = {
    "nearest_limit_rad": (-1, 0.02, 0.0),
    "hottest_casing_c": (1, 75.0, 85.0),
    "hottest_winding_c": (1, 100.0, 120.0),
    "highest_torque_share": (1, 0.8, 1.0),
}
"""1: large is bad, -1: small is; past the second number yellow, past the third red (the safety table's)."""
TIER_STYLE = {"none": "green", "warn": "yellow"}


def status_table(look: dict[str, Any]) -> Table:
    """Everything that `RunView.look` says."""
    table = Table(show_header=False, title=_title(look["run"]), title_justify="left")
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    rows = (
        ("mode", _mode),
        ("tier", _tier),
        ("last events", _events),
        ("timing", _timing),
        ("link", _link),
        ("battery", _battery),
    )
    for name, cell in rows:
        table.add_row(name, cell(look))
    for name, values in look["joints"].items():
        table.add_row(name.replace("_", " "), _joints(name, values))
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
    return f"{rate}   lost {link['lost_percent']:g} %   {counts}   of {link['received']}"


def _battery(look: dict[str, Any]) -> Text:
    charge = look["battery_percent"]
    if charge is None:
        return Text("not published")
    return Text(f"{charge} %", "bold red" if charge < LOW_BATTERY else "")


def _joints(name: str, values: dict[str, float]) -> Text:
    """The joints that come first; lit where the first of them is near its limit or beyond."""
    shown = "  ".join(f"{joint.removesuffix('_joint')} {value:g}" for joint, value in values.items())
    if name not in LIT or not values:
        return Text(shown or "none")
    sign, near, beyond = LIT[name]
    first = sign * next(iter(values.values()))
    return Text(shown, "bold red" if first > sign * beyond else "yellow" if first > sign * near else "")


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
