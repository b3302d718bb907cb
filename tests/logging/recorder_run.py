"""A recorder process, and what parent, control and gateway do for it."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from onboard.logging.convert import rollout_path
from onboard.logging.journal import create_journal
from onboard.logging.layout import blank_record, journal_dtype, record_dtype
from onboard.runtime.ports import OPERATOR, RECORDER, RUN, SENT, run_layout
from onboard.runtime.shm import Shared
from tests.logging.synthetic import WALK, info

TIMEOUT_S = 30.0
START = [sys.executable, "-m", "onboard.logging.recorder"]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


class Run:
    """One run but for its recorder.

    Args:
        folder: of journal and rollout.
        memory: folder of the shared memory; the journal names its file.
    """

    def __init__(self, folder: Path, memory: Path) -> None:
        self.row = blank_record(record_dtype([WALK]))
        self.shared = Shared.create(run_layout(self.row.dtype), memory)
        self.info = msgspec.structs.replace(info(), memory=str(self.shared.path))
        self.journal = folder / f"{self.info.stem}.journal"
        create_journal(self.journal, journal_dtype(self.row.dtype), msgspec.to_builtins(self.info))
        run = np.zeros((), RUN)
        run["wall_ns"] = self.info.wall_ns
        self.shared["run"].push(run)
        self.operator = np.zeros((), OPERATOR)
        self.status = np.zeros((), RECORDER)
        self.processes: list[subprocess.Popen[str]] = []

    @property
    def rollout(self) -> Path:
        return rollout_path(self.journal)

    def start(
        self, *arguments: str, wrap: Sequence[str] = (), program: Sequence[str] = START
    ) -> subprocess.Popen[str]:
        command = [
            *wrap,
            *program,
            "--shm",
            str(self.shared.path),
            "--journal",
            str(self.journal),
            *arguments,
        ]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.processes.append(process)
        return process

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        before = self.shared["recorder"].head
        process = self.start(*arguments)
        until(lambda: self.shared["recorder"].head > before or process.poll() is not None)
        return process

    def ticks(self, first: int, last: int) -> None:
        sent = np.zeros((), SENT)
        for tick in range(first, last + 1):
            self.row["tick"] = self.row["number"] = tick
            self.row["robot_tick"], self.row["q"] = 20 * tick, tick
            self.row["made_ns"] = self.row["recv_ns"] = time.monotonic_ns()
            self.shared["record"].push(self.row)
            sent["number"], sent["send_ns"], sent["state"] = tick, 7_000 + tick, 1
            self.shared["sent"].push(sent)

    def beat(self, **values: object) -> None:
        for name, value in values.items():
            self.operator[name] = value
        self.operator["heartbeat_ns"] = time.monotonic_ns()
        self.shared["operator"].push(self.operator)

    def recorded(self, rows: int) -> bool:
        self.shared["recorder"].latest(self.status)
        return int(self.status["rows"]) >= rows

    def stop(self, process: subprocess.Popen[str], reason: str = "script finished") -> int:
        self.beat(recorder_stop=1, end_reason=reason.encode())
        return process.wait(TIMEOUT_S)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        self.shared.close()
        self.shared.unlink()
