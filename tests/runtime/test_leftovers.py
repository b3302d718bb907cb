"""Shared memory of killed runs: kept while a journal needs it, then removed by the next run."""

from pathlib import Path

import numpy as np
import pytest

from onboard.logging.journal import Journal, create_journal
from onboard.runtime.leftovers import is_closed, sweep
from onboard.runtime.link import COMMAND
from onboard.runtime.ports import RUN
from onboard.runtime.shm import Shared

NOBODY = 4_194_304
"""Above the largest process id there can be."""
SMALL = np.dtype([("tick", "<u8")])


def mapping(folder: Path, journal: Path | None, pid: int = NOBODY) -> Path:
    shared = Shared.create({"command": (COMMAND, 2), "run": (RUN, 1)}, folder)
    if journal is not None:
        row = np.zeros((), RUN)
        row["journal"] = str(journal).encode()
        shared["run"].push(row)
    shared.close()
    return shared.path.rename(folder / f"onboard-{pid}-x.shm")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    create_journal(tmp_path / "run.journal", SMALL, {})
    return tmp_path / "run.journal"


def test_memory_that_a_journal_needs_is_kept_and_named(tmp_path: Path, journal: Path) -> None:
    said: list[str] = []
    path = mapping(tmp_path, journal)
    sweep(said.append, tmp_path)
    assert said == [f"note: an earlier run was killed; make its rollout with: onboard log recover {journal}"]
    assert path.exists()


@pytest.mark.parametrize("named", [True, False])
def test_memory_that_nobody_needs_is_removed(tmp_path: Path, named: bool) -> None:
    said: list[str] = []
    path = mapping(tmp_path, tmp_path / "gone.journal" if named else None)
    sweep(said.append, tmp_path)
    assert not said
    assert not path.exists()


def test_memory_of_a_run_that_lives_or_of_another_version_is_not_touched(tmp_path: Path) -> None:
    alive = mapping(tmp_path, tmp_path / "gone.journal", pid=1)
    foreign = tmp_path / f"onboard-{NOBODY}-y.shm"
    foreign.write_bytes(b"something else" + bytes(100_000))
    sweep(lambda line: None, tmp_path)
    assert alive.exists()
    assert foreign.exists()


def test_a_journal_is_closed_by_its_last_frame_or_by_its_rollout(tmp_path: Path, journal: Path) -> None:
    assert not is_closed(journal)
    assert Journal(journal).finish({"end_reason": "over"})
    assert is_closed(journal)
    assert is_closed(tmp_path / "converted.journal")
    (tmp_path / "odd.journal").write_bytes(b"what is this")
    assert not is_closed(tmp_path / "odd.journal")
