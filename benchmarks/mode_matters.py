"""`make mode-matters`: bench, fit and A/B of weak robots, in every mode of the residual.

The simulated robot has 60 % of its gains, on both legs or on the ankles alone, and 10 ms command latency.
With each policy's gains it is recorded on the bench, the delta of the weak joints is fitted together with
the latency, and the policy walks or dances with and without it, from the same disturbed starts. What the
nominal robot does stands beside. docs/residual.md says what to conclude.

Simulations in lock-step repeat exactly, so the episodes without the residual are flown once and compared
with every mode; `onboard ab` flies them anew for each and comes to the same figures.
"""

import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from onboard.analysis.ab.experiment import ProtocolResult, experiment_json, judge_protocols
from onboard.analysis.ab.metrics import make_subject
from onboard.analysis.ab.report import write_report
from onboard.analysis.ab.schedule import ArmName, make_schedule
from onboard.analysis.ab.scores import Score
from onboard.cli import bench, fit
from onboard.cli.ab_flights import fly
from onboard.cli.ab_protocols import choose_protocols
from onboard.cli.options import parse, say, write_json
from onboard.cli.run_options import Repeated, run_config
from onboard.runtime.assembly import make_plan

SHARED = Path(os.environ.get("ONBOARD_SHARED", Path(__file__).resolve().parents[2] / "shared"))
POLICIES = ("holosoma_loco_ppo", str(SHARED / "policies" / "beyondmimic_deploy_yaml"))
WEAK = {
    "legs": ("*_hip_*", "*_knee_*", "*_ankle_*"),
    "ankles": ("*_ankle_*",),
}
GAIN, LATENCY_S = 0.6, 0.01
GAINS = "invert, through the gains"
MODES = {
    GAINS: ("mode=invert", "through=gains"),
    "invert": ("mode=invert",),
    "add": ("mode=add",),
}
FORBIDDEN = {GAINS: "drop", "invert": "drop", "add": "keep"}
NEAR_NOMINAL = 0.15
"""How much worse than the nominal robot the inverse on weak legs may track."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Args:
    """Mode matters: what `add` and `invert` of a fitted delta do on a weak robot."""

    policy: Repeated = ()
    """Policies to fly; a walker and a dance without a word."""
    weak: Repeated = ()
    """Which joints are weak: legs or ankles; one after the other without a word."""
    blocks: int = 5
    """Of four episodes, as for onboard ab: 5 are 10 episodes an arm."""
    seconds: float = 10.0
    """Length of an episode."""
    seed: int = 0
    """Of the schedule and the disturbed starts."""
    out: Path | None = None
    """Folder for rollouts, residuals and a report of every comparison; a temporary one without a word."""
    json: str = ""
    """Write the figures there; `-` is standard output."""


def main(argv: list[str]) -> int:
    """Run everything; 0 when each mode did what it should."""
    args = parse(Args, "mode-matters", Args.__doc__ or "", argv)
    policies = args.policy or POLICIES
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(len(policies)) as workers:
        out = args.out or Path(folder)
        rows = [row for each in workers.map(partial(compare, args=args, out=out), policies) for row in each]
    failed = [
        f"{row['policy']}, {row['weak']}, {row['residual']}: {why}" for row in rows for why in misses(row)
    ]
    if args.json:
        write_json(args.json, {"ok": not failed, "misses": failed, "rows": rows})
    show(rows)
    for line in failed:
        say(f"NOT as expected: {line}")
    return 1 if failed else 0


def compare(policy: str, args: Args, out: Path) -> list[Row]:
    """One policy: fly it on the nominal robot; record, fit and fly every weak one in every mode."""
    nominal = Flights(policy, args, "", ())
    ideal = nominal.fly("drop", ())
    return [row for weak in args.weak or WEAK for row in _weak(policy, weak, args, out, ideal)]


def misses(row: Row) -> list[str]:
    """What a row should have been, and was not."""
    found = []
    if row["verdict"] == FORBIDDEN[row["residual"]]:
        found.append(f"verdict {row['verdict']}")
    if row["weak"] == "legs":
        if not row["failed"]["drop"]:
            found.append("no episode without the residual failed")
        if row["residual"] == "add" and not row["failed"]["keep"]:
            found.append("no episode with it failed")
        if row["residual"] == GAINS and row["failed"]["keep"]:
            found.append(f"{row['failed']['keep']} episodes failed")
        if row["residual"] == GAINS and row["keep"] > (1 + NEAR_NOMINAL) * row["nominal"]:
            found.append(f"error {row['keep']:.4f} is far from the nominal {row['nominal']:.4f}")
    return found


def show(rows: list[Row]) -> None:
    """The table, as it stands in the docs."""
    table = Table("policy", "weak", "residual", "nominal", "with it", "without", "failed with, without")
    table.add_column("change %")
    table.add_column("verdict")
    for row in rows:
        figures = (_number(row[key], ".4f") for key in ("nominal", "keep", "drop"))
        failed, of = row["failed"], row["episodes"] // 2
        low, high = (_number(value, "+.0f") for value in row["ci_percent"])
        change = f"{_number(row['change_percent'], '+.0f')} ({low} to {high})"
        failures = f"{failed['keep']}, {failed['drop']} of {of}"
        table.add_row(row["policy"], row["weak"], row["residual"], *figures, failures, change, row["verdict"])
    Console(file=sys.stderr, width=160).print(table)


class Flights:
    """Flies one policy on one robot, in any arm and mode.

    Args:
        policy: path or shipped name.
        args: length, number and seed of the episodes.
        residual: path; "" for none.
        sim: what differs from the nominal robot.
    """

    def __init__(self, policy: str, args: Args, residual: str, sim: tuple[str, ...]) -> None:
        self._policy, self._args, self._residual, self._sim = policy, args, residual, sim

    def fly(self, arm: ArmName, settings: tuple[str, ...]) -> list[Score]:
        """All episodes of an arm; `settings` are key=value of the residual."""
        args = self._args
        config = run_config(
            policy=self._policy,
            residual=self._residual,
            residual_overrides=settings,
            arm=arm,
            gantry=True,
            provider="simulator_truth",
        )
        plan = make_plan(config)
        subject = make_subject(plan.bundle, plan.robot)
        names = ("slow",) if plan.bundle.motion_seconds is None else ("motion",)
        ((name, script),) = choose_protocols(names, plan, args.seconds).items()
        slots = [slot for slot in make_schedule(args.blocks, args.seed) if slot.arm == arm]
        return [
            fly(plan, name, script, slot, self._sim, subject, lambda seconds: None).score for slot in slots
        ]

    def judge(self, scores: list[Score]) -> ProtocolResult:
        """By the policy's own metric."""
        plan = make_plan(run_config(policy=self._policy, gantry=True, provider="simulator_truth"))
        (result,) = judge_protocols(scores, make_subject(plan.bundle, plan.robot).primary, self._args.seed)
        return result


def _weak(policy: str, weak: str, args: Args, out: Path, ideal: list[Score]) -> list[Row]:
    """One weak robot."""
    name = f"{Path(policy).stem}_{weak}"
    sim = (
        f"gap.gain={{{', '.join(f'{pattern!r}: {GAIN}' for pattern in WEAK[weak])}}}",
        f"gap.command_latency_s={{'*': {LATENCY_S}}}",
    )
    say(f"{name}: bench and fit")
    residual = _fitted(policy, weak, sim, out / name)
    flights = Flights(policy, args, str(residual), sim)
    dropped = flights.fly("drop", ())
    rows = []
    for label, settings in MODES.items():
        say(f"{name}: {label}")
        result = flights.judge([*flights.fly("keep", settings), *dropped])
        folder = out / name / label.replace(", ", "_").replace(" ", "_")
        facts = {"policy": policy, "residual": str(residual), "settings": settings, "sim": sim}
        write_report([result], facts, [], folder)
        rows.append(_row(policy, weak, label, result, ideal))
    return rows


def _fitted(policy: str, weak: str, sim: tuple[str, ...], out: Path) -> Path:
    """Record the weak robot on the bench with the policy's gains, and fit its delta; the residual file."""
    out.mkdir(parents=True, exist_ok=True)
    recorded, residual = out / "bench.json", out / "residual.yaml"
    gap = [part for each in sim for part in ("--sim-set", each)]
    _need(bench.run([weak, "--sim", "--like", policy, *gap, "--out", str(out), "--json", str(recorded)]))
    rollout = json.loads(recorded.read_text())["rollout"]
    _need(fit.run([rollout, "--kind", "linear", "--out", str(residual)]))
    return residual


def _row(policy: str, weak: str, label: str, result: ProtocolResult, ideal: list[Score]) -> Row:
    found = experiment_json([result])["protocols"][result.name]
    metric = found["metrics"][0]
    values = [score.metrics[metric["metric"]] for score in ideal if not score.failed]
    return {
        "policy": Path(policy).stem,
        "protocol": result.name,
        "weak": weak,
        "residual": label,
        "metric": metric["metric"],
        "nominal": sum(values) / len(values) if values else None,
        "nominal_failed": len(ideal) - len(values),
        **{key: metric[key] for key in ("keep", "drop", "change_percent", "ci_percent")},
        "episodes": found["episodes"],
        "failed": found["failed"],
        "aborted": found["aborted"],
        "verdict": found["verdict"],
        "why": found["why"],
    }


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _need(code: int) -> None:
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
