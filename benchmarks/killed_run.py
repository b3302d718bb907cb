"""One whole run on real DDS in which a process is killed, and the judgement on what it left."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from onboard.cli.log_verify import examine
from onboard.cli.sim_process import SimProcess
from onboard.configs.events import Mode
from onboard.logging.verify import Verdict
from onboard.runtime.dds import DdsDomain
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.ports import OPERATOR
from onboard.runtime.shm import Shared
from tests.runtime.real_run import RealRun, Tap

CHILDREN = {
    "control": "onboard.runtime.control",
    "gateway": "onboard.runtime.gateway",
    "recorder": "onboard.runtime.recording",
}
VICTIMS = (*CHILDREN, "parent", "all")
STRETCHES = {"damp": 0.4, "ramp": 2.5, "hold": 0.8, "policy": 1.8, "ending": 1.5, "converting": 0.25}
"""Where a run is killed: a mode of control, or the time after its stop or after the recorder's; and within
how many seconds after its begin."""
SCRIPT = (
    "steps:\n  - {for_s: 0.6}\n  - {press: start, until: ramp}\n  - {until: hold, for_s: 0.8}\n"
    "  - {press: go, until: policy, velocity: [0.4, 0, 0], for_s: 2.0}\n"
)
EXACT = ("tick", "number", "made_ns", "recv_ns", "mode", "q", "target", "action_sent", "skipped_ticks")
"""Columns that are compared with the ring, all of them bit by bit."""
END_S = 60.0
RECOVER_CODES = (0, 3)


@dataclass
class Killed:
    """What became of a run.

    Attributes:
        victim: whom SIGKILL met.
        stretch: where in the run.
        handed_over: records that control had pushed into its ring in the end.
        rows: of the rollout.
        recovered: `onboard log recover` had to make the rollout.
        wrong: what is not as it should be, "" for nothing.
    """

    victim: str
    stretch: str
    delay_s: float
    handed_over: int = 0
    rows: int = 0
    recovered: bool = False
    completeness: str = ""
    wrong: str = ""

    @property
    def line(self) -> str:
        """The same in one line."""
        how = " by log recover" if self.recovered else ""
        verdict = f"WRONG: {self.wrong}" if self.wrong else "whole"
        return (
            f"{self.victim} killed {self.delay_s:.2f} s into {self.stretch}: {self.rows} of "
            f"{self.handed_over} records{how}, {self.completeness or 'no rollout'}, {verdict}"
        )


class Place:
    """A simulated robot in its gantry, and a folder for every run."""

    def __init__(self, folder: Path, dds: DdsDomain, sim: SimProcess) -> None:
        self._folder = folder
        self._dds = dds
        self._sim = sim

    def kill(self, victim: str, stretch: str, delay_s: float) -> Killed | None:
        """One run; None when it ended before its moment had come."""
        self._sim.tell("reset")
        killed = Killed(victim, stretch, delay_s)
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            run = RealRun(Path(name), SCRIPT, self._sim, Tap(self._dds))
            try:
                with _mapped(run) as (shared, children):
                    if not _reach(run, shared, stretch) or not run.running:
                        return None
                    time.sleep(delay_s)
                    if not _strike(victim, run, children):
                        return None
                    _wait_for_the_end(run, children)
                    judge(killed, shared, Path(name) / "out")
                return killed
            except AssertionError:  # on a starved machine a run may refuse to start, or a target expire first
                return None
            finally:
                run.close()


@contextmanager
def killing_ground(folder: Path) -> Iterator[Place]:
    """A robot for all runs."""
    with free_domain_id() as domain, DdsDomain(domain, "lo") as dds:
        hanging = ["--domain", str(domain), "--gantry", "--released", "--start-pose", "crouch"]
        with SimProcess(hanging, folder / "sim.json") as sim:
            yield Place(folder, dds, sim)


@contextmanager
def _mapped(run: RealRun) -> Iterator[tuple[Shared, dict[str, int]]]:
    """The run's memory, for as long as we need it, and handles of its processes; control has ticked."""
    run.until(lambda: run.mode is Mode.DAMP and _head(run) > 0)
    with contextlib.ExitStack() as stack:
        shared = Shared.open(run.mapping, read_only=True)
        stack.callback(shared.close)
        handles = {}
        for name, module in {"parent": "", **CHILDREN}.items():
            handles[name] = os.pidfd_open(run.child(module) if module else run.pid)
            stack.callback(os.close, handles[name])
        yield shared, handles


def _head(run: RealRun) -> int:
    """Records handed over so far; 0 before there is a mapping."""
    with contextlib.suppress(AssertionError, OSError):
        shared = Shared.open(run.mapping, read_only=True)
        try:
            return shared["record"].head
        finally:
            shared.close()
    return 0


def _reach(run: RealRun, shared: Shared, stretch: str) -> bool:
    """Wait for the begin of a stretch; False when the run ended first."""
    operator = np.zeros((), OPERATOR)

    def asked(flag: str) -> Callable[[], bool]:
        def look() -> bool:
            shared["operator"].latest(operator)
            return bool(operator[flag])

        return look

    begun = {"ending": asked("stop_request"), "converting": asked("recorder_stop")}.get(
        stretch, lambda: run.mode is Mode[stretch.upper()]
    )
    until = time.monotonic() + END_S
    while run.running and time.monotonic() < until:
        if begun():
            return True
        time.sleep(0.002)
    return False


def _strike(victim: str, run: RealRun, handles: dict[str, int]) -> bool:
    """SIGKILL; False where there was nobody left to kill."""
    met = False
    for name in handles if victim == "all" else (victim,):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handles[name], signal.SIGKILL)
            met = True
    return met


def _wait_for_the_end(run: RealRun, handles: dict[str, int]) -> None:
    """Until every process of the run is gone, also those that the parent started later."""
    until = time.monotonic() + END_S
    while run.running or run.left_over():
        if time.monotonic() > until:
            raise TimeoutError(f"processes of the run are still there after {END_S:g} s")
        time.sleep(0.02)


def judge(killed: Killed, shared: Shared, out: Path) -> None:
    """Recover where it is needed, and hold the rollout against the ring."""
    killed.handed_over = shared["record"].head
    journals = [path for path in out.glob("*.journal") if not path.name.endswith(".lowstate.journal")]
    if journals:
        killed.recovered = True
        command = [sys.executable, "-m", "onboard", "log", "recover", str(journals[0])]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode not in RECOVER_CODES:
            killed.wrong = f"log recover: {result.stderr.strip()}"
            return
    rollouts = list(out.glob("*.h5"))
    if len(rollouts) != 1:
        killed.wrong = f"{len(rollouts)} rollouts"
        return
    killed.wrong = "; ".join(_differences(killed, shared, rollouts[0]))


def _differences(killed: Killed, shared: Shared, path: Path) -> list[str]:
    wrong = []
    with h5py.File(path, "r") as h5:
        killed.rows = len(h5["rollout/tick"])
        killed.completeness = str(h5.attrs["completeness"])
        columns = {name: h5["rollout"][name][:] for name in (*EXACT, "send_ns")}
    if killed.rows != killed.handed_over:
        wrong.append(f"{killed.handed_over - killed.rows} records lost")
    if killed.completeness == "truncated":
        wrong.append("the rollout says that it is truncated")
    ring, row = shared["record"], np.zeros((), shared["record"].dtype)
    for seq in range(max(1, ring.head - ring.slots + 1), min(ring.head, killed.rows) + 1):
        if ring.read(seq, row) and any(
            columns[name][seq - 1].tobytes() != row[name].tobytes() for name in EXACT
        ):
            wrong.append(f"row {seq - 1} is not record {seq} of the ring")
            break
    wrong += _unsent(shared, columns)
    for check in examine(path, again=True):
        if check.verdict in (Verdict.BAD, Verdict.LOSS):
            wrong.append(f"{check.name}: {check.text}")
    return wrong


def _unsent(shared: Shared, columns: dict[str, np.ndarray]) -> list[str]:
    """Publications that the gateway's ring knows and the rollout does not, or knows otherwise."""
    sent = shared["sent"]
    entry = np.zeros((), sent.dtype)
    first: dict[int, int] = {}
    for seq in range(max(1, sent.head - sent.slots + 1), sent.head + 1):
        if sent.read(seq, entry) and not entry["repeat"]:
            first.setdefault(int(entry["number"]), int(entry["send_ns"]))
    logged: dict[int, Any] = dict(zip(columns["number"].tolist(), columns["send_ns"].tolist(), strict=True))
    missed = [number for number, when in first.items() if number in logged and logged[number] != when]
    return (
        [f"{len(missed)} commands without their true send time, the first is {missed[0]}"] if missed else []
    )
