from pathlib import Path

import pytest

from tests.logging.export.recorded import data, write


@pytest.fixture(scope="session")
def rollout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A walk with a pose from outside."""
    return write(tmp_path_factory.mktemp("with_pose"))


@pytest.fixture(scope="session")
def poseless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without."""
    return write(tmp_path_factory.mktemp("without_pose"), data(pose=False))
