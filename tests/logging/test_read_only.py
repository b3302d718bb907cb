"""A read-only disk is told in one line, wherever a file was to be made."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from onboard.configs.errors import RolloutError
from onboard.logging.hdf5 import write_whole
from onboard.logging.journal import create_journal
from tests.disks import UnavailableError, read_only_tmpfs


@pytest.fixture
def fixed_disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with read_only_tmpfs(tmp_path / "disk") as folder:
            yield folder
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_a_journal_can_not_be_made_there(fixed_disk: Path) -> None:
    with pytest.raises(
        RolloutError, match=r"run.journal: can't be made \(Read-only file system\); give a folder"
    ):
        create_journal(fixed_disk / "run.journal", np.dtype([("tick", "<u8")]), {})


def test_a_rollout_can_not_be_made_there(fixed_disk: Path) -> None:
    with pytest.raises(
        RolloutError, match=r"run.h5: can't be written \(Read-only file system\); try elsewhere"
    ):
        write_whole(fixed_disk / "run.h5", 1000, lambda _: None, "try elsewhere")
