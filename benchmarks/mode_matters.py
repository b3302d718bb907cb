"""`python -m benchmarks.mode_matters`: bench, fit and A/B of one weak robot, in every mode of the residual.

The simulated robot has 60 % of its gains on both legs and 10 ms command latency. With each policy's gains
it is recorded on the bench, the delta of its twelve leg joints is fitted together with the latency, and
the policy walks or dances with and without it. What the nominal robot does stands beside. docs/residual.md
says what to conclude.
"""

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from onboard.cli import ab, bench, fit
from onboard.cli.options import parse, say, write_json
from onboard.cli.run_options import Repeated

SHARED = Path(os.environ.get("ONBOARD_SHARED", Path(__file__).resolve().parents[2] / "shared"))
POLICIES = ("holosoma_loco_ppo", str(SHARED / "policies" / "beyondmimic_deploy_yaml"))
WEAK = {
    "legs": ("*_hip_*", "*_knee_*", "*_ankle_*"),
    "ankles": ("*_ankle_*",),
}
GAIN, LATENCY_MS = 0.6, 10.0
MODES = {
    "invert, through the gains": ("mode=invert", "through=gains"),
    "invert": ("mode=invert",),
    "add": ("mode=add",),
}


@dataclass(frozen=True)
class Args:
    """Mode matters: what `add` and `invert` of a fitted delta do on a weak robot."""

    policy: Repeated = ()
    """Policies to fly; a walker and a dance without a word."""
    weak: str = "legs"
    """Which joints are weak: legs or ankles."""
    blocks: int = 5
    """Of four episodes, as for onboard ab."""
    seconds: float = 10.0
    """Length of an episode."""
    out: Path | None = None
    """Folder for rollouts, residuals and reports; a temporary one without a word."""
    json: str = ""
    """Write the figures there; `-` is standard output."""


def main(argv: list[str]) -> int:
    """Run everything; 0 when the inverse was not worse than nothing and `add` was not kept."""
    args = parse(Args, "mode-matters", Args.__doc__ or "", argv)
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder)
        rows = [row for policy in args.policy or POLICIES for row in compare(policy, args, out)]
    table = Table("policy", "residual", "metric", "nominal", "keep", "drop", "failed", "verdict")
    for row in rows:
        failed = ", ".join(f"{count} {arm}" for arm, count in row["failed"].items())
        figures = ("-" if row[key] is None else f"{row[key]:.4f}" for key in ("nominal", "keep", "drop"))
        table.add_row(row["policy"], row["residual"], row["metric"], *figures, failed, row["verdict"])
    Console(file=sys.stderr).print(table)
    if args.json:
        write_json(args.json, {"rows": rows})
    forbidden = {label: "keep" if label == "add" else "drop" for label in MODES}
    return 0 if all(row["verdict"] != forbidden[row["residual"]] for row in rows) else 1


def compare(policy: str, args: Args, out: Path) -> list[dict[str, Any]]:
    """One policy: record, fit, fly nominally and in every mode."""
    name = Path(policy).stem
    residual = out / f"{name}_residual.yaml"
    say(f"{name}: bench and fit")
    gap = ["--sim-set", f"gap.gain={{{', '.join(f'{pattern!r}: {GAIN}' for pattern in WEAK[args.weak])}}}"]
    gap += ["--latency-ms", str(LATENCY_MS)]
    recorded = out / f"{name}_bench.json"
    _need(bench.run([args.weak, "--sim", "--like", policy, *gap, "--out", str(out), "--json", str(recorded)]))
    rollout = json.loads(recorded.read_text())["rollout"]
    _need(fit.run([rollout, "--kind", "linear", "--out", str(residual)]))
    nominal = _fly(policy, residual, (), [], args, out / f"{name}_nominal")
    rows = []
    for label, settings in MODES.items():
        say(f"{name}: {label}")
        result = _fly(policy, residual, settings, gap, args, out / f"{name}_{label.replace(', ', '_')}")
        for protocol, found in result["protocols"].items():
            metric = found["metrics"][0]
            ideal = nominal["protocols"][protocol]["metrics"][0]
            row = {"policy": f"{name} {protocol}", "residual": label, "metric": metric["metric"]}
            row |= {"nominal": ideal["drop"], "keep": metric["keep"], "drop": metric["drop"]}
            row |= {
                "failed": found["failed"],
                "verdict": found["verdict"],
                "ci_percent": metric["ci_percent"],
            }
            rows.append(row)
    return rows


def _fly(
    policy: str, residual: Path, settings: tuple[str, ...], gap: list[str], args: Args, out: Path
) -> dict[str, Any]:
    overrides = [part for setting in settings for part in ("--residual-set", setting)]
    options = ["--blocks", str(args.blocks), "--seconds", str(args.seconds), "--out", str(out)]
    protocol = [] if "mimic" in policy else ["--protocol", "slow"]
    result = out / "result.json"
    options += [*protocol, "--json", str(result)]
    _need(ab.run([policy, "--residual", str(residual), *overrides, *gap, *options]))
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def _need(code: int) -> None:
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
