"""For every test: one profile for property tests, and disks that fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.disks import Ext4, UnavailableError, ext4, small_tmpfs

# The same cases each time, no limit of wall time on a busy machine.
settings.register_profile("onboard", derandomize=True, deadline=None)
settings.load_profile("onboard")


@pytest.fixture
def tiny_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of 512 KiB, or as many as its parameter says; skips where mounting is not allowed."""
    try:
        with small_tmpfs(tmp_path / "disk", getattr(request, "param", 512)) as folder:
            yield folder
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Ext4]:
    """An ext4 disk of 32 MiB that can be made to fail; skips where mounting is not allowed."""
    try:
        with ext4(tmp_path / "disk", tmp_path / "disk.img") as made:
            yield made
    except UnavailableError as reason:
        pytest.skip(str(reason))
