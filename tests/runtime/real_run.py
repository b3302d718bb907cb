"""A real run for tests: simulator, parent, gateway, control and recorder as processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from onboard.cli import log_replay
from onboard.cli.sim_process import SimProcess
from onboard.configs.events import Mode, names
from onboard.runtime import idl
from onboard.runtime.clock import wall_clock_ns
from onboard.runtime.dds import DdsDomain
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.parent import Statuses
from onboard.runtime.shm import Shared, ShmError, default_folder
from onboard.runtime.wire import LowCmdDecoder
from tests.runtime.flight import POLICY, plan

RAMP = "steps:\n  - {press: start, until: ramp, for_s: 60}\n"
"""Script that ramps and then waits; whatever takes the mode down ends the run."""
WALK = (
    "steps:\n  - {press: start, until: ramp}\n  - {until: hold}\n"
    "  - {press: go, until: policy, velocity: [0.5, 0, 0], for_s: 60}\n"
)
"""Script that walks until something ends the run."""

PATIENCE_S = 150.0
"""More than a run itself waits for its slowest start (three children, 20 s each) and a script's steps (15 s
each), so that on a starved machine it is the run that says what did not happen."""


class Frame(NamedTuple):
    """One message on rt/lowcmd."""

    time_ns: int  # sender's CLOCK_REALTIME
    writer: int
    damping: bool
    valid: bool
    crc: int
    """Of the content: a repeated target has the same."""


class Tap:
    """Listens to rt/lowcmd."""

    def __init__(self, dds: DdsDomain) -> None:
        self.dds = dds
        self._reader = dds.reader("rt/lowcmd", idl.LowCmd, depth=4096)
        self._decoder = LowCmdDecoder()
        self.frames: list[Frame] = []

    def listen(self) -> list[Frame]:
        """Everything since the start, the newest included."""
        for sample in self._reader.take_all():
            valid = self._decoder.decode(sample.raw)
            damping = bool((self._decoder.kp == 0).all())
            crc = int.from_bytes(sample.raw[-4:], "little")
            self.frames.append(Frame(sample.source_time_ns, sample.writer, damping, valid, crc))
        return self.frames


class RealRun:
    """One `onboard run` beside one simulator.

    Attributes:
        sim: takes lines of the simulator's command language.
        tap: what goes over rt/lowcmd.
        pid: of the parent.
        signalled_ns: when the last signal was sent, CLOCK_REALTIME; 0 before the first.

    `program` is the module that takes the command line of `onboard`.
    """

    def __init__(
        self,
        folder: Path,
        script: str,
        sim: SimProcess,
        tap: Tap,
        *extra: str,
        program: str = "onboard",
        environment: Mapping[str, str] | None = None,
        stdin: int | None = None,
    ) -> None:
        self.folder = folder
        self.sim = sim
        self.tap = tap
        self._program = program
        (folder / "script.yaml").write_text(script)
        arguments = [
            "run",
            POLICY,
            "--domain",
            str(tap.dds.id),
            "--gantry",
            "--release",
            "--out",
            str(folder / "out"),
        ]
        arguments += ["--script", str(folder / "script.yaml"), "--json", str(folder / "run.json"), *extra]
        self._said = folder / "said.txt"  # a pipe that nobody reads would fill up and stop the run
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", program, *arguments],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env={**os.environ, **(environment or {})},
            )
        self.pid = self._process.pid
        self.signalled_ns = 0
        self._pressed_s = 0.0
        self._status: Statuses | None = None
        self._shared: Shared | None = None

    @property
    def mode(self) -> Mode:
        """Control's mode, DAMP before there is one."""
        if self._status is None:
            try:
                self._shared = Shared.open(next(default_folder().glob(f"onboard-{self.pid}-*.shm")))
            except (StopIteration, ShmError):
                return Mode.DAMP  # not made yet, or not filled yet
            self._status = Statuses(self._shared)
        self._status.read()
        return self._status.mode

    @property
    def velocity(self) -> tuple[float, float, float]:
        """Velocity command that control follows; after a look at `mode`."""
        assert self._status is not None
        vx, vy, wz = (float(value) for value in self._status.control["velocity"])
        return vx, vy, wz

    @property
    def events(self) -> list[str]:
        """Names of the safety events so far; after a look at `mode`."""
        assert self._status is not None
        return names(int(self._status.control["events_seen"]))

    @property
    def ticking(self) -> bool:
        """Control's loop runs; after a look at `mode`."""
        return self._status is not None and bool(self._status.control["heartbeat_ns"])

    @property
    def mapping(self) -> Path:
        """File of the run's shared memory; after a look at `mode`."""
        assert self._shared is not None
        return self._shared.path

    @property
    def running(self) -> bool:
        """The parent has not ended."""
        return self._process.poll() is None

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition while the run goes on."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if self._process.poll() is not None:
                raise AssertionError(f"the run ended: {self.errors()}")
            assert time.monotonic() < end, f"the condition did not come true; {self._picture()}"
            self.tap.listen()
            time.sleep(0.002)

    def _picture(self) -> str:
        """What the run is doing, for a wait that ran out; ends the run to read its words."""
        mode, load = self.mode, os.getloadavg()[0]
        reason = self._status.control["reason"].item().decode() if self._status else "no shared memory"
        self._process.kill()
        return f"mode {mode.name} ({reason}), load {load:.1f}, it said: {self.errors()}"

    def until_mode(self, mode: Mode) -> None:
        """Wait for a mode; confirms the release of the built-in controller meanwhile."""

        def reached() -> bool:
            self._confirm()
            return self.mode is mode

        self.until(reached)

    def _confirm(self) -> None:
        """Press START on the remote now and then, until control runs."""
        if self.mode is Mode.DAMP and time.monotonic() - self._pressed_s > 0.5:
            self._pressed_s = time.monotonic()
            self.sim.tell("press start 0.1")

    def child(self, module: str) -> int:
        """Process id of a child."""
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
                command = (status.parent / "cmdline").read_text()
            except (OSError, IndexError):
                continue
            if parent == self.pid and module in command.split("\0"):
                return int(status.parent.name)
        raise AssertionError(f"no child {module}")

    def left_over(self) -> list[int]:
        """Ids of the run's processes but the parent, children of its children and orphans included."""
        return [pid for pid in _processes(f"onboard-{self.pid}-") if pid != self.pid]

    def signal(self, number: int, module: str = "") -> None:
        """Send a signal to the parent, or to the child that runs a module."""
        pid = self.child(module) if module else self.pid
        self.signalled_ns = wall_clock_ns()
        os.kill(pid, number)

    def end(self, patience_s: float = PATIENCE_S) -> tuple[int, dict[str, Any]]:
        """Wait for the end; exit code and JSON result ({} when there is none).

        Whatever the end was: what a policy saw and said must come out of the rollout again. A long run's
        rollout takes a while to write, hence the patience.
        """
        until = time.monotonic() + patience_s
        while self._process.poll() is None:
            assert time.monotonic() < until, "the run did not end"
            self._confirm()
            self.tap.listen()
            time.sleep(0.005)
        self.tap.listen()
        path = self.folder / "run.json"
        result = json.loads(path.read_text()) if path.exists() else {}
        if self._program == "onboard" and result.get("rows") and result["rollout"]:
            assert log_replay.run([result["rollout"]]) == 0, "the rollout does not replay"
        return self._process.returncode, result

    def errors(self) -> str:
        """What the run has written to standard error."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for left in _processes(f"onboard-{self.pid}-"):
            os.kill(left, signal.SIGKILL)
        if self._shared is not None:
            self._shared.close()
        for mapping in default_folder().glob(f"onboard-{self.pid}-*.shm"):
            mapping.unlink()


def _processes(part: str) -> list[int]:
    """Ids of the processes whose command line holds a part."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if part in path.read_text():
                found.append(int(path.parent.name))
    return found


@contextmanager
def real_run(
    folder: Path,
    script: str = RAMP,
    *extra: str,
    gantry_m: float = 0.9,
    program: str = "onboard",
    sim_options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    sim_environment: Mapping[str, str] | None = None,
    stdin: int | None = None,
) -> Iterator[RealRun]:
    """A robot on the gantry and a run that releases and commands it.

    The environments are added to this process's own, for the run's processes and the simulator's.
    """
    plan()  # skips where the policy is not installed
    with free_domain_id() as domain, DdsDomain(domain, "lo") as dds:
        hanging = ["--domain", str(domain), "--gantry", "--start-pose", "crouch"]
        hanging += ["--set", f"gantry.height_m={gantry_m}", *sim_options]
        with SimProcess(hanging, folder / "sim.json", sim_environment) as sim:
            run = RealRun(
                folder, script, sim, Tap(dds), *extra, program=program, environment=environment, stdin=stdin
            )
            try:
                yield run
            finally:
                run.close()
