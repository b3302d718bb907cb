"""`python -m benchmarks`: play the sides, print the tables, write the JSON."""

import argparse
import json
import os
import platform
import statistics
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import figures, residual, table
from benchmarks.rounds import PEERS, Job, Samples, Side, SideFailedError, find_peer, play
from onboard.configs.errors import OnboardError
from onboard.configs.robot import load_robot
from onboard.policies.bundle import load_policy
from tests.interop.interpreters import EnvironmentMissingError

POLICY = "holosoma_loco_ppo"
WIDTH = 110


def main() -> int:
    """Entry of the program; 0 when every side was measured."""
    options = _options()
    terminal = Console(width=max(WIDTH, Console().width))
    try:
        job = make_job(options.policy, options.seconds, realtime=options.realtime)
        peer, skipped = choose_peer(options.peer)
        sides = make_sides(peer)
        samples = play(sides, job, options.rounds, terminal.print)
        costs = residual.measure_all()
    except (OnboardError, SideFailedError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    result = summarise(samples)
    show(terminal, result)
    terminal.print(residual.table(costs))
    if skipped:
        terminal.print(f"skipped: the vendor's objects ({skipped})")
    if options.json:
        about = {"seconds": options.seconds, "rounds": options.rounds, "realtime": options.realtime}
        about |= {"policy": options.policy, "peer": peer[1] if peer else None, "skipped": skipped}
        options.json.write_text(
            json.dumps({**about, "machine": machine(), **plain(result | {"residual_us": costs})}, indent=2)
            + "\n"
        )
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--seconds", type=float, default=7.0, help="measured per side and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--policy", default=POLICY, help="folder, ONNX file or shipped name")
    parser.add_argument("--realtime", action="store_true", help="SCHED_FIFO for the loops of all sides")
    parser.add_argument(
        "--peer", choices=("auto", "none", *PEERS), default="auto", help="cyclonedds of the vendor's objects"
    )
    return parser.parse_args()


def make_job(policy: str, seconds: float, *, realtime: bool) -> Job:
    """What every side is told."""
    bundle = load_policy(policy, load_robot("g1_29dof"))
    if len(bundle.models) != 1:
        raise OnboardError(
            f"--policy {policy}: has {len(bundle.models)} graphs; give one with a single graph"
        )
    start = dict(zip(bundle.contract.joints, bundle.start_rad, strict=True))
    pose = tuple(start.get(joint.name, 0.0) for joint in bundle.robot.joints)
    return Job(next(iter(bundle.models.values())).path, bundle.preset or "", pose, seconds, realtime)


def choose_peer(wanted: str) -> tuple[tuple[str, str] | None, str]:
    """Interpreter and description of the vendor's side, or None and the reason."""
    if wanted == "none":
        return None, "--peer none"
    try:
        return find_peer(wanted), ""
    except EnvironmentMissingError as reason:
        return None, str(reason)


def make_sides(peer: tuple[str, str] | None) -> list[Side]:
    """Who plays: all four, or without the vendor's package our two."""
    here = Side("onboard", sys.executable)
    if peer is None:
        return [Side("bytes", sys.executable), here]
    python = peer[0]
    return [Side("bytes", python), Side("objects", python, True), Side("callback", python, True), here]


def summarise(samples: dict[str, Samples]) -> dict[str, Any]:
    """All figures."""
    compared = figures.compare({side: found.stages for side, found in samples.items()})
    ratio = figures.ratios(compared)
    percent = {
        side: {process: statistics.median(values) for process, values in found.cpu_percent.items()}
        for side, found in samples.items()
    }
    return {
        "rows": compared,
        "ratios": ratio,
        "stages": {
            side: {name: figures.spread(values) for name, values in found.stages.items()}
            for side, found in samples.items()
        },
        "late_us": {side: figures.spread(found.late_us) for side, found in samples.items()},
        "cpu_percent": percent,
        "aims": figures.aims(ratio, percent["onboard"]["control"]),
    }


def show(terminal: Console, result: dict[str, Any]) -> None:
    """Print the tables."""
    terminal.print(table.details(result["stages"]))
    terminal.print(table.comparison(result["rows"], result["ratios"]))
    terminal.print(table.cpu(result["cpu_percent"]))
    terminal.print(table.goals(result["aims"]))


def plain(value: Any) -> Any:  # noqa: ANN401 - figures of any shape
    """Named tuples as objects, for JSON."""
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def machine() -> dict[str, object]:
    """What it ran on."""
    names = ("numpy", "onnxruntime", "cyclonedds")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


if __name__ == "__main__":
    sys.exit(main())
