"""Starts workers, follows their tallies, and turns a dead or stuck one into a failure."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.fuzz.kinds import KINDS
from tests.fuzz.worker import CASE, TALLY

MOST_FAILURES = 20
"""Of one kind; then it is left."""
ERROR_LINE = re.compile(r"[A-Za-z_][\w.]*(: |$)")
"""Of a traceback the line that names the exception; hypothesis adds a note behind it."""
STUCK_S = 120.0
"""A worker whose tally stands still for so long is stuck in native code; case and start both fit in."""
LOOK_S = 0.1
ROOT = Path(__file__).parents[2]


@dataclass
class Failure:
    """What went wrong.

    Attributes:
        kind: of input.
        seed: that the worker was started with.
        case: number of the case from that seed on.
        wrong: in words.
        files: folder with the case, for `--replay`.
    """

    kind: str
    seed: int
    case: int
    wrong: str
    files: str


@dataclass
class Result:
    """One kind's row."""

    kind: str
    cases: int = 0
    refused: int = 0
    accepted: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


Told = Callable[[Result], None]


def fuzz(wanted: dict[str, int], seed: int, keep: Path, tell: Told = lambda _result: None) -> list[Result]:
    """Run the cases of some kinds, one kind after the other.

    Args:
        wanted: how many cases, by kind.
        seed: of the first worker; one that died is followed by one with the next seed.
        keep: folder for the cases that failed.
        tell: called several times a second with the row of the kind at hand.
    """
    results = {name: Result(name) for name in wanted}
    with _scratch() as scratch:
        while left := {
            name: wanted[name] - row.cases for name, row in results.items() if _goes_on(row, wanted)
        }:
            before = {name: replace(row) for name, row in results.items()}
            wrong = _follow(left, seed, scratch, before, results, tell)
            for name, row in results.items():
                row.failures += [
                    _kept(name, seed, line, keep) for line in _lines(scratch / f"{name}.failures")
                ]
            if wrong is not None:
                name = _at_hand(left, results, before)
                case = results[name].cases - before[name].cases
                files = _move(scratch / CASE, keep / f"{name}-{seed}-{case}")
                results[name].failures.append(Failure(name, seed, case, wrong, str(files)))
            seed += 1
    return list(results.values())


def _goes_on(row: Result, wanted: dict[str, int]) -> bool:
    return row.cases < wanted[row.kind] and len(row.failures) < MOST_FAILURES


def _at_hand(left: dict[str, int], results: dict[str, Result], before: dict[str, Result]) -> str:
    """The kind that a worker has come to: the last of which it has begun a case."""
    begun = [name for name in left if results[name].cases > before[name].cases]
    return begun[-1] if begun else next(iter(left))


def _follow(
    left: dict[str, int],
    seed: int,
    scratch: Path,
    before: dict[str, Result],
    results: dict[str, Result],
    tell: Told,
) -> str | None:
    """One worker from start to end; what ended it, None where it did its work."""
    for name in left:
        for old in (f"{name}.failures", f"{name}.tally"):
            (scratch / old).unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.worker", str(scratch), str(seed), json.dumps(left)]
    said = scratch / "said"
    with said.open("wb") as output:
        worker = subprocess.Popen(
            command, cwd=scratch / "cwd", stdout=output, stderr=output, env=_environment()
        )
        moved, last, looked = time.monotonic(), -1, time.monotonic()
        try:
            while worker.poll() is None:
                time.sleep(LOOK_S)
                _add_all(left, scratch, before, results)
                row, now = results[_at_hand(left, results, before)], time.monotonic()
                row.seconds, looked = row.seconds + now - looked, now
                tell(row)
                if row.cases != last:
                    moved, last = now, row.cases
                elif now - moved > STUCK_S:
                    return f"no end after {STUCK_S:g} s"
        finally:
            worker.kill()
            worker.wait()
            _add_all(left, scratch, before, results)
    if worker.returncode == 0:
        return None
    text = said.read_text(errors="replace").strip()
    error = next((line for line in reversed(text.splitlines()) if ERROR_LINE.match(line)), text[-600:])
    if worker.returncode > 0:
        raise RuntimeError(f"the worker itself failed, while making cases or before: {error}")
    return f"ended by signal {-worker.returncode}: {text[-600:]}"


def _add_all(
    left: dict[str, int], scratch: Path, before: dict[str, Result], results: dict[str, Result]
) -> None:
    for name in left:
        _add(before[name], _read_tally(scratch / f"{name}.tally"), results[name])


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}


@contextmanager
def _scratch() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="onboard-fuzz-", dir=memory if memory.is_dir() else None) as name:
        (Path(name) / "cwd").mkdir()
        yield Path(name)


def _read_tally(path: Path) -> tuple[int, int, int]:
    raw = path.read_bytes() if path.exists() else b""
    begun, refused, accepted = TALLY.unpack(raw) if len(raw) == TALLY.size else (0, 0, 0)
    return begun, refused, accepted


def _add(before: Result, tally: tuple[int, int, int], result: Result) -> None:
    begun, refused, accepted = tally
    result.cases = before.cases + begun
    result.refused = before.refused + refused
    result.accepted = before.accepted + accepted


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _kept(name: str, seed: int, line: dict[str, Any], keep: Path) -> Failure:
    files = _move(Path(line["files"]), keep / f"{name}-{seed}-{line['case']}")
    return Failure(name, seed, line["case"], line["wrong"], str(files))


def _move(files: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    if files.exists():
        shutil.copytree(files, target)
    return target


def known(names: list[str]) -> list[str]:
    """The kinds that names, or beginnings of names, stand for; all for none.

    Raises:
        ValueError: one stands for nothing.
    """
    found: dict[str, None] = {}
    for name in names or [""]:
        hits = [kind for kind in KINDS if kind == name] or [kind for kind in KINDS if kind.startswith(name)]
        if not hits:
            raise ValueError(f"no kind '{name}'; there are: {', '.join(KINDS)}")
        found |= dict.fromkeys(hits)
    return list(found)
