"""How well the leg odometry does on every walking policy at hand: `python -m benchmarks.odometry`.

Each policy walks forward at 0.3, 0.5 and 0.8 m/s, turns, and walks sideways, 20 s each, with five
pushes; the sensors are noisy. Then it walks in the air, on the gantry. The estimator's few numbers
were chosen on other seeds of the policies above the line; those below it show whether they fit
others too. docs/estimation.md says what the figures mean. Exit code 0: every goal is met.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from onboard.analysis.odometry_score import Score, mean_score, score
from onboard.analysis.odometry_walk import NOISES, Noise, WalkPlan, record_walk, with_noise
from onboard.configs.errors import OnboardError
from onboard.configs.robot import load_robot
from onboard.policies.bundle import load_policy
from onboard.policies.estimators.estimator import make_odometry
from onboard.policies.policy import Policy

SHARED = Path(os.environ.get("ONBOARD_SHARED", Path(__file__).resolve().parents[2] / "shared"))

COMMANDS = ((0.3, 0.0, 0.0), (0.5, 0.0, 0.0), (0.8, 0.0, 0.0), (0.3, 0.0, 0.2), (0.0, 0.3, 0.0))
CONTACT, CONTACT_AWAY, HANGING = 0.97, 0.99, 0.99
FORCE_SHARE, VELOCITY_M_S = 0.10, 0.03
FIRST_SEED = 100


class Walker(NamedTuple):
    """A policy that walks; `path` below the shared policies, or a shipped name."""

    name: str
    path: str
    preset: str | None
    tuned_on: bool


WALKERS = (
    Walker("unitree_rl_lab", "unitree_rl_lab_velocity", None, True),
    Walker("unitree_rl_mjlab", "unitree_rl_mjlab_velocity", None, True),
    Walker("playground", "mujoco_playground_g1/g1_policy.onnx", "mujoco_playground_g1", True),
    Walker("asap_dec_loco", "asap_dec_loco/model_6600.onnx", "asap_dec_loco", True),
    Walker("falcon", "falcon/g1_29dof.onnx", "falcon", True),
    Walker("holosoma_ppo", "holosoma_loco_ppo", None, True),
    Walker("falcon_dec_loco", "falcon_dec_loco/g1_29dof.onnx", "falcon_dec_loco", False),
    Walker("holosoma_fastsac", "holosoma_loco_fastsac", None, False),
)


class Result(NamedTuple):
    """Of one policy."""

    walker: Walker
    walking: Score
    hanging: Score
    fell: int

    @property
    def misses(self) -> list[str]:
        """Goals that it does not meet."""
        walking = self.walking
        goals = {
            "contact": walking.contact >= CONTACT,
            "contact away": walking.contact_away >= CONTACT_AWAY,
            "force": walking.force_share <= FORCE_SHARE,
            "velocity": max(walking.velocity_rms) <= VELOCITY_M_S,
            "hanging": self.hanging.off >= HANGING,
            "fell": not self.fell,
        }
        return [name for name, met in goals.items() if not met]


def main(argv: list[str] | None = None) -> int:
    """Entry of the program."""
    parser = argparse.ArgumentParser(prog="benchmarks.odometry", description=__doc__)
    parser.add_argument("--noise", choices=sorted(NOISES), default="white")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each walk")
    parser.add_argument("--seeds", type=int, default=1, help="of pushes and noise")
    parser.add_argument("--only", nargs="*", default=[walker.name for walker in WALKERS])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    terminal = Console(stderr=True)
    results = []
    for walker in WALKERS:
        if walker.name not in options.only:
            continue
        try:
            results.append(measure(walker, NOISES[options.noise], options.seconds, options.seeds))
        except OnboardError as error:
            terminal.print(f"skipped {walker.name}: {error}")
    terminal.print(table(results, options.noise))
    if options.json:
        options.json.write_text(json.dumps(plain(results, options.noise), indent=2) + "\n")
    if not results:
        print("no walking policy found; put the shared folder beside the checkout", file=sys.stderr)
    return 0 if results and not any(result.misses for result in results) else 1


def measure(walker: Walker, noise: Noise, seconds: float, seeds: int) -> Result:
    """Let one policy walk every command, and hang."""
    robot = load_robot("g1_29dof")
    below = SHARED / "policies" / walker.path
    path = below if below.exists() else walker.path
    policy = Policy(load_policy(path, robot, walker.preset, provider="simulator_truth"), robot)
    scores, fell = [], 0
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for number, command in enumerate(COMMANDS):
            walk = record_walk(policy, WalkPlan(command, seconds=seconds), 10 * seed + number)
            fell += walk.fell
            scores.append(score(with_noise(walk, noise, 10 * seed + number), make_odometry(robot)))
    air = record_walk(policy, WalkPlan(seconds=seconds / 2, stand_s=2.0, pushes=0, hanging=True), FIRST_SEED)
    return Result(
        walker, mean_score(scores), score(with_noise(air, noise, FIRST_SEED), make_odometry(robot)), fell
    )


def table(results: list[Result], noise: str) -> Table:
    """For people."""
    made = Table(
        "policy", "contact %", "away %", "Fz %BW", "v RMS", "v bias", "worst", "hanging off %", "misses"
    )
    made.title = f"leg odometry, {noise} sensors"
    for number, result in enumerate(results):
        if number and result.walker.tuned_on != results[number - 1].walker.tuned_on:
            made.add_section()
        made.add_row(
            result.walker.name, *_cells(result.walking), f"{100 * result.hanging.off:.1f}", _text(result)
        )
    for title, tuned in (("all tuned on", True), ("all others", False)):
        chosen = [result.walking for result in results if result.walker.tuned_on is tuned]
        if chosen:
            made.add_section()
            made.add_row(title, *_cells(mean_score(chosen)), "", "")
    return made


def _text(result: Result) -> str:
    return ", ".join(result.misses) or "none"


def _cells(one: Score) -> list[str]:
    return [
        f"{100 * one.contact:.1f}",
        f"{100 * one.contact_away:.2f}",
        f"{100 * one.force_share:.1f}",
        "/".join(f"{value:.3f}" for value in one.velocity_rms),
        "/".join(f"{value:+.3f}" for value in one.velocity_bias),
        f"{one.velocity_worst:.2f}",
    ]


def plain(results: list[Result], noise: str) -> dict[str, object]:
    """For programs."""
    return {
        "noise": asdict(NOISES[noise]),
        "ok": bool(results) and not any(result.misses for result in results),
        "policies": {
            result.walker.name: {
                "tuned_on": result.walker.tuned_on,
                "walking": asdict(result.walking),
                "hanging_off": result.hanging.off,
                "fell": result.fell,
                "misses": result.misses,
            }
            for result in results
        },
    }


if __name__ == "__main__":
    sys.exit(main())
