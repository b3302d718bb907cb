"""`onboard log`: look into rollout files, plot and export them, recover what a crash left."""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from onboard.cli.options import parse, write_json
from onboard.configs.errors import OnboardError, RolloutError
from onboard.logging.convert import convert, count_rows, rollout_path
from onboard.logging.journal import claimed
from onboard.logging.rollout import Rollout

VERBS = {
    "info": "what rollouts hold: length, end, losses, timing; enough for a residual?",
    "plot": "one picture of a rollout",
    "replay": "rebuild observations and actions and compare; repeat the run in the simulator",
    "diagnose": "where the simulator and the robot part: by joint, time and contact phase",
    "export": "rollouts in the formats of trainers and viewers",
    "verify": "are rollouts what they claim: checksum, losses, clocks, gaps, models, replay",
    "recover": "make the rollout file of a journal that no recorder converted",
}

USAGE = """usage: onboard log VERB FILE... [options]

{verbs}

onboard log VERB --help explains one. Example: onboard log info rollouts/*.h5
"""


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
    verb = argv[0] if argv else ""
    own = {"plot": _plot, "recover": _recover}
    if verb in own:
        return own[verb](argv[1:])
    if verb in VERBS:
        code: int = importlib.import_module(f"onboard.cli.log_{verb}").run(argv[1:])
        return code
    asked = verb in {"-h", "--help"}
    text = USAGE.format(verbs="\n".join(f"  {name:<8} {about}" for name, about in VERBS.items()))
    (sys.stdout if asked else sys.stderr).write(text)
    return 0 if asked else 2


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
    with claimed(args.file):
        _keep_the_better(rollout_path(args.file, args.out), count_rows(args.file))
        path = convert(args.file, args.out)
    with Rollout(path) as rollout:
        completeness, why = rollout.completeness, str(rollout.attributes["completeness_why"])
        rows, lost = len(rollout), int(rollout.attributes["rows_lost"])
    result = {"rollout": str(path), "completeness": completeness, "why": why, "rows": rows, "rows_lost": lost}
    _result(args.json, result, f"{path}: {rows} rows, {completeness}: {why}")
    return EXIT_WITH_LOSS if completeness == "truncated" else 0


def _keep_the_better(target: Path, rows: int) -> None:
    """A rollout that was made while shared memory was still there is never replaced by a poorer one."""
    try:
        with Rollout(target) as rollout:
            there = len(rollout)
    except RolloutError:
        return  # missing, or damaged: nothing to lose
    if there > rows:
        raise RolloutError(
            f"{target}: there already, with {there} rows where {rows} are left; remove it, or give --out"
        )


def _result(json_path: str, result: dict[str, object], line: str) -> None:
    if json_path:
        write_json(json_path, result)
    if json_path != "-":
        sys.stdout.write(line + "\n")
