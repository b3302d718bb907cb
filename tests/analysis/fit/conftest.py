"""One weak robot, recorded twice, for all tests of the fit."""

from pathlib import Path

import pytest

from onboard.analysis.fit.trajectory import Float64Array
from tests.analysis.fit.bench import FIRST, SECOND, record, write


@pytest.fixture(scope="session")
def weak() -> tuple[dict[str, Float64Array], dict[str, Float64Array]]:
    """The arrays of two excitations: gains of 60 %, commands 20 ms late."""
    return record(FIRST), record(SECOND)


@pytest.fixture(scope="session")
def logs(
    weak: tuple[dict[str, Float64Array], dict[str, Float64Array]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """The same as files."""
    folder = tmp_path_factory.mktemp("bench")
    return write(folder / "first.npz", weak[0]), write(folder / "second.npz", weak[1])
