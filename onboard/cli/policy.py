"""`onboard policy show|check|export`: what a policy expects, whether its contract is right, and our form."""

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from onboard.cli.options import parse, write_json
from onboard.configs.robot import load_robot
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.describe import describe
from onboard.policies.export import export_policy
from onboard.policies.fingerprint import check_fingerprint
from onboard.policies.golden import check_golden
from onboard.policies.plausible import check_plausible

EPILOG = """Look at a policy before it moves a robot.

examples:
  onboard policy show holosoma_loco_ppo
  onboard policy check holosoma_loco_ppo --golden vectors.npz
  onboard policy check my_policy.onnx --preset falcon --set rate_hz=50
  onboard policy export my_policy.onnx --preset falcon --out my_policy"""


@dataclass(frozen=True)
class Common:
    """Which policy."""

    policy: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="POLICY")]
    """Folder, ONNX file, or a shipped name."""
    preset: str | None = None
    """Preset for files that do not say enough themselves."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """key=value of the contract, dotted keys; may be given several times."""
    format: str | None = None
    """Read the bundle as this format, whatever else is in it."""
    robot: str = "g1_29dof"
    """Shipped robot description, or a YAML path."""
    json: str | None = None
    """Write the result there as JSON; - is standard output."""


@dataclass(frozen=True)
class Show(Common):
    """Every slice of the input, outputs, gains, and what was filled in."""


@dataclass(frozen=True)
class Check(Common):
    """Compare with golden vectors; without any, check output, first target, and what training left behind."""

    golden: Path | None = None
    """Golden vectors, an .npz."""


@dataclass(frozen=True)
class Export(Common):
    """Write it as a folder of our own: contract.yaml, documented and complete, and the models beside it."""

    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = tyro.MISSING
    """New folder."""


@tyro.conf.configure(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
@dataclass(frozen=True)
class Args:
    """What to do."""

    action: Show | Check | Export


def run(argv: list[str]) -> int:
    """Run the verb; 0 when it did what it says and found nothing wrong."""
    args = parse(Args, "policy", EPILOG, argv).action
    robot = load_robot(args.robot)
    # Nothing moves here: what the simulator knows may stand in for what the robot can't measure.
    bundle = load_policy(
        args.policy, robot, args.preset, args.set, provider="simulator_truth", format_name=args.format
    )
    if isinstance(args, Export):
        return _export(args, bundle)
    return _check(args, bundle) if isinstance(args, Check) else _show(args, bundle)


def _show(args: Show, bundle: PolicyBundle) -> int:
    facts = describe(bundle)
    if args.json is not None:
        write_json(args.json, facts)
    if args.json != "-":
        _print(facts)
    return 0


def _check(args: Check, bundle: PolicyBundle) -> int:
    robot = bundle.robot
    facts: dict[str, Any] = {"policy": bundle.name}
    if args.golden is not None:
        facts |= dataclasses.asdict(check_golden(bundle, robot, args.golden))
    else:
        facts |= _check_without_vectors(bundle)
    facts["defaults"] = list(bundle.defaults)
    if args.json is not None:
        write_json(args.json, {key: _finite(value) for key, value in facts.items()})
    if args.json != "-":
        console = Console(highlight=False)
        for key, value in facts.items():
            if key not in ("findings", "defaults"):
                console.print(f"{key}: {value:.3g}" if isinstance(value, float) else f"{key}: {value}")
        for line in (*facts["findings"], *(f"note: {text}" for text in bundle.defaults)):
            console.print(line, markup=False)
        if args.golden is None:
            console.print(_blind_spots(facts["fingerprint_inputs"]), markup=False)
    return 0 if facts["ok"] else 1


def _check_without_vectors(bundle: PolicyBundle) -> dict[str, Any]:
    plausible, fingerprint = check_plausible(bundle, bundle.robot), check_fingerprint(bundle)
    facts = dataclasses.asdict(plausible) | {"fingerprint_inputs": fingerprint.inputs}
    return facts | {
        "findings": (*plausible.findings, *fingerprint.findings),
        "ok": plausible.ok and fingerprint.ok,
    }


def _blind_spots(inputs: tuple[str, ...]) -> str:
    """What this check could not look at."""
    if not inputs:
        return (
            "note: no normaliser to compare with: joint order, scales, signs and history can't be checked "
            "without golden vectors (--golden)"
        )
    return (
        f"note: compared with the normaliser of {', '.join(inputs)}; what only golden vectors can show: "
        "docs/policies/README.md"
    )


def _export(args: Export, bundle: PolicyBundle) -> int:
    path = export_policy(bundle, args.out)
    if args.json is not None:
        write_json(args.json, {"policy": bundle.name, "contract": str(path)})
    if args.json != "-":
        Console(highlight=False).print(f"{path}", markup=False)
    return 0


def _finite(value: object) -> object:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print(facts: dict[str, Any]) -> None:
    console = Console(highlight=False)
    preset = f", preset {facts['preset']}" if facts["preset"] else ""
    console.print(f"[bold]{facts['name']}[/] at {facts['rate_hz']:g} Hz, read as {facts['format']}{preset}")
    for path, digest in facts["models"].items():
        console.print(f"{path}  sha256 {digest[:16]}…", markup=False)
    console.print(_inputs(facts["inputs"]))
    console.print(_outputs(facts["outputs"]))
    console.print(_joints(facts["joints"]))
    for text in facts["defaults"]:
        console.print(f"filled in: {text}", markup=False)


def _inputs(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "input", "slice", "term", "scale", "age in ticks", "elements", title="inputs", box=box.SIMPLE
    )
    for row in rows:
        last = row["start"] + row["width"]
        slices = f"{row['start']}:{last}" + (f" +{row['stride']}…" if row.get("stride") else "")
        elements = row.get("elements", [])
        names = f"{elements[0]} … {elements[-1]}" if len(elements) > 3 else " ".join(elements)
        ages = row.get("ages", [0])
        shown = (
            f"{ages[0]}…{ages[-1]}, {row['fill']}" if len(ages) > 1 else str(ages[0] - row.get("ahead", 0))
        )
        scale = row.get("scale", "")
        text = f"{scale:g}" if isinstance(scale, float) else "per element" if scale else ""
        table.add_row(row["input"], slices, row["term"], text, shown, names.replace("_joint", ""))
    return table


def _outputs(rows: list[dict[str, Any]]) -> Table:
    table = Table("graph", "output", "width", "use", title="outputs", box=box.SIMPLE)
    for row in rows:
        table.add_row(row["graph"], row["output"], str(row["width"]), ", ".join(row["use"]))
    return table


def _joints(rows: list[dict[str, Any]]) -> Table:
    """One line a joint; poses that are the default pose everywhere are left out."""
    keys = ["kp", "kd", "default_rad"]
    keys += [key for key in ("start_rad", "hold_rad") if any(row[key] != row["default_rad"] for row in rows)]
    table = Table(title="joints", box=box.SIMPLE)
    table.add_column("joint", no_wrap=True)
    for name in ("driven by", "scale", "base", *(key.removesuffix("_rad") for key in keys)):
        table.add_column(name)
    for row in rows:
        driven = f"{row['driven_by']}[{row['element']}]" if row["driven_by"] else "-"
        scale = f"{row['scale']:.4g}" if row["scale"] is not None else ""
        numbers = [f"{row[key]:.4g}" for key in keys]
        table.add_row(row["joint"].removesuffix("_joint"), driven, scale, str(row["base"]), *numbers)
    return table
