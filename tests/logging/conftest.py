from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.logging.recorder_run import Run


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """A recorder's surroundings: rings, journal and folder."""
    folder = tmp_path / "rollouts"
    folder.mkdir()
    made = Run(folder, tmp_path)
    yield made
    made.close()
