"""The mutants of one file: made once by cosmic-ray, kept with their results in its own session file.

The file's name carries a hash of the source, so a changed source begins anew; an interrupted run goes
on where it stopped, and cosmic-ray's own tools (`cr-report`, `cr-html`) read it as well.
"""

import hashlib
import pickle
import sys
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import get_ast
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tests.mutants.rules import ruled_places, why_left_out
from tests.mutants.targets import Target
from tests.mutants.trial import Outcome


class Mutant(NamedTuple):
    """One change of the source; its text is made when it is asked for."""

    item: WorkItem
    line: int
    operator: str


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
        """Rule out what says nothing by its place; what does not compile is found when it is tried."""
        ruled = ruled_places(self.source)
        found: dict[str, list[str]] = {}
        for item in self._db.work_items:
            mutation = item.mutations[0]
            why = why_left_out(mutation.start_pos, mutation.end_pos, mutation.operator_name, ruled)
            if why:
                found.setdefault(why, []).append(item.job_id)
        for why, jobs in found.items():
            self._db.set_multiple_results(jobs, WorkResult(WorkerOutcome.SKIPPED, output=why))

    def text(self, mutant: Mutant) -> str:
        """The whole file with one change; a copy of the parsed tree is three times as quick as parsing."""
        mutation = mutant.item.mutations[0]
        operator = get_operator(mutation.operator_name)(**mutation.operator_args)
        tree = pickle.loads(self._tree)
        return str(MutationVisitor(mutation.occurrence, operator).walk(tree).get_code())

    def change(self, mutant: Mutant) -> tuple[str, str]:
        """The changed lines before and after, stripped and joined by spaces."""
        return changed_lines(self.source.splitlines(), self.text(mutant).splitlines())

    def pending(self, sample: int | None, *, survivors: bool) -> list[Mutant]:
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
        return [_mutant(item) for item in items[::stride] if item.job_id not in done]

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
        if outcome.verdict == "no program":
            self._db.set_result(
                mutant.item.job_id, WorkResult(WorkerOutcome.SKIPPED, output="does not compile")
            )
            return
        survived = outcome.verdict == "survived"
        worker = WorkerOutcome.ABNORMAL if outcome.verdict == "timeout" else WorkerOutcome.NORMAL
        test = TestOutcome.SURVIVED if survived else TestOutcome.KILLED
        self._db.set_result(mutant.item.job_id, WorkResult(worker, output=outcome.by, test_outcome=test))

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
            _mutant(item)
            for item, result in self._db.completed_work_items
            if result.test_outcome is TestOutcome.SURVIVED
        ]
        return sorted(found, key=lambda mutant: (mutant.line, mutant.operator))


def _mutant(item: WorkItem) -> Mutant:
    mutation = item.mutations[0]
    return Mutant(item, mutation.start_pos[0], mutation.operator_name.rpartition("/")[2])
