"""One worker process: makes cases, reads them under guard, and writes down how far it is.

What it does can end the process (a fault in native code) or never return, so whoever started it looks
at the tally, which is a small shared file, and at the case, which lies in the folder until the next.
"""

import faulthandler
import json
import shutil
import struct
import sys
import warnings
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from onboard.configs.errors import OnboardError
from tests.fuzz.guard import Guard
from tests.fuzz.kinds import KINDS
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.mutate import Files, Strategy

CASE = "case"
"""Folder of the case at hand."""

BATCH = 1000
"""Cases of one run of hypothesis, which keeps what it has drawn in memory until its end."""

TALLY = struct.Struct("<QQQ")
"""Cases begun, refused, accepted."""


def store(folder: Path, files: Files) -> None:
    """Empty the folder and put the files there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Work:
    """Cases of one kind.

    Args:
        kind: which.
        guard: watches over the folder of the case at hand.
        folder: of the worker.
    """

    def __init__(self, kind: Kind, guard: Guard, folder: Path) -> None:
        self._kind = kind
        self._case = folder / CASE
        self._tally = (folder / f"{kind.name}.tally").open("wb", buffering=0)
        self._failures = folder / f"{kind.name}.failures"
        self._kept: set[str] = set()
        self._guard = guard
        self.begun = self._refused = self._accepted = 0

    def run(self, count: int, first_seed: int) -> None:
        """That many cases; the same seed makes the same ones."""
        cases = self._kind.cases()
        self._guard.limit_memory()
        number = first_seed
        while self.begun < count:
            self._some(cases, min(BATCH, count - self.begun), number)
            number += 1

    def _some(self, cases: Strategy, count: int, number: int) -> None:
        @seed(number)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(cases)
        def each(files: Files) -> None:
            self._one(files)

        each()

    def _one(self, files: Files) -> None:
        store(self._case, files)
        self.begun += 1
        self._count()
        accepted, wrong = self._guard.run(self._kind.read, self._kind.where)
        self._accepted += accepted
        self._refused += not accepted
        self._count()
        if wrong is not None:
            self._keep(wrong)

    def _keep(self, wrong: str) -> None:
        """Note a failure, the first of each sort."""
        sort = wrong.split(" < ")[-1] if " < " in wrong else wrong[:60]
        if sort in self._kept or len(self._kept) > 50:
            return
        self._kept.add(sort)
        copy = self._failures.parent / f"{self._kind.name}-{self.begun}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._case, copy)
        with self._failures.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"case": self.begun, "wrong": wrong, "files": str(copy)}) + "\n")

    def _count(self) -> None:
        self._tally.seek(0)
        self._tally.write(TALLY.pack(self.begun, self._refused, self._accepted))


def replay(kind: Kind, folder: Path) -> str:
    """Read a case that was kept: what came of it, in a line."""
    guard = Guard(folder)
    try:
        where = None if kind.where == f"/{CASE}" else kind.where  # the folder has another name by now
        accepted, wrong = guard.run(kind.read, where)
        return wrong or ("accepted" if accepted else _refusal(kind, folder))
    except OnboardError as error:
        return str(error)


def _refusal(kind: Kind, folder: Path) -> str:
    try:
        kind.read(folder)
    except OnboardError as error:
        return f"refused: {error}"
    return "accepted"


def main() -> None:
    """`python -m tests.fuzz.worker FOLDER SEED {"KIND": COUNT, ...}`."""
    place, number, wanted = sys.argv[1:]
    faulthandler.enable()
    warnings.simplefilter("ignore")
    folder = Path(place)
    guard = Guard(folder / CASE)
    for name, count in json.loads(wanted).items():
        Work(KINDS[name], guard, folder).run(count, int(number))


if __name__ == "__main__":
    main()
