"""`onboard log info`: what rollouts hold, and whether they are enough for a residual."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro
from rich.console import Console
from rich.table import Table

from onboard.cli.options import parse, write_json
from onboard.configs.errors import ConfigError
from onboard.logging.rollout import Check, Rollout
from onboard.logging.sufficiency import Sufficiency, is_enough
from onboard.logging.summary import Spread, Summary, summarize

CHECKED_BYTES = 1 << 30
"""Sets up to this size have their checksums compared: about three hours of rollouts."""


@dataclass(frozen=True)
class InfoArgs:
    """What rollouts or journals hold: when, how long, how they ended, what is missing, how they kept time.

    Says too whether they are enough to fit a residual: 10 * d_out * d_hidden / (1 - p_contact) samples.

    Example: onboard log info rollouts/*.h5 --d-out 4 --d-hidden 128
    """

    files: tyro.conf.Positional[tuple[Path, ...]]
    """Rollouts (.h5) or journals."""
    json: str = ""
    """Write the same as JSON there; `-` is standard output."""
    unchecked: bool = False
    """Skip the checksums, for files that were changed on purpose."""
    d_out: int = 4
    """Joints that the residual corrects; the four ankle joints by default."""
    d_hidden: int = 128
    """Width of the residual's hidden layers."""
    p_contact: Annotated[float | None, tyro.conf.arg(metavar="SHARE")] = None
    """Share of the time that a foot is on the ground; as recorded by default."""


def run(argv: list[str]) -> int:
    """Run the verb."""
    args = parse(InfoArgs, "log info", InfoArgs.__doc__ or "", argv)
    _check(args)
    check = _how_to_check(args)
    summaries = []
    for path in args.files:
        with Rollout(path, check=check) as rollout:
            summaries.append(summarize(rollout))
    enough = is_enough(summaries, args.d_out, args.d_hidden, args.p_contact)
    if args.json:
        write_json(args.json, as_json(summaries, enough))
    if args.json != "-":
        table = one_table(summaries[0]) if len(summaries) == 1 else many_table(summaries)
        console = Console(highlight=False)
        console.print(table)
        console.print(fit_line(enough))
        if check == "size":
            console.print("checksums: not compared, as the files are large; onboard log verify does")
    return 0


def as_json(summaries: Sequence[Summary], enough: Sufficiency) -> dict[str, Any]:
    """One file: its summary and `sufficiency`; several: `files`, `total` and `sufficiency`."""
    sufficiency = {"sufficiency": msgspec.to_builtins(enough)}
    files = [msgspec.to_builtins(summary) for summary in summaries]
    if len(files) == 1:
        return {**files[0], **sufficiency}
    totals = ("rows", "rows_lost", "seconds", "policy_rows", "valid_transitions", "skipped_ticks")
    total = {name: sum(file[name] for file in files) for name in totals}
    return {"files": files, "total": total, **sufficiency}


def one_table(summary: Summary) -> Table:
    """One rollout for people, everything that there is to say."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    rate = "unknown" if summary.rate_hz is None else f"{summary.rate_hz:.3f} Hz"
    rows = [
        ("file", summary.file),
        (
            "run",
            f"{', '.join(summary.policies) or 'no policy'} on {summary.robot}, started {summary.started_utc}",
        ),
        ("note", summary.note),
        ("length", f"{summary.seconds:.2f} s, {summary.rows} rows, {summary.policy_rows} under a policy"),
        ("complete", f"{summary.completeness}: {summary.completeness_why}"),
        ("end", summary.end_reason),
        ("modes", _seconds(summary.modes)),
        ("arms", _seconds({name: s for name, s in summary.arms.items() if name != "none"})),
        ("events", _rows(summary.events) or "none"),
        ("safety flag", _rows(summary.flags)),
        ("marks", str(summary.marks) if summary.marks else ""),
        ("rate", f"{rate}, {summary.skipped_ticks} ticks skipped"),
        ("tick", _spread(summary.tick_us, "µs")),
        ("wake-up", _spread(summary.wake_late_us, "µs late")),
        ("state age", _spread(summary.state_age_ms, "ms")),
        ("lost", f"{summary.rows_lost} rows; {summary.unpublished} commands never went out"),
        ("transitions", f"{summary.valid_transitions} of {max(0, summary.rows - 1)} pairs are valid"),
        ("full rate", f"{summary.lowstate_samples} samples" if summary.lowstate_samples else ""),
        ("recorder", ", ".join(f"{name} {value}" for name, value in summary.facts.items() if value)),
    ]
    for name, text in rows:
        if text:
            table.add_row(name, text)
    return table


def many_table(summaries: Sequence[Summary]) -> Table:
    """Several rollouts for people, a line each."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True, footer_style="bold")
    table.add_column("file", footer=f"{len(summaries)} files", overflow="fold")
    table.add_column("policy")
    table.add_column("length", justify="right", footer=_duration(sum(s.seconds for s in summaries)))
    table.add_column("rows", justify="right", footer=str(sum(s.rows for s in summaries)))
    table.add_column("valid", justify="right", footer=str(sum(s.valid_transitions for s in summaries)))
    table.add_column("lost", justify="right", footer=str(sum(s.rows_lost for s in summaries)))
    table.add_column("complete")
    table.add_column("events")
    for summary in summaries:
        table.add_row(
            Path(summary.file).name,
            ", ".join(summary.policies) or "none",
            _duration(summary.seconds),
            str(summary.rows),
            str(summary.valid_transitions),
            str(summary.rows_lost),
            summary.completeness,
            ", ".join(summary.events) or "none",
        )
    return table


def fit_line(enough: Sufficiency) -> str:
    """Whether the samples are enough, as a sentence."""
    size = f"a residual of {enough.d_out} outputs and {enough.d_hidden} hidden units"
    feet = {
        "given": f"feet on the ground {enough.p_contact:.0%} of the time, as given",
        "recorded": f"feet on the ground {enough.p_contact:.0%} of the time",
        "unknown": "contact was not recorded, so at least",
    }[enough.p_contact_from]
    if enough.needed is None or enough.recommended is None:
        return f"fit: {enough.samples} samples, in none of which a foot is off the ground; {size} needs both"
    low, high = enough.recommended
    verdict = {
        "none": f"not enough, record {_duration(enough.missing_s or 0.0)} more",
        "least": "just enough",
        "recommended": "enough",
    }[enough.verdict]
    return (
        f"fit: {enough.samples} samples; {size} needs {enough.needed} ({feet}), {low} to {high} are "
        f"recommended: {verdict}"
    )


def _how_to_check(args: InfoArgs) -> Check:
    """Checksums read every byte, at the speed of the disk where nothing of the file is in memory."""
    if args.unchecked:
        return False
    size = sum(path.stat().st_size for path in args.files if path.is_file())
    return True if size <= CHECKED_BYTES else "size"


def _check(args: InfoArgs) -> None:
    if not args.files:
        raise ConfigError("no file to look into; name one or more rollouts")
    for name, value in (("--d-out", args.d_out), ("--d-hidden", args.d_hidden)):
        if value < 1:
            raise ConfigError(f"{name} {value}: a residual has at least 1")
    if args.p_contact is not None and not 0 <= args.p_contact <= 1:
        raise ConfigError(f"--p-contact {args.p_contact:g}: a share lies between 0 and 1")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def _seconds(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in parts.items())


def _rows(parts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count} rows" for name, count in parts.items())


def _spread(spread: Spread | None, unit: str) -> str:
    if spread is None:
        return ""
    names = ("p50", "p99", "p999", "max")
    values = (
        f"{label} {getattr(spread, name):.2f}"
        for label, name in zip(("p50", "p99", "p99.9", "max"), names, strict=True)
    )
    return f"{', '.join(values)} {unit}"
