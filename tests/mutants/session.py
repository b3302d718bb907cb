"""The mutants of one file: made once by cosmic-ray, kept with their results in its own session file.

The file's name carries a hash of the source, so a changed source begins anew; an interrupted run goes
on where it stopped, and cosmic-ray's own tools (`cr-report`, `cr-html`) read it as well.
"""

import hashlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import get_ast
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tests.mutants.rules import is_program, is_unread, unread_spans
from tests.mutants.targets import Target
from tests.mutants.trial import Outcome


class Mutant(NamedTuple):
    """One change of the source."""

    job_id: str
    line: int
    operator: str
    was: str
    """The changed lines, stripped and joined by spaces."""
    now: str
    source: str


def _pickled(tree: object) -> bytes:
    """The parsed file; its nodes nest deeper than the interpreter expects."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return pickle.dumps(tree)
    finally:
        sys.setrecursionlimit(limit)


def changed_lines(before: list[str], after: list[str]) -> tuple[str, str]:
    """What stands between the common head and the common tail, stripped and joined by spaces."""
    short = min(len(before), len(after))
    head = next((i for i in range(short) if before[i] != after[i]), short)
    tail = next((i for i in range(short - head) if before[-1 - i] != after[-1 - i]), short - head)
    was, now = (
        " ".join(line.strip() for line in lines[head : len(lines) - tail]) for lines in (before, after)
    )
    return was, now


class Session:
    """The mutants of one target.

    Args:
        target: what is mutated.
        folder: where the session file lies.
        fresh: forget earlier results.
    """

    def __init__(self, target: Target, folder: Path, *, fresh: bool = False) -> None:
        self.target = target
        self.source = Path(target.path).read_text(encoding="utf-8")
        digest = hashlib.sha256(self.source.encode()).hexdigest()[:12]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{target.module}-{digest}.sqlite"
        if fresh:
            path.unlink(missing_ok=True)
        self._tree = _pickled(get_ast(self.source))
        self._db = WorkDB(str(path), WorkDB.Mode.create)
        if not self._db.num_work_items:
            init([Path(target.path)], self._db, {})
            self._leave_out()

    def _leave_out(self) -> None:
        """Rule out what stands in annotations and strings; what does not compile is found when tried."""
        unread = unread_spans(self.source)
        jobs = [
            item.job_id
            for item in self._db.work_items
            if is_unread(item.mutations[0].start_pos, item.mutations[0].end_pos, unread)
        ]
        self._db.set_multiple_results(
            jobs, WorkResult(WorkerOutcome.SKIPPED, output="in an annotation or a string")
        )

    def _mutated(self, item: WorkItem) -> str:
        """The whole file with one change; a copy of the parsed tree is three times as quick as parsing."""
        mutation = item.mutations[0]
        operator = get_operator(mutation.operator_name)(**mutation.operator_args)
        tree = pickle.loads(self._tree)
        return str(MutationVisitor(mutation.occurrence, operator).walk(tree).get_code())

    def _mutant(self, item: WorkItem) -> Mutant:
        mutation = item.mutations[0]
        text = self._mutated(item)
        was, now = changed_lines(self.source.splitlines(), text.splitlines())
        operator = mutation.operator_name.rpartition("/")[2]
        return Mutant(item.job_id, mutation.start_pos[0], operator, was, now, text)

    def pending(self, sample: int | None, *, survivors: bool) -> Iterator[Mutant]:
        """What is still to be tried, spread over the file.

        Args:
            sample: so many of all the file's mutants that count; None for every one.
            survivors: try again those that survived.
        """
        done = {
            item.job_id
            for item, result in self._db.completed_work_items
            if not (survivors and result.test_outcome is TestOutcome.SURVIVED)
        }
        items = self._counting()
        stride = 1 if sample is None else max(1, len(items) // sample)
        for item in items[::stride]:
            if item.job_id in done:
                continue
            mutant = self._mutant(item)
            if is_program(mutant.source):
                yield mutant
            else:
                skipped = WorkResult(WorkerOutcome.SKIPPED, output="does not compile")
                self._db.set_result(item.job_id, skipped)

    def _counting(self) -> list[WorkItem]:
        """The mutants that count, by their place in the file."""
        skipped = {job for job, result in self._db.results if result.worker_outcome is WorkerOutcome.SKIPPED}
        items = [item for item in self._db.work_items if item.job_id not in skipped]
        return sorted(
            items,
            key=lambda i: (i.mutations[0].start_pos, i.mutations[0].operator_name, i.mutations[0].occurrence),
        )

    def record(self, mutant: Mutant, outcome: Outcome) -> None:
        """Keep a trial's result."""
        survived = outcome.verdict == "survived"
        worker = WorkerOutcome.ABNORMAL if outcome.verdict == "timeout" else WorkerOutcome.NORMAL
        self._db.set_result(
            mutant.job_id,
            WorkResult(
                worker,
                output=outcome.by,
                test_outcome=TestOutcome.SURVIVED if survived else TestOutcome.KILLED,
                diff=f"-{mutant.was}\n+{mutant.now}",
            ),
        )

    def tally(self) -> dict[str, int]:
        """How many mutants were made, left out, tried, killed, timed out and survived."""
        results = [result for _, result in self._db.completed_work_items]
        tried = [result for result in results if result.worker_outcome is not WorkerOutcome.SKIPPED]
        timeouts = sum(result.worker_outcome is WorkerOutcome.ABNORMAL for result in tried)
        survived = sum(result.test_outcome is TestOutcome.SURVIVED for result in tried)
        return {
            "mutants": self._db.num_work_items,
            "left_out": len(results) - len(tried),
            "tried": len(tried),
            "killed": len(tried) - timeouts - survived,
            "timeout": timeouts,
            "survived": survived,
        }

    def survivors(self) -> list[Mutant]:
        """Those that no test noticed, by their place in the file."""
        found = [
            self._mutant(item)
            for item, result in self._db.completed_work_items
            if result.test_outcome is TestOutcome.SURVIVED
        ]
        return sorted(found, key=lambda mutant: (mutant.line, mutant.operator, mutant.now))
