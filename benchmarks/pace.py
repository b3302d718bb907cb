"""A job at 50 Hz with the time of every stage: what the sides of the comparison share."""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from onboard.configs.robot import load_robot
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy
from onboard.runtime import realtime
from onboard.runtime.clock import GridClock

PERIOD_NS = 20_000_000
WARM_UP_TICKS = 25
"""Left out of the figures: imports, first touches, discovery."""


class Laps:
    """Durations of the stages of every tick."""

    def __init__(self, stages: Sequence[str], ticks: int) -> None:
        self.stages = tuple(stages)
        self.durations_ns = np.zeros((ticks, len(self.stages)), np.int64)
        self._row = self.durations_ns[0]
        self._stage = 0
        self._last_ns = 0

    def begin(self, tick: int) -> None:
        """The first stage of a tick begins."""
        self._row = self.durations_ns[tick]
        self._stage = 0
        self._last_ns = time.perf_counter_ns()

    def mark(self) -> None:
        """The current stage ends, the next begins."""
        now = time.perf_counter_ns()
        self._row[self._stage] = now - self._last_ns
        self._stage += 1
        self._last_ns = now


def options(description: str) -> argparse.Namespace:
    """Command line of a side."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--domain", type=int, required=True)
    parser.add_argument("--policy", type=Path, required=True, help="ONNX file")
    parser.add_argument("--preset", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--realtime", action="store_true", help="SCHED_FIFO")
    return parser.parse_args()


def make_policy(given: argparse.Namespace) -> Policy:
    """The policy that all sides run."""
    robot = load_robot("g1_29dof")
    return Policy(load_policy(given.policy, robot, given.preset), robot)


def run(
    stages: Sequence[str], given: argparse.Namespace, tick: Callable[[Laps, int], None]
) -> dict[str, object]:
    """Do `tick(laps, number)` at 50 Hz.

    Args:
        stages: that `tick` marks, in order.
        given: the options.
        tick: the job; it marks the end of every stage.

    Returns:
        `stages` (name to one time a tick, µs), `late_us`, and `cpu_percent` of this process.
    """
    ticks = WARM_UP_TICKS + round(given.seconds * 1e9 / PERIOD_NS)
    laps = Laps(stages, ticks)
    late_ns = np.zeros(ticks, np.int64)
    clock = GridClock(PERIOD_NS)
    if given.realtime:
        realtime.setup_realtime(realtime.PRIORITY_CONTROL, realtime.spare_cpu(1))
    realtime.freeze_heap()
    clock.start()
    begun = 0, 0.0
    for number in range(ticks):
        if number == WARM_UP_TICKS:
            begun = time.monotonic_ns(), _cpu_s()
        clock.wait()
        late_ns[number] = clock.late_ns
        laps.begin(number)
        tick(laps, number)
    wall_s = (time.monotonic_ns() - begun[0]) / 1e9
    measured = laps.durations_ns[WARM_UP_TICKS:] / 1e3
    return {
        "stages": {name: measured[:, index].tolist() for index, name in enumerate(laps.stages)},
        "late_us": (late_ns[WARM_UP_TICKS:] / 1e3).tolist(),
        "cpu_percent": {"process": 100.0 * (_cpu_s() - begun[1]) / wall_s},
    }


def report(result: dict[str, object]) -> None:
    """Hand the result to whoever started this process."""
    sys.stdout.write(json.dumps(result) + "\n")


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
