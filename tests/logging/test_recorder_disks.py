"""The recorder on disks that hang, refuse or fill up: control never waits, and every loss is counted."""

import json
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest

from onboard.cli.log import run as log
from onboard.configs.errors import RolloutError
from onboard.logging.convert import convert
from onboard.logging.direct import new_journal
from onboard.logging.disk import Backlog
from onboard.logging.frames import Why
from onboard.logging.journal import Journal, create_journal
from onboard.logging.recovery import read_rows, scan
from tests.disks import Ext4, UnavailableError, read_only_tmpfs
from tests.logging.recorder_run import Run, until
from tests.logging.synthetic import journal, rows
from tests.logging.test_journal import SMALL, row


@pytest.fixture
def run(disk: Ext4, tmp_path: Path) -> Iterator[Run]:
    made = Run(disk.folder, tmp_path)
    yield made
    disk.thaw()
    made.close()


def ticks(path: Path) -> list[int]:
    with h5py.File(path, "r") as h5:
        return [int(tick) for tick in h5["rollout/tick"][:]]


def beats(run: Run, count: int) -> None:
    """Wait until the recorder has reported so many times more."""
    head = run.shared["recorder"].head
    until(lambda: run.shared["recorder"].head >= head + count)


def test_a_disk_that_hangs_holds_up_the_disk_thread_alone(run: Run, disk: Ext4) -> None:
    process = run.started()
    run.ticks(1, 50)
    until(lambda: run.recorded(50))
    disk.freeze()
    run.ticks(51, 300)
    beats(run, 30)  # it listens and reports all the while
    run.shared["recorder"].latest(run.status)
    assert run.status["rows"] < 300
    assert run.status["behind"] > 200, "what waits is shown"
    assert run.status["lost"] == 0
    disk.thaw()
    until(lambda: run.recorded(300))
    assert run.stop(process) == 0
    assert ticks(run.rollout) == list(range(1, 301))


def test_what_the_ring_can_not_hold_is_lost_and_counted(run: Run, disk: Ext4) -> None:
    process = run.started()
    run.ticks(1, 50)
    until(lambda: run.recorded(50))
    disk.freeze()
    run.ticks(51, 60)
    beats(run, 10)  # the thread is stuck in a write by now
    run.ticks(61, 2_100)
    beats(run, 10)
    disk.thaw()
    until(lambda: run.recorded(100))
    assert run.stop(process) == 0
    found = ticks(run.rollout)
    with h5py.File(run.rollout, "r") as h5:
        assert h5.attrs["rows_lost"] == 2_100 - len(found) > 500
        assert h5.attrs["completeness"] == "truncated"
    assert found[:50] == list(range(1, 51))
    assert found[-1] == 2_100


@pytest.mark.slow
def test_a_slow_disk_loses_nothing(run: Run, disk: Ext4) -> None:
    with disk.slow(0.7):
        process = run.started()
        for first in range(1, 1001, 50):
            run.ticks(first, first + 49)
            beats(run, 5)
        until(lambda: run.recorded(1000))
        assert run.stop(process) == 0
    assert ticks(run.rollout) == list(range(1, 1001))


def test_a_disk_that_turns_read_only_shows_every_loss_and_memory_still_has_the_rows(
    run: Run, disk: Ext4, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = run.started()
    run.ticks(1, 50)
    until(lambda: run.recorded(50))
    disk.turn_read_only()
    run.ticks(51, 100)
    until(lambda: bool(run.recorded(50) and run.status["lost"] == 50))
    assert run.status["full"], "the operator is told that rows are being lost"
    assert run.stop(process) == 3
    assert process.stderr is not None
    complaint = process.stderr.read()
    assert "Read-only file system" in complaint
    assert complaint.count("\n") == 1
    assert run.shared.path.exists()
    assert log(["recover", str(run.journal), "--out", str(tmp_path / "else"), "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["rows"], result["rows_lost"]) == (100, 0)
    run.shared.unlink()
    assert log(["recover", str(run.journal), "--out", str(tmp_path / "later"), "--json", "-"]) == 0
    later = json.loads(capsys.readouterr().out)
    assert later["rows"] == 50
    assert later["completeness"] == "recovered"


def test_a_full_disk_is_converted_elsewhere(
    tiny_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tiny_disk, tmp_path)
    try:
        process = run.started()
        run.ticks(1, 600)
        until(lambda: run.recorded(1) and int(run.status["lost"]) > 0)
        assert run.stop(process) == 3
        assert log(["recover", str(run.journal), "--out", str(tmp_path / "else"), "--json", "-"]) == 3
        result = json.loads(capsys.readouterr().out)
        assert result["rows"] + result["rows_lost"] == 600
        assert "no space" in result["why"]
        assert ticks(Path(result["rollout"])) == list(range(1, result["rows"] + 1))
    finally:
        run.close()


def test_no_run_begins_on_a_full_or_read_only_disk(tiny_disk: Path, tmp_path: Path) -> None:
    (tiny_disk / "filler").write_bytes(bytes(512 << 10))
    with pytest.raises(RolloutError, match=r"No space left on device.*give a folder with room") as error:
        new_journal(tiny_disk, "run", SMALL, {"note": "x" * 5000})
    assert "\n" not in str(error.value)
    assert [path.name for path in tiny_disk.iterdir()] == ["filler"]
    try:
        with read_only_tmpfs(tmp_path / "fixed") as fixed:
            for folder in (fixed, fixed / "new"):
                with pytest.raises(RolloutError, match="Read-only file system"):
                    new_journal(folder, "run", SMALL, {})
            with pytest.raises(RolloutError, match="Read-only file system"):
                convert(journal(tmp_path, rows()), fixed)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_new_folders_are_durable_before_anything_is_recorded(
    disk: Ext4, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("onboard.logging.journal.sync_folder", synced.append)
    path = new_journal(disk.folder / "a" / "b", "run", SMALL, {})
    assert {disk.folder, disk.folder / "a", disk.folder / "a" / "b"} <= set(synced)
    assert path.parent == disk.folder / "a" / "b"


def test_samples_that_find_no_place_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "run.lowstate.journal"
    create_journal(path, SMALL, {})
    backlog = Backlog(Journal(path), most=5)
    for seq in range(1, 9):
        backlog.keep(row(seq))
    backlog.write()
    backlog.keep(row(9))
    backlog.write()
    backlog.journal.finish({})
    found = scan(path)
    assert read_rows(path, found)["tick"].tolist() == [1, 2, 3, 4, 5, 9]
    assert [(drop.first, drop.last, drop.why) for drop in found.drops] == [(6, 8, Why.OVERWRITTEN)]
