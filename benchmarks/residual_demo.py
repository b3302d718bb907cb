"""`make residual-demo`: record a weak, late robot on the bench, fit the delta, judge it on other signals.

The simulated robot hangs; all its gains are 60 % and its commands take effect 20 ms late. Two protocols
move four joints of its left leg. The nominal simulator is fitted to the first, and judged on the second.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from onboard.analysis.fit.fit import Explained, Fit, Wish, fit, gather
from onboard.analysis.fit.plot import plot_fit
from onboard.analysis.fit.report import KindReport, headline, report, residual
from onboard.analysis.fit.stepwise import step_by_step
from onboard.cli.bench import Args as BenchArgs
from onboard.cli.bench import bench_config, bench_script
from onboard.cli.options import parse, say, write_json
from onboard.cli.recorded_trial import RecordedTrial
from onboard.cli.run_options import gap_overrides
from onboard.configs.bench import load_bench
from onboard.configs.robot import load_robot
from onboard.policies.residual.files import write_residual
from onboard.runtime.assembly import make_plan

PROTOCOLS = ("left_leg", "left_leg_heldout")
GAIN, LATENCY_MS = 0.6, 20.0
SOFT = (
    "kp.*_hip_*=60.0",
    "kp.*_knee_joint=60.0",
    "kp.*_ankle_*=12.0",
    "kd.*_hip_*=2.0",
    "kd.*_knee_joint=2.0",
    "kd.*_ankle_*=0.2",
)
"""Gains so soft that a joint's error tells its gain: of a stiff, light ankle only its lag can be seen."""

BEFORE_DEG = (6.0, 11.0)
AFTER_DEG = 1.0
HELDOUT_RATIO = 0.25
FIT_S = 15.0


@dataclass(frozen=True)
class Args:
    """Bench, fit, held-out test on a simulated robot with gains x 0.6 and 20 ms command latency."""

    out: Path | None = None
    """Folder for rollouts, residual and plots; a temporary one by default."""
    json: str = ""
    """Write the figures as JSON there; `-` is standard output."""


def main(argv: list[str]) -> int:
    """Run the demo; 0 when every figure is where it should be."""
    args = parse(Args, "residual-demo", Args.__doc__ or "", argv)
    with tempfile.TemporaryDirectory() as temporary:
        out = args.out or Path(temporary)
        out.mkdir(parents=True, exist_ok=True)
        logs = [record(protocol, out) for protocol in PROTOCOLS]
        result, fitted = fit_logs(logs, out)
    if args.json:
        write_json(args.json, result)
    if args.json != "-":
        show(result, fitted)
    return 0 if result["ok"] else 1


def record(protocol: str, out: Path) -> Path:
    """Play one protocol on the simulated robot; the rollout."""
    say(f"bench {protocol}: gains x {GAIN}, latency {LATENCY_MS:g} ms")
    asked = load_bench(protocol, list(SOFT))
    plan = make_plan(bench_config(BenchArgs(protocol, out=str(out)), asked))
    overrides = gap_overrides(GAIN, LATENCY_MS, 0.0)
    trial = RecordedTrial(plan, bench_script(asked), overrides, out, hanging=True)
    return Path(trial.run(lambda seconds: None)["rollout"])


def fit_logs(logs: list[Path], out: Path) -> tuple[dict[str, Any], dict[str, KindReport]]:
    """Fit to the first log, hold the second out; the figures, and the reports by kind of fit."""
    robot = load_robot("g1_29dof")
    wish = Wish(tuple(logs[:1]), tuple(logs[1:]))
    data = gather(wish, robot)
    found = fit(data, wish, robot, say)
    say("step by step, for comparison")
    steps = step_by_step(found)
    figures = report(found, robot).explanations
    figures["step by step"] = report(Fit(data, found.model, found.columns, (steps,)), robot).explanations[
        "linear"
    ]
    delta = residual(found, robot, "left_leg")
    if delta is not None:
        write_residual(delta, out / "left_leg.yaml")
    for explained in found.explained:
        plot_fit(found, explained, robot, out / f"left_leg_{explained.kind}.png")
    return _result(figures, steps), figures


def _result(figures: dict[str, KindReport], steps: Explained) -> dict[str, Any]:
    linear = figures["linear"]
    ratio = linear.heldout_after_deg / linear.heldout_before_deg
    checks = {
        "before": BEFORE_DEG[0] < linear.before_deg < BEFORE_DEG[1],
        "after": linear.after_deg < AFTER_DEG,
        "heldout": ratio < HELDOUT_RATIO,
        "negative": all(values["a"] < 0 for values in linear.coefficients.values()),
        "in_time": linear.fit_s < FIT_S,
        "step_by_step_is_worse": steps.held_out.after_deg > linear.heldout_after_deg,
    }
    return {
        "ok": all(checks.values()),
        "before_deg": linear.before_deg,
        "after_deg": linear.after_deg,
        "heldout_before_deg": linear.heldout_before_deg,
        "heldout_after_deg": linear.heldout_after_deg,
        "coefficients": linear.coefficients,
        "latency_s": linear.latency_s,
        "fit_s": linear.fit_s,
        "physical": {
            "after_deg": figures["physical"].after_deg,
            "heldout_after_deg": figures["physical"].heldout_after_deg,
            "latency_s": figures["physical"].latency_s,
            "coefficients": figures["physical"].coefficients,
        },
        "step_by_step": {
            "after_deg": steps.fitted.after_deg,
            "heldout_after_deg": steps.held_out.after_deg,
            "coefficients": figures["step by step"].coefficients,
        },
        "checks": checks,
    }


def show(result: dict[str, Any], figures: dict[str, KindReport]) -> None:
    """Tables and lines for people."""
    linear, steps = figures["linear"].coefficients, figures["step by step"].coefficients
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("joint", "a", "b (s)", "gain found", "a, step by step"):
        table.add_column(name, justify="left" if name == "joint" else "right")
    for joint, values in linear.items():
        gain = figures["physical"].coefficients[joint]["gain"]
        row = (values["a"], values["b"], gain, steps[joint]["a"])
        table.add_row(joint, *(f"{value:.3f}" for value in row))
    Console(highlight=False).print(table)
    sys.stdout.writelines(f"{headline(name, each)}\n" for name, each in figures.items())
    failed = [name for name, passed in result["checks"].items() if not passed]
    verdict = f"NOT as expected: {', '.join(failed)}" if failed else "as expected"
    sys.stdout.write(f"fit in {result['fit_s']:.1f} s; {verdict}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
