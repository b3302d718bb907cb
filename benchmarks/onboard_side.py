"""A real run: gateway, recorder and control as processes, the policy in charge, every tick in the rollout.

The figures come out of the run's own rollout file; the shares of a core from the kernel.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import pace
from onboard.cli.run_options import run_config
from onboard.configs.events import Mode
from onboard.configs.run import Timing
from onboard.configs.script import ScriptConfig, Step
from onboard.logging.layout import STAGES
from onboard.logging.rollout import Rollout
from onboard.runtime.assembly import make_plan
from onboard.runtime.console import Console
from onboard.runtime.launch import launch
from onboard.runtime.parent import Parent
from onboard.runtime.script import Script

PROCESSES = {
    "control": "onboard.runtime.control",
    "gateway": "onboard.runtime.gateway",
    "recorder": "onboard.runtime.recording",
}
LOOK_S = 0.25
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """CPU time of every process of the run while the policy is in charge; called with the parent."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._pids: dict[str, int] = {}
        self._due = 0.0

    def __call__(self, parent: Parent) -> None:
        """Look at the counters, at the beginning and at the end of mode policy."""
        due = time.monotonic() >= self._due
        if not due or parent.status.mode is not Mode.POLICY or parent.stopping:
            return
        self._due = time.monotonic() + LOOK_S
        if not self._pids:
            self._pids = {"parent": os.getpid(), **children()}
        counters = {name: cpu_s(pid) for name, pid in self._pids.items()}
        self._last = {"wall": time.monotonic(), **counters}
        self._first = self._first or self._last

    def percent(self) -> dict[str, float]:
        """Share of a core, %."""
        wall = self._last["wall"] - self._first["wall"]
        return {name: 100.0 * (self._last[name] - self._first[name]) / wall for name in self._pids}


def children() -> dict[str, int]:
    """Process ids of this process's children by their part in the run."""
    found: dict[str, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            command = (folder / "cmdline").read_text().split("\0")
        except (OSError, IndexError):
            continue
        if parent == os.getpid():
            found |= {name: int(folder.name) for name, module in PROCESSES.items() if module in command}
    return found


def cpu_s(pid: int) -> float:
    """User and system time of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def main() -> None:
    """Entry of the process."""
    given = pace.options(str(__doc__))
    with tempfile.TemporaryDirectory() as folder:
        config = run_config(
            policy=str(given.policy),
            preset=given.preset,
            domain=given.domain,
            out=folder,
            timing=Timing(realtime="auto" if given.realtime else "off"),
        )
        warm_up_s = pace.WARM_UP_TICKS * pace.PERIOD_NS / 1e9
        steps = (
            Step(press="start", until="hold"),
            Step(press="go", until="policy", for_s=warm_up_s + given.seconds),
        )
        meter = CpuMeter()
        console = Console(Script(ScriptConfig(steps)))
        outcome = launch(make_plan(config), console, lambda line: None, meter)
        if outcome.rollout is None or outcome.exit_code or not outcome.policy_rows:
            sys.exit(f"the run ended early: {outcome.end}")
        with Rollout(outcome.rollout) as rollout:
            pace.report({**read_times(rollout, given.seconds), "cpu_percent": meter.percent()})


def read_times(rollout: Rollout, seconds: float) -> dict[str, Any]:
    """Stage times of so many seconds of ticks in mode policy after the warm-up, µs.

    `taken_to_write` and `made_to_write` end when the gateway's write of that tick's command was done.
    """
    column = rollout.column
    last = pace.WARM_UP_TICKS + round(seconds * 1e9 / pace.PERIOD_NS)
    rows = np.flatnonzero(column("mode") == Mode.POLICY)[pace.WARM_UP_TICKS : last]
    stage_us = column("stage_ns")[rows] / 1e3
    sent_ns, made_ns, taken_ns = (column(name)[rows] for name in ("send_ns", "made_ns", "recv_ns"))
    passed = (sent_ns > 0) & (column("state_new")[rows] == 1)
    stages = {name: stage_us[:, index].tolist() for index, name in enumerate(STAGES)}
    stages["taken_to_write"] = ((sent_ns - taken_ns)[passed] / 1e3).tolist()
    stages["made_to_write"] = ((sent_ns - made_ns)[passed] / 1e3).tolist()
    return {"stages": stages, "late_us": (column("wake_late_ns")[rows] / 1e3).tolist()}


if __name__ == "__main__":
    main()
