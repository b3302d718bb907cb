"""The disks that fail on purpose fail as they say."""

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from tests.disks import Ext4, UnavailableError, mounted, read_only_tmpfs, small_tmpfs


def test_what_was_not_synced_is_gone_after_the_power_cut(disk: Ext4, tmp_path: Path) -> None:
    kept, gone = disk.folder / "kept", disk.folder / "gone"
    with kept.open("wb") as file:
        file.write(bytes(5000))
        file.flush()
        os.fsync(file.fileno())
    gone.write_bytes(bytes(5000))
    disk.cut_power()
    with pytest.raises(OSError, match="Input/output error"):
        (disk.folder / "late").write_bytes(b"1")
    with mounted(tmp_path / "after", disk.copy(tmp_path / "copy.img")) as after:
        assert (after.folder / "kept").read_bytes() == bytes(5000)
        assert not (after.folder / "gone").exists()


def test_a_disk_with_an_error_refuses_open_files_too(disk: Ext4) -> None:
    with (disk.folder / "file").open("wb", buffering=0) as file:
        file.write(b"1")
        disk.turn_read_only()
        with pytest.raises(OSError, match="Read-only") as error:
            file.write(b"2")
    assert error.value.errno == errno.EROFS


def test_a_frozen_disk_makes_writers_wait(disk: Ext4) -> None:
    disk.freeze()
    done = threading.Event()

    def write() -> None:
        (disk.folder / "file").write_bytes(b"1")
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert not done.wait(0.2)
    disk.thaw()
    assert done.wait(20.0)
    thread.join()


def test_a_slow_disk_still_writes(disk: Ext4) -> None:
    begin = time.monotonic()
    with disk.slow(0.2):
        for number in range(3):
            time.sleep(0.1)
            (disk.folder / f"file{number}").write_bytes(b"1")
    assert time.monotonic() - begin > 0.3
    assert len(list(disk.folder.glob("file*"))) == 3


def test_small_and_read_only_disks(tmp_path: Path) -> None:
    try:
        with small_tmpfs(tmp_path / "small", 64) as small, pytest.raises(OSError, match="No space left"):
            (small / "file").write_bytes(bytes(100_000))
        with read_only_tmpfs(tmp_path / "fixed") as fixed, pytest.raises(OSError, match="Read-only"):
            (fixed / "file").write_bytes(b"1")
    except UnavailableError as reason:
        pytest.skip(str(reason))
