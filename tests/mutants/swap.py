"""Many trials against one collection of tests: a forked child takes over mutated functions, not files.

Starting pytest costs more than most tests that kill a mutant. So the tests are collected once, against
the unmutated module; then, mutant by mutant, a child is forked, in which every function that the mutant
changes receives the mutated code, and the tests run until one fails. That is the same as importing the
mutant only where nothing outside functions changed and where no changed function ran before the tests
did. All other mutants are left to `trial.start`.
"""

import gc
import inspect
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.mutants import trial
from tests.mutants.targets import Target
from tests.mutants.trial import Outcome

Pairs = list[tuple[CodeType, CodeType]]
"""Code of a function before and after."""
Owners = dict[int, list[FunctionType]]
"""By the identity of its code."""
Text = Callable[[int], str]


def changed_functions(before: CodeType, after: CodeType) -> Pairs | None:
    """The functions that differ; None where anything outside of functions does, such as a default."""
    if before.co_flags & inspect.CO_OPTIMIZED:  # a function; a module or a class body is not
        if before == after:
            return []
        return [(before, after)] if before.co_freevars == after.co_freevars else None
    if (before.co_code, before.co_names) != (after.co_code, after.co_names):
        return None
    found: Pairs = []
    for old, new in zip_longest(before.co_consts, after.co_consts):
        if isinstance(old, CodeType) and isinstance(new, CodeType):
            inner = changed_functions(old, new)
            if inner is None:
                return None
            found += inner
        elif repr(old) != repr(new):
            return None
    return found


class Collected:
    """The pytest plugin: notes which functions run before the tests, then runs every trial in a fork.

    Args:
        target: what is mutated, and its tests.
        source: of the unmutated module.
        count: how many mutants there are.
        text: gives the mutated source of one of them.
        workers: trials at a time.
        results: file descriptor that receives pickled pairs of a mutant's index and its outcome, None
            where it can't be tried in this way.
    """

    def __init__(
        self, target: Target, source: str, count: int, text: Text, workers: int, results: int
    ) -> None:
        self._target, self._count, self._text = target, count, text
        self._workers, self._results = workers, results
        self._running: dict[int, tuple[int, Path]] = {}
        self._items: list[pytest.Item] = []
        self._ran: set[CodeType] = set()
        sys.setprofile(self._note)
        self._code = trial.install(target.module, source, target.path)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == self._target.path:
            self._ran.add(frame.f_code)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running the tests once."""
        sys.setprofile(None)
        if session.testsfailed:
            raise session.Interrupted("the tests of the unmutated module can't be collected")
        functions = [f for f in gc.get_objects() if type(f) is FunctionType]
        owners: Owners = {}
        for function in functions:
            owners.setdefault(id(function.__code__), []).append(function)
        durations = _timed(session.items)
        self._items = sorted(session.items, key=lambda item: durations[item.nodeid])
        gc.collect()
        gc.freeze()  # a child's collector would copy every page that it looks at
        for index in range(self._count):
            self._try(index, owners, durations)
        while self._running:
            self._reap()
        return True

    def _try(self, index: int, owners: Owners, durations: dict[str, float]) -> None:
        try:
            after = trial.compiled(self._text(index), self._target.path)
        except SyntaxError:
            self._tell(index, Outcome("no program", "", ()))
            return
        pairs = changed_functions(self._code, after)
        if pairs is None or any(before in self._ran or id(before) not in owners for before, _ in pairs):
            self._tell(index, None)
            return
        if len(self._running) == self._workers:
            self._reap()
        pid, said = trial.fork(lambda: _swapped(pairs, owners, self._items, durations))
        self._running[pid] = index, said

    def _reap(self) -> None:
        pid, status = os.wait()
        index, said = self._running.pop(pid)
        outcome = trial.outcome(status, trial.take(said))
        self._tell(index, outcome)
        # What killed one mutant will probably kill its neighbours.
        self._items.sort(key=lambda item: item.nodeid != outcome.by)

    def _tell(self, index: int, outcome: Outcome | None) -> None:
        data = pickle.dumps((index, outcome))
        os.write(self._results, len(data).to_bytes(4, "little") + data)


def _timed(items: Sequence[pytest.Item]) -> dict[str, float]:
    """CPU seconds of every test, measured in a child, since tests leave traces.

    Raises:
        RuntimeError: a test fails without any mutation.
    """

    def run() -> int:
        for item in items:
            begin = time.process_time()
            if failure := _run(item):
                sys.stdout.write(f"\nFAILED {failure}\n")
                return 1
            sys.stdout.write(f"\n{trial.CPU} {time.process_time() - begin}\n")
        return 0

    pid, said = trial.fork(run)
    _, status = os.waitpid(pid, 0)
    found = trial.outcome(status, trial.take(said))
    if found.verdict != "survived":
        raise RuntimeError(f"a test fails without any mutation: {found.by}")
    return {item.nodeid: cpu_s for item, cpu_s in zip(items, found.cpu_s, strict=True)}


def _swapped(
    pairs: Pairs,
    owners: Owners,
    items: Sequence[pytest.Item],
    durations: dict[str, float],
) -> int:
    """In the child: take the mutated code over, run the tests until one fails."""
    for before, after in pairs:
        for function in owners[id(before)]:
            function.__code__ = after
    for item in items:
        trial.limit_cpu(2 * durations[item.nodeid] + 1)
        if failure := _run(item):
            sys.stdout.write(f"\nFAILED {failure}\n")
            return 1
    return 0


def _run(item: pytest.Item) -> str:
    """One test; its name where it fails."""
    reports = runtestprotocol(item, log=False, nextitem=None)
    return item.nodeid if any(report.failed for report in reports) else ""


def trials(
    target: Target, source: str, total: int, text: Text, workers: int
) -> Iterator[tuple[int, Outcome | None]]:
    """Index and outcome of every mutant, as they end; None where it needs a process of its own."""
    reader, writer = os.pipe()

    def run() -> int:
        os.close(reader)
        plugin = Collected(target, source, total, text, workers, writer)
        return int(pytest.main([*trial.OPTIONS, "--capture=no", *target.tests], plugins=[plugin]))

    pid, said = trial.fork(run)
    os.close(writer)
    count = 0
    with os.fdopen(reader, "rb") as results:
        while size := results.read(4):
            yield pickle.loads(results.read(int.from_bytes(size, "little")))
            count += 1
    os.waitpid(pid, 0)
    output = trial.take(said)
    if count < total:
        raise RuntimeError(f"{target.path}: only {count} of {total} trials ended:\n{output[-4000:]}")
