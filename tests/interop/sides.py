"""Runs two sides of an interoperability test against each other and reads their reports."""

import json
import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO

from tests.interop.pattern import ENOUGH

ROOT = Path(__file__).resolve().parents[2]


class Side:
    """One process, `python -m tests.interop.MODULE ARGUMENTS`, that lives as long as the context."""

    def __init__(self, python: str, module: str, *arguments: str) -> None:
        self.name = f"{module} {' '.join(arguments)}"
        self._command = [python, "-m", f"tests.interop.{module}", *arguments]
        self._process: subprocess.Popen[str]

    def start(self, prefix: Sequence[str] = ()) -> "Side":
        """Start it; `prefix` runs it somewhere else, like in a network namespace."""
        self._process = subprocess.Popen(
            [*prefix, *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        return self

    def report(self) -> None:
        """Wait for its line; assert that enough good messages came, and nothing else."""
        for line in _open(self._process.stdout):
            if line.startswith('{"good"'):
                result = json.loads(line)
                assert not result["faults"], f"{self.name}: {result['faults']}"
                assert result["good"] >= ENOUGH, f"{self.name}: only {result['good']} messages came"
                return
        self.end()
        raise AssertionError(f"{self.name}: ended without a report")

    def end(self) -> None:
        """Tell it to end, and assert that it did not crash."""
        _, errors = self._process.communicate(timeout=20)
        code = self._process.returncode
        assert code == 0, f"{self.name}: exit code {code}: {errors[-2000:]}"

    def __enter__(self) -> "Side":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            _open(pipe).close()


def run_against(*sides: Side, prefix: Sequence[str] = ()) -> None:
    """Every side must report enough good messages, and every side must end well."""
    with ExitStack() as running:
        for side in sides:
            running.enter_context(side.start(prefix))
        try:
            for side in sides:
                side.report()
        finally:  # a crash of one shows as silence of the other, so look at every end first
            for side in sides:
                side.end()


def _open(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
