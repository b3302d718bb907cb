"""What healthy robots show in a probe, how far that is from the bounds: `python -m benchmarks.probes`.

Each simulated robot differs from the nominal one as healthy robots differ from each other: every joint's
torque by up to 5 %, dry friction up to 2 % of its torque limit, play up to 5 mrad, all commands late by up
to 15 ms, up to 0.3 kg more in each forearm. Flown in lock-step; the spread over robots and joints is shown
beside the bounds of `onboard check`.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.latency import ROBOT
from onboard.cli.recorded_trial import RecordedTrial
from onboard.cli.run_options import run_config
from onboard.configs.robot import RobotConfig, load_robot
from onboard.runtime.assembly import make_plan
from onboard.runtime.preflight import robot as judges
from onboard.runtime.preflight.gantry import Flown, GantryChecks
from onboard.runtime.preflight.probe import probe_protocol, probe_script
from onboard.runtime.preflight.report import Row, Verdict, run_checks

GAIN, FRICTION, PLAY_RAD, LATENCY_S, LOAD_KG = 0.05, 0.02, 0.005, 0.015, 0.3
FIGURES = {
    "robot.strength": (100, "%", (*judges.STRENGTH_FAIL, *judges.STRENGTH_WARN)),
    "robot.delay": (1000, "ms", (judges.DELAY_FAIL_S, judges.DELAY_WARN_S)),
    "robot.friction": (100, "% of limit", (judges.FRICTION_FAIL, judges.FRICTION_WARN)),
    "robot.velocity_noise": (1, "rad/s", (judges.NOISE_FAIL_RAD_S, judges.NOISE_WARN_RAD_S)),
    "robot.torque": (100, "% of limit", (judges.TORQUE_FAIL, judges.TORQUE_WARN)),
}
"""Check to factor and unit of its figures, and its bounds."""


def healthy(seed: int, robot: RobotConfig) -> tuple[str, ...]:
    """The gap of one healthy robot."""
    random = np.random.default_rng(seed)
    n = len(robot.joints)
    knobs = {
        "gain": 1.0 + GAIN * random.uniform(-1, 1, n),
        "friction_nm": FRICTION * robot.effort * random.uniform(0, 1, n),
        "backlash_rad": PLAY_RAD * random.uniform(0, 1, n),
        "command_latency_s": np.full(n, LATENCY_S * random.uniform(0, 1)),
    }
    loads = {f"{side}_elbow_joint": float(LOAD_KG * random.uniform(0, 1)) for side in ("left", "right")}
    gap = {knob: dict(zip(robot.joint_names, values.tolist(), strict=True)) for knob, values in knobs.items()}
    return tuple(f"gap.{knob}={_yaml(values)}" for knob, values in {**gap, "mass_kg": loads}.items())


def _yaml(values: dict[str, float]) -> str:
    """Numbers without an exponent, which YAML would take for text."""
    return "{" + ", ".join(f"{name}: {value:.6f}" for name, value in values.items()) + "}"


def probe(seed: int, robot: RobotConfig) -> Iterator[Row]:
    """The checks of one robot."""
    protocol = probe_protocol(robot, "left_elbow_joint")
    with tempfile.TemporaryDirectory(prefix="onboard-probes-") as folder:

        def fly() -> Flown:
            config = run_config(policy="bench_probe", bench=protocol, gantry=True, lowstate=True, out=folder)
            plan, script = make_plan(config), probe_script(protocol)
            trial = RecordedTrial(plan, script, healthy(seed, robot), Path(folder), hanging=True)
            result = trial.run(lambda seconds: None)
            return Flown(result["ok"], result["end"], Path(result["rollout"]))

        yield from run_checks(GantryChecks(protocol, robot, fly).checks())


def main(argv: list[str] | None = None) -> int:
    """Probe them all; 0 when no check of any warned or failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=5, help="robots")
    args = parser.parse_args(argv)
    robot = load_robot(ROBOT)
    rows = [row for seed in range(args.n) for row in probe(seed, robot)]
    table = Table("check", "lowest", "highest", "unit", "bounds", title=f"{args.n} healthy robots")
    for name, (factor, unit, bounds) in FIGURES.items():
        values = [value for row in rows if row.name == name for value in row.finding.values.values()]
        told = (f"{factor * figure:.3g}" for figure in (min(values), max(values)))
        table.add_row(name, *told, unit, ", ".join(f"{factor * bound:g}" for bound in bounds))
    Console().print(table)
    odd = [row for row in rows if row.finding.verdict is not Verdict.PASS]
    for row in odd:
        print(f"{row.finding.verdict.name.lower()} {row.name}: {row.finding.measured}")
    return 1 if odd else 0


if __name__ == "__main__":
    sys.exit(main())
