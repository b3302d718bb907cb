"""The event table as text for the documentation, made from the same YAML that the gate obeys."""

import sys
from pathlib import Path

from onboard.configs.events import Event
from onboard.configs.safety import EventRule, SafetyConfig, load_safety

BEGIN = "<!-- events: written by `python -m onboard.safety.table docs/safety.md` -->"
END = "<!-- end of events -->"


def event_table(config: SafetyConfig) -> str:
    """One Markdown row an event: bit, name, condition, debounce, tier, whether a policy may tune it."""
    lines = ["| bit | event | condition | for | tier | policy may tune |", "|---|---|---|---|---|---|"]
    for event in Event:
        rule = config.events[event.name]
        tier = rule.tier if rule.latches or rule.tier == "none" else f"{rule.tier}, ends by itself"
        tunable = "yes" if rule.tunable else ""
        lines.append(
            f"| {event:d} | {event.name} | {_condition(rule)} | {_duration(rule)} | {tier} | {tunable} |"
        )
    return "\n".join(lines)


def _condition(rule: EventRule) -> str:
    when = rule.when.replace("|", "\\|")
    if rule.limit is None:
        return when
    sign = "<" if when.endswith("below") else ">"
    when = when.removesuffix(" below")
    window = f" within {rule.window_s:g} s" if rule.window_s is not None else ""
    return f"{when} {sign} {rule.limit:g}{' ' + rule.unit if rule.unit else ''}{window}"


def _duration(rule: EventRule) -> str:
    if rule.seconds is not None:
        return f"{rule.seconds:g} s"
    return "1 tick" if rule.ticks == 1 else f"{rule.ticks} ticks"


def with_table(text: str, table: str, begin_mark: str = BEGIN, end_mark: str = END) -> str:
    """`text` with what stands between the two marks replaced by `table`.

    Raises:
        ValueError: a mark is missing.
    """
    head, begin, rest = text.partition(begin_mark)
    _, end, tail = rest.partition(end_mark)
    if not begin or not end:
        raise ValueError(f"expected the lines {begin_mark!r} and {end_mark!r} around the table")
    return f"{head}{begin_mark}\n\n{table}\n\n{end_mark}{tail}"


def main(page: Path) -> None:
    """Bring the table in a Markdown file up to date."""
    text = page.read_text(encoding="utf-8")
    page.write_text(with_table(text, event_table(load_safety())), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
