"""Does the latency check measure what the simulator is set to? `python -m benchmarks.latency`.

A simulated robot on real DDS, whose motors obey every command so much later, is probed as `onboard check
--gantry` probes it, its chirp alone, through gateway and recorder. `--lock-step` flies the same without
processes, where no clock and no wire is in between.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from onboard.cli.check_gantry import Where, fly
from onboard.cli.recorded_trial import RecordedTrial
from onboard.cli.run_options import run_config
from onboard.cli.sim_process import SimProcess
from onboard.configs.bench import BenchProtocol
from onboard.configs.robot import load_robot
from onboard.logging.rollout import Rollout
from onboard.runtime.assembly import make_plan
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.preflight.gantry import Flown
from onboard.runtime.preflight.latency import CommandLatency, command_latency
from onboard.runtime.preflight.probe import Reading, probe_protocol, probe_script

ROBOT = "g1_29dof"
SET_MS = (0.0, 10.0, 20.0, 40.0)
TOLERANCE_MS = 2.0
ATTEMPTS = 3
"""A machine that is busy with something else can stop a run; then it is flown again."""

Flight = Callable[[BenchProtocol, float, Path], Flown]


class Result(NamedTuple):
    """One setting and what was measured; the latter in ms, None where the flight came to nothing."""

    set_ms: float
    measured_ms: float | None
    sigma_ms: float | None

    @property
    def ok(self) -> bool:
        """Near enough."""
        return self.measured_ms is not None and abs(self.measured_ms - self.set_ms) <= TOLERANCE_MS


def late(set_ms: float) -> str:
    """The simulator's knob."""
    return f"gap.command_latency_s={{'*': {set_ms / 1000!r}}}"


def on_dds(protocol: BenchProtocol, set_ms: float, folder: Path) -> Flown:
    """Probe a simulated robot of its own process."""
    with free_domain_id() as domain:
        hanging = ["--domain", str(domain), "--gantry", "--released", "--set", "gantry.height_m=1.1"]
        with SimProcess([*hanging, "--set", late(set_ms)], folder / "sim.json"):
            return fly(Where(ROBOT, "lo", domain, str(folder), release=False), protocol)


def in_lock_step(protocol: BenchProtocol, set_ms: float, folder: Path) -> Flown:
    """Probe a simulated robot in this process."""
    config = run_config(policy="bench_probe", bench=protocol, gantry=True, lowstate=True, out=str(folder))
    trial = RecordedTrial(make_plan(config), probe_script(protocol), (late(set_ms),), folder, hanging=True)
    result = trial.run(lambda seconds: None)
    return Flown(result["ok"], result["end"], Path(result["rollout"]))


def measure(protocol: BenchProtocol, flight: Flight, set_ms: float) -> Result:
    """Fly until one flight came to its end, and read it."""
    reading = Reading(protocol, load_robot(ROBOT))
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="onboard-latency-") as folder:
            flown = flight(protocol, set_ms, Path(folder))
            found = _read(reading, flown) if flown.ok and flown.rollout else None
        if found is not None:
            return Result(set_ms, 1000 * found.delay_s, 1000 * found.sigma_s)
    return Result(set_ms, None, None)


def _read(reading: Reading, flown: Flown) -> CommandLatency | None:
    assert flown.rollout is not None
    with Rollout(flown.rollout) as rollout:
        return command_latency(reading.measure(rollout).chirp)


def main(argv: list[str] | None = None) -> int:
    """Measure every setting; 0 when all were measured within ± 2 ms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--joint", default="left_elbow_joint", help="that chirps")
    parser.add_argument("--set-ms", type=float, nargs="*", default=SET_MS, help="command latencies to set")
    parser.add_argument("--lock-step", action="store_true", help="without processes, faster than real time")
    parser.add_argument("--json", default="", help="write the figures to this file")
    args = parser.parse_args(argv)
    whole = probe_protocol(load_robot(ROBOT), args.joint)
    chirp = msgspec.structs.replace(whole, segments=whole.segments[-1:])
    flight = in_lock_step if args.lock_step else on_dds
    table = Table("set, ms", "measured, ms", "±, ms", "", title=f"command latency, {args.joint}")
    results = []
    for set_ms in args.set_ms:
        result = measure(chirp, flight, set_ms)
        results.append(result)
        figures = (result.measured_ms, result.sigma_ms)
        told = ("nothing", "") if figures[0] is None else tuple(f"{figure:.2f}" for figure in figures)
        table.add_row(f"{set_ms:g}", *told, "ok" if result.ok else "NOT within 2 ms")
    Console().print(table)
    if args.json:
        plain = [{**result._asdict(), "ok": result.ok} for result in results]
        Path(args.json).write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
