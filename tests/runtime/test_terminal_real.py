"""Keys over a terminal of its own, as over SSH, and what is left of a run when that terminal goes."""

import contextlib
import fcntl
import json
import os
import pty
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from onboard.cli.sim_process import SimProcess
from onboard.configs.events import Mode
from onboard.logging.rollout import Rollout
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.parent import Statuses
from onboard.runtime.shm import Shared, ShmError, default_folder
from tests.runtime.flight import POLICY, plan

PATIENCE_S = 60.0


class Remote:
    """An `onboard run` whose only terminal hangs on this process, as that of an SSH session."""

    def __init__(self, domain: int, folder: Path, *extra: str) -> None:
        self._master, slave = pty.openpty()
        command = [sys.executable, "-m", "onboard", "run", POLICY, "--domain", str(domain), "--gantry"]
        command += ["--keyboard", "--out", str(folder / "out"), "--json", str(folder / "run.json"), *extra]
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        os.set_blocking(self._master, False)
        self._status: Statuses | None = None
        self._shared: Shared | None = None

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    @property
    def mode(self) -> Mode | None:
        """Control's mode; None before it ticks."""
        with contextlib.suppress(OSError):
            os.read(self._master, 65536)  # what the run tells, so that the terminal does not fill up
        if self._status is None:
            try:
                self._shared = Shared.open(next(default_folder().glob(f"onboard-{self.process.pid}-*.shm")))
            except (StopIteration, ShmError):
                return None
            self._status = Statuses(self._shared)
        self._status.read()
        return self._status.mode if self._status.control["heartbeat_ns"] else None

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition while the run goes on."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, "the run ended"
            assert time.monotonic() < end, f"the condition did not come true in mode {self.mode}"
            time.sleep(0.01)

    def start(self) -> None:
        """Press start until the robot ramps: while it still falls into damping a start is refused."""
        pressed_s = 0.0

        def ramps() -> bool:
            nonlocal pressed_s
            if self.mode is not Mode.RAMP and time.monotonic() - pressed_s > 0.5:
                pressed_s = time.monotonic()
                self.type("1")
            return self.mode is Mode.RAMP

        self.until(ramps)

    def hang_up(self) -> None:
        """The link goes, and the terminal with it."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        """Leave nothing behind."""
        if self._master >= 0:
            self.hang_up()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self._shared is not None:
            self._shared.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "through", "exit_code"),
    [((), Mode.DAMP, 3), (("--safety-set", "events.TERMINAL_LOST.tier=settle"), Mode.HOLD, 3)],
)
def test_keys_damp_and_a_lost_terminal_ends_in_the_tables_tier(
    tmp_path: Path, extra: tuple[str, ...], through: Mode, exit_code: int
) -> None:
    plan()  # skips where the policy is not installed
    hanging = ("--gantry", "--released", "--start-pose", "crouch")
    with free_domain_id() as domain, SimProcess(["--domain", str(domain), *hanging], tmp_path / "sim.json"):
        run = Remote(domain, tmp_path, *extra)
        try:
            run.until(lambda: run.mode is not None)
            run.start()
            run.type(" ")
            run.until(lambda: run.mode is Mode.DAMP)
            run.start()
            run.until(lambda: run.mode is Mode.HOLD)
            run.hang_up()
            assert run.process.wait(PATIENCE_S) == exit_code
        finally:
            run.close()
    result = json.loads((tmp_path / "run.json").read_text())
    assert {"EMERGENCY_STOP", "TERMINAL_LOST"} <= {*result["events"]}
    with Rollout(Path(result["rollout"])) as rollout:
        lost = (rollout.column("safety_events").astype("u8") >> 42 & 1).astype(bool)
        modes = rollout.column("mode")[lost]
        assert rollout.attributes["completeness"] == "complete"
    assert modes[0] == through
    assert modes[-1] == Mode.DAMP
