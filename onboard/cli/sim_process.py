"""A simulated robot as a child process, driven by lines on its standard input."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from onboard.configs.errors import LinkError

STOP_S = 10.0


class SimProcess:
    """`onboard sim` in a process of its own, ended with the context.

    Args:
        arguments: of the verb.
        summary: file for its figures.
        environment: variables to add to this process's own.
    """

    def __init__(
        self, arguments: list[str], summary: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._summary = summary
        command = [
            sys.executable,
            "-m",
            "onboard",
            "sim",
            *arguments,
            "--realtime",
            "--with-parent",
            "--json",
            str(summary),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )

    def __enter__(self) -> "SimProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def tell(self, line: str) -> None:
        """One line of the simulator's command language.

        Raises:
            LinkError: the simulator has ended; its own words are in the message.
        """
        if self._process.stdin is None or self._process.poll() is not None:
            errors = self._process.stderr.read().strip().splitlines() if self._process.stderr else []
            raise LinkError(f"the simulator has ended: {errors[-1] if errors else 'without a word'}")
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def close(self) -> dict[str, Any]:
        """End it; its figures, {} when it left none."""
        if self._process.poll() is None:
            try:
                self._process.communicate("quit\n", timeout=STOP_S)
            except (subprocess.TimeoutExpired, BrokenPipeError):
                self._process.kill()
                self._process.communicate()
        for stream in (self._process.stdin, self._process.stderr):
            if stream is not None:
                stream.close()
        if not self._summary.exists():
            return {}
        figures: dict[str, Any] = json.loads(self._summary.read_text(encoding="utf-8"))
        return figures
