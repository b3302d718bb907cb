"""Shared memory of runs that ended badly: kept while a journal needs it, removed when none does."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from onboard.configs.errors import RolloutError
from onboard.logging.recovery import scan
from onboard.runtime.ports import RUN
from onboard.runtime.shm import Shared, ShmError, default_folder
from onboard.runtime.snapshot import is_alive


def is_closed(journal: Path) -> bool:
    """Whether a journal needs nothing more from its run's memory: converted, or closed in order."""
    try:
        return not journal.exists() or scan(journal).end is not None
    except RolloutError:
        return False


def sweep(say: Callable[[str], None], folder: Path | None = None) -> None:
    """Remove the shared memory of runs that were killed; name the journals that still need theirs.

    Args:
        say: takes one line for the operator.
        folder: of the mappings; where runs put them by default.
    """
    for path in sorted((folder or default_folder()).glob("onboard-*.shm")):
        if is_alive(path):
            continue
        try:
            journal = _journal_of(path)
        except ShmError:
            continue  # of another version
        if journal is not None and journal.exists():
            say(f"note: an earlier run was killed; make its rollout with: onboard log recover {journal}")
        else:
            path.unlink(missing_ok=True)


def _journal_of(mapping: Path) -> Path | None:
    """Journal of the run that made a mapping; None when it died before it had one.

    Raises:
        ShmError: not a mapping of this version.
    """
    shared = Shared.open(mapping, read_only=True)
    try:
        if shared.layout.get("run", (None,))[0] != RUN:
            raise ShmError(f"{mapping}: of another version")
        row = np.zeros((), RUN)
        known = shared["run"].latest(row)
        return Path(os.fsdecode(row["journal"].item())) if known else None
    finally:
        shared.close()
