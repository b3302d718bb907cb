"""What a case may not do: run code, write or read elsewhere, take too long or too much memory, end oddly.

The guard stands in a worker process of its own; see `worker`.
"""

import contextlib
import os
import re
import resource
import signal
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from onboard.configs.errors import OnboardError
from tests.fuzz.mutate import PLANTED

CPU_S = 5.0
"""Processor time of one case."""
MEMORY_BYTES = 1 << 30
"""Address space of the worker beyond what it has once everything is imported."""
LONGEST_LINE = 1200

_RUNS_CODE = re.compile(r"os\.(system|exec|posix_spawn|fork|forkpty|startfile)|subprocess\.Popen|socket\.")
_WRITES = re.compile(r"os\.(remove|rename|rmdir|mkdir|link|symlink|truncate|chmod)|shutil\.")
_READABLE = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/etc/localtime", "/usr/share/zoneinfo")


class ForbiddenError(BaseException):
    """A case did what no input may make the program do; not to be caught on the way."""


class TooLongError(BaseException):
    """A case used up its time."""


class Guard:
    """Watches one case at a time.

    Args:
        folder: the only place that may be written to and, beside the program's own files, read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = os.path.realpath(folder)
        places = [
            *sysconfig.get_paths().values(),
            sys.prefix,
            sys.base_prefix,
            str(Path(__file__).parents[2]),
        ]
        self._readable = tuple({os.path.realpath(place) for place in places}) + _READABLE
        self._on = False
        self._seen: str | None = None
        sys.addaudithook(self._hear)
        signal.signal(signal.SIGPROF, self._late)

    def limit_memory(self) -> None:
        """From now on the process may take `MEMORY_BYTES` more, and leave no core behind."""
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def run(self, read: Callable[[Path], object], where: str | None) -> tuple[bool, str | None]:
        """Read one case.

        Args:
            read: reads what lies in the folder.
            where: what a refusal must name; None where nothing has a name.

        Returns:
            Whether it was accepted, and what went wrong, or None.
        """
        self._seen = None
        try:
            with self._watched():
                read(Path(self._folder))
        except OnboardError as error:
            return False, self._seen or judge_refusal(error, where)
        except (Exception, ForbiddenError, TooLongError) as error:
            return False, self._seen or f"{type(error).__name__}: {str(error)[:300]}{place_of(error)}"
        if Path(PLANTED).exists():
            return True, "code inside the input was run"
        return True, self._seen

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        tempfile.tempdir = self._folder  # a journal is recovered into a temporary folder
        self._on = True
        try:
            yield
        finally:
            self._on = False
            tempfile.tempdir = None
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _late(self, _number: int, _frame: FrameType | None) -> None:
        if self._on:
            raise TooLongError(f"more than {CPU_S:g} s of processor time")

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if _RUNS_CODE.match(event):
            self._forbid(f"{event}{arguments!r:.200}")
        elif event == "open" and isinstance(arguments[0], str | bytes):
            self._check_open(os.fsdecode(arguments[0]), arguments[1], arguments[2])
        elif _WRITES.match(event) and not self._inside(arguments[0]):
            self._forbid(f"{event}{arguments!r:.200}")

    def _check_open(self, path: str, mode: str | None, flags: int) -> None:
        written = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if mode is None else set(mode) & set("wax+")
        if self._inside(path):
            return
        if written or not os.path.realpath(path).startswith(self._readable):
            self._forbid(f"opens {path!r:.200} ({mode or flags})")

    def _inside(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return True
        with contextlib.suppress(ValueError):
            real = os.path.realpath(os.fsdecode(path))
            return real == self._folder or real.startswith(f"{self._folder}{os.sep}")
        return True

    def _forbid(self, what: str) -> None:
        self._on = False
        self._seen = f"forbidden: {what}"
        raise ForbiddenError(self._seen)


def judge_refusal(error: OnboardError, where: str | None) -> str | None:
    """What is wrong with the message of a refusal; None for nothing."""
    line = str(error)
    if not line.isprintable():
        return f"the message is not one printable line: {line[:300]!r}{place_of(error)}"
    if not 10 <= len(line) <= LONGEST_LINE:
        return f"the message has {len(line)} characters: {line[:200]!r}{place_of(error)}"
    if where is not None and where not in line:
        return f"the message does not name {where}: {line[:300]!r}{place_of(error)}"
    return None


def place_of(error: BaseException) -> str:
    """Where it was raised, the innermost place in the package last."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/onboard/" in f.filename]
    return "".join(f" < {Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-3:]))
