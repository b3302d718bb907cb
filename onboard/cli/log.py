"""`onboard log`: look into rollout files, plot them, recover what a crash left."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import tyro
from rich.console import Console
from rich.table import Table

from onboard.cli.options import parse, write_json
from onboard.configs.errors import OnboardError, RolloutError
from onboard.logging.convert import convert
from onboard.logging.rollout import Rollout
from onboard.logging.summary import Spread, Summary, summarize

USAGE = """usage: onboard log {info,plot,recover} FILE [options]

  info     what a rollout or journal holds: length, end, losses, timing
  plot     one picture of a rollout
  recover  make the rollout file of a journal that no recorder converted

onboard log VERB --help explains one. Example: onboard log info rollouts/*.h5
"""


@dataclass(frozen=True)
class InfoArgs:
    """What a rollout or journal holds: when, how long, how it ended, what is missing, how well it kept time.

    Example: onboard log info rollouts/20260808T120000Z_g1_29dof_walk_none.h5
    """

    file: tyro.conf.Positional[Path]
    """Rollout (.h5) or journal."""
    json: str = ""
    """Write the same as JSON there; `-` is standard output."""
    unchecked: bool = False
    """Skip the checksum, for a file that was changed on purpose."""


@dataclass(frozen=True)
class PlotArgs:
    """One picture of a rollout: velocities, legs, torques, tilt, timing, modes and events.

    Example: onboard log plot rollouts/20260808T120000Z_g1_29dof_walk_none.h5
    """

    file: tyro.conf.Positional[Path]
    """Rollout (.h5) or journal."""
    out: Path | None = None
    """PNG to write; beside the rollout by default."""
    json: str = ""
    """Write the picture's path as JSON there; `-` is standard output."""


@dataclass(frozen=True)
class RecoverArgs:
    """Make the rollout file of a journal that was left over: killed recorder, power cut, full disk.

    Exit code 0: nothing is missing; 3: the rollout is there and says what is missing.
    Example: onboard log recover rollouts/20260808T120000Z_g1_29dof_walk_none.journal --out /mnt/disk
    """

    file: tyro.conf.Positional[Path]
    """The journal; it stays as it is."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the rollout; beside the journal by default."""
    json: str = ""
    """Write the result as JSON there; `-` is standard output."""


EXIT_WITH_LOSS = 3


def run(argv: list[str]) -> int:
    """Run one of the verbs."""
    verbs: dict[str, Callable[[list[str]], int]] = {"info": _info, "plot": _plot, "recover": _recover}
    verb = argv[0] if argv else ""
    if verb in verbs:
        return verbs[verb](argv[1:])
    (sys.stdout if verb in {"-h", "--help"} else sys.stderr).write(USAGE)
    return 0 if verb in {"-h", "--help"} else 2


def _info(argv: list[str]) -> int:
    args = parse(InfoArgs, "log info", InfoArgs.__doc__ or "", argv)
    with Rollout(args.file, check=not args.unchecked) as rollout:
        summary = summarize(rollout)
    if args.json:
        write_json(args.json, msgspec.to_builtins(summary))
    if args.json != "-":
        Console(highlight=False).print(summary_table(summary))
    return 0


def _plot(argv: list[str]) -> int:
    args = parse(PlotArgs, "log plot", PlotArgs.__doc__ or "", argv)
    try:
        from onboard.analysis.plots import plot_rollout
    except ModuleNotFoundError as error:
        raise OnboardError(
            f"plots need {error.name}; install it with: pip install 'onboard[analysis]'"
        ) from error
    out = plot_rollout(args.file, args.out or args.file.with_suffix(".png"))
    _result(args.json, {"plot": str(out)}, str(out))
    return 0


def _recover(argv: list[str]) -> int:
    args = parse(RecoverArgs, "log recover", RecoverArgs.__doc__ or "", argv)
    if args.out is not None:
        try:
            args.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RolloutError(
                f"--out {args.out}: can't be made ({error.strerror}); name a folder to write to"
            ) from error
    path = convert(args.file, args.out)
    with Rollout(path) as rollout:
        completeness, why = rollout.completeness, str(rollout.attributes["completeness_why"])
        rows, lost = len(rollout), int(rollout.attributes["rows_lost"])
    result = {"rollout": str(path), "completeness": completeness, "why": why, "rows": rows, "rows_lost": lost}
    _result(args.json, result, f"{path}: {rows} rows, {completeness}: {why}")
    return EXIT_WITH_LOSS if completeness == "truncated" else 0


def _result(json_path: str, result: dict[str, object], line: str) -> None:
    if json_path:
        write_json(json_path, result)
    if json_path != "-":
        sys.stdout.write(line + "\n")


def summary_table(summary: Summary) -> Table:
    """The summary for people."""
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
