"""`onboard log export`: rollouts in the formats of trainers and viewers."""

import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tyro

from onboard.cli.options import parse, say, write_json
from onboard.configs.errors import ConfigError
from onboard.configs.events import Mode
from onboard.logging.export.asap import Kind
from onboard.logging.export.beyondmimic import Order
from onboard.logging.export.clips import Cut
from onboard.logging.export.formats import ABOUT, Exported, Name, Wish, export
from onboard.logging.preprocess.clock import align
from onboard.logging.preprocess.contact import label_contact
from onboard.logging.preprocess.latency import log_latency, shift_commands
from onboard.logging.preprocess.outliers import reject_outliers
from onboard.logging.preprocess.pipeline import Step

STEPS = {"align": align, "outliers": reject_outliers, "latency": log_latency, "contact": label_contact}


@dataclass(frozen=True)
class ExportArgs:
    """Rollouts in the formats of trainers and viewers.

    Unbroken stretches are written, never across a gap, a reset or an unsafe stretch; what a rollout does
    not hold (a pose in the world, say) is marked as missing.

    Example: onboard log export rollouts/*.h5 --format asap --out motions.pkl
    """

    files: tyro.conf.Positional[tuple[Path, ...]]
    """Rollouts (.h5) or journals."""
    format: Name
    """Format to write; see above."""
    out: Annotated[Path, tyro.conf.arg(metavar="PATH")]
    """File to write, or a folder where there are several; made where it is missing."""
    modes: tuple[Literal["ramp", "hold", "policy"], ...] = ()
    """Modes to take; what ran under a policy by default, everything where no policy ran."""
    min_s: float = 1.0
    """Leave shorter stretches out."""
    steps: tuple[Literal["align", "outliers", "latency", "contact"], ...] = ()
    """Preprocessing in this order: align to a uniform robot clock, replace outliers, measure the latency
    (changes nothing), label contact. What each did stands in the files and in --json."""
    shift_s: float = 0.0
    """Put every command this much later, to the row in which it took effect; after the steps."""
    action: Kind = "raw"
    """asap: the network's raw output, or what was sent in units of ASAP's action."""
    order: Order = "isaac"
    """beyondmimic: order of joints and bodies, isaac for BeyondMimic, mjcf for mjlab."""
    unchecked: bool = False
    """Skip the checksums, for files that were changed on purpose."""
    json: str = ""
    """Write what was written as JSON there; `-` is standard output."""


def run(argv: list[str]) -> int:
    """Run the verb."""
    formats = "\n\n".join(f"{name}: {about}." for name, about in ABOUT.items())
    args = parse(ExportArgs, "log export", f"{inspect.getdoc(ExportArgs)}\n\n{formats}", argv)
    if not args.files:
        raise ConfigError("no file to export; name one or more rollouts")
    modes = tuple(Mode[name.upper()] for name in args.modes) or None
    steps = [Step(STEPS[name]) for name in args.steps]
    if args.shift_s:
        steps.append(Step(shift_commands, {"by_s": args.shift_s}))
    wish = Wish(Cut(modes, args.min_s, steps), args.action, args.order, not args.unchecked)
    made = export(args.files, args.format, args.out, wish)
    if args.json:
        write_json(args.json, msgspec.to_builtins(made))
    if args.json != "-":
        _tell(made)
    return 0


def _tell(made: Exported) -> None:
    what = "rollouts" if made.format in ("mcap", "parquet") else "stretches"
    sys.stdout.write(f"{made.format}: {made.stretches} {what}, {made.rows} rows\n")
    sys.stdout.writelines(f"{file}\n" for file in made.files)
    for name, done in made.preprocessing.items():
        for facts in done:
            sys.stdout.write(f"{name}: {facts['step']}: {_plain(facts)}\n")
    if made.missing:
        say(f"not in the rollouts, marked as missing (NaN or left out): {', '.join(made.missing)}")


def _plain(facts: dict[str, Any]) -> str:
    """The single numbers of an account; lists are for the files and --json."""
    numbers = {key: value for key, value in facts.items() if isinstance(value, (int, float))}
    return ", ".join(f"{key} {value:.4g}" for key, value in numbers.items()) or "nothing to tell"
