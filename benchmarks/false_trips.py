"""Whether a healthy robot is ever stopped: `python -m benchmarks.false_trips --minutes 60`.

A simulated robot walks on real DDS under a whole run, in real time, while programs that do nothing but
compute take every processor they get. With SCHED_FIFO nothing of that may stop it. `--ordinary` leaves
SCHED_FIFO out, for an otherwise idle machine: `--hogs 0`. After a trip the walk begins anew, until its time
is over.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.soak_runs import course
from benchmarks.stillness import Stillness, in_words, watched_cores
from onboard.cli.sim_process import SimProcess
from onboard.configs.events import Mode
from onboard.logging.rollout import Rollout
from onboard.runtime.dds import DdsDomain
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.realtime import may_use_fifo
from tests.runtime.real_run import PATIENCE_S, RealRun, Tap

HOG = "while True: pass"
LONGEST_WALK_S = 600.0
"""One run of the series; its rollout is read at once and not kept."""
ATTEMPTS = 5
"""Walks that do not even begin, before the series is given up."""
PERCENTILES = (50.0, 99.0, 99.9, 100.0)
COLUMNS = {"wake_late_ms": ("wake_late_ns", 1e-6), "state_age_ms": ("state_age_s", 1e3)}


class Walk(NamedTuple):
    """One run.

    Attributes:
        seconds: that the policy walked.
        trip: why it was stopped, "" where it walked to its end.
        events: every safety event.
        skipped: ticks that were left out.
        figures: values of each tick, by name.
        stopped_ns: when it ended, CLOCK_MONOTONIC.
    """

    seconds: float
    trip: str
    events: list[str]
    skipped: int
    figures: dict[str, np.ndarray]
    stopped_ns: int = 0


@contextlib.contextmanager
def hogs(count: int) -> Iterator[None]:
    """Programs beside the walk that never rest, with ordinary rights."""
    running = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in running:
            hog.kill()
            hog.wait()


def walk(seconds: float, options: Sequence[str]) -> Walk:
    """One run from its start to its end or its first trip."""
    with (
        tempfile.TemporaryDirectory() as name,
        free_domain_id() as domain,
        DdsDomain(domain, "lo") as dds,
    ):
        folder = Path(name)
        arguments = ["--domain", str(domain), "--gantry", "--start-pose", "crouch"]
        with SimProcess([*arguments, "--set", "gantry.height_m=0"], folder / "sim.json") as sim:
            script = msgspec.yaml.encode(course(seconds)).decode()
            run = RealRun(folder, script, sim, Tap(dds), *options)
            try:
                return _walk(run, sim)
            finally:
                run.close()


def _walk(run: RealRun, sim: SimProcess) -> Walk:
    begun = False
    with contextlib.suppress(AssertionError):  # the run ended before it walked
        run.until_mode(Mode.POLICY)
        sim.tell("gantry release")
        begun = True
    begin = time.monotonic()
    while run.running and run.mode is Mode.POLICY:
        time.sleep(0.2)
    stopped_ns = time.monotonic_ns()
    seconds = stopped_ns / 1e9 - begin if begun else 0.0
    code, result = run.end(PATIENCE_S + seconds)
    whole = code == 0 and result.get("end") == "the script is over"
    trip = "" if whole else result.get("end") or run.errors().strip().rpartition("\n")[2] or "no word"
    figures: dict[str, np.ndarray] = {}
    if result.get("rollout"):
        with Rollout(Path(result["rollout"])) as rollout:
            walking = rollout.column("mode") == Mode.POLICY
            figures = {
                name: rollout.column(column)[walking].astype(np.float64) * scale
                for name, (column, scale) in COLUMNS.items()
            }
            figures["tick_ms"] = rollout.column("stage_ns")[walking].sum(1, dtype=np.int64) / 1e6
    skipped = int(result.get("skipped_ticks") or 0)
    return Walk(seconds, trip, result.get("events", []), skipped, figures, stopped_ns)


def series(
    minutes: float, options: Sequence[str], still: Stillness, say: Callable[[str], None]
) -> list[Walk]:
    """Walk for so long, anew after every trip; a trip also says whether the machine stood still before it."""
    walks: list[Walk] = []
    while (left := 60.0 * minutes - sum(each.seconds for each in walks)) > 1.0:
        each = walk(min(left, LONGEST_WALK_S), options)
        walks.append(each._replace(trip=each.trip and each.trip + still.before(each.stopped_ns)))
        say(f"{walks[-1].seconds:.0f} s walked: {walks[-1].trip or 'to the end'}")
        if len(walks) >= ATTEMPTS and not any(each.seconds for each in walks[-ATTEMPTS:]):
            break
    return walks


def judge(walks: Sequence[Walk]) -> dict[str, Any]:
    """Figures of the whole series."""
    spreads: dict[str, dict[str, float]] = {}
    for name in (*COLUMNS, "tick_ms"):
        values = np.concatenate([np.zeros(0), *(each.figures.get(name, np.zeros(0)) for each in walks)])
        if values.size:
            found = np.percentile(values, PERCENTILES)
            spreads[name] = dict(
                zip(("p50", "p99", "p999", "max"), (round(float(v), 3) for v in found), strict=True)
            )
    trips = [each.trip for each in walks if each.trip]
    return {
        "ok": not trips,
        "seconds": round(sum(each.seconds for each in walks), 1),
        "trips": trips,
        "skipped_ticks": sum(each.skipped for each in walks),
        "events": sorted({event for each in walks for event in each.events}),
        **spreads,
    }


def show(result: dict[str, Any]) -> Table:
    """The figures for people."""
    table = Table("ms", "p50", "p99", "p99.9", "max")
    for name in (*COLUMNS, "tick_ms"):
        if name in result:
            table.add_row(name.removesuffix("_ms"), *(f"{value:g}" for value in result[name].values()))
    return table


def main() -> int:
    """Entry of the program; 0 when nothing tripped."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.false_trips", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of walking")
    parser.add_argument("--hogs", type=int, default=2, help="programs that take all the time they get")
    parser.add_argument("--ordinary", action="store_true", help="without SCHED_FIFO for the run")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args()
    terminal, load = Console(), os.getloadavg()[0]
    extra = ["--timing-set", "realtime=off"] if options.ordinary else []
    with hogs(options.hogs), watched_cores() as still:
        result = judge(series(options.minutes, extra, still, terminal.print))
        result["stood_still"] = still.account()
    result["machine"] = {
        "fifo": may_use_fifo() and not options.ordinary,
        "hogs": options.hogs,
        "cores": os.cpu_count(),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
    }
    terminal.print(show(result))
    terminal.print(
        f"{result['seconds']:.0f} s walked, {len(result['trips'])} trips, {result['skipped_ticks']} ticks "
        f"skipped, events: {', '.join(result['events']) or 'none'}"
    )
    terminal.print(in_words(result["stood_still"]))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if result["ok"] and result["seconds"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
