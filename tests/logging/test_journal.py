"""A journal under every kind of death: cuts, flipped bits, full and failing disks."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onboard.configs.errors import RolloutError
from onboard.logging.frames import Why
from onboard.logging.journal import Journal, JournalFile, create_journal
from onboard.logging.recovery import Scan, read_rows, scan

SMALL = np.dtype([("tick", "<u8"), ("q", "<f4", 29)])
META = {"robot": "g1_29dof", "note": "überall"}


def row(tick: int, dtype: np.dtype = SMALL) -> np.ndarray:
    record = np.zeros((), dtype)
    record["tick"] = tick
    record["q"] = tick + np.arange(29) / 29
    return record


def written(path: Path, count: int, *, finish: bool = True) -> Path:
    create_journal(path, SMALL, META)
    journal = Journal(path)
    for seq in range(1, count + 1):
        assert journal.append(seq, row(seq))
    if finish:
        assert journal.finish({"end_reason": "script finished"})
    else:
        journal.close()
    return path


def ticks(path: Path, found: Scan) -> list[int]:
    rows = read_rows(path, found)
    for one in rows:
        assert one.tobytes() == row(int(one["tick"])).tobytes()
    return [int(tick) for tick in rows["tick"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("whole") / "run.journal", 12).read_bytes()


def test_round_trip(tmp_path: Path) -> None:
    path = written(tmp_path / "run.journal", 12)
    found = scan(path)
    assert ticks(path, found) == list(range(1, 13))
    assert found.header.meta == META
    assert found.header.dtype == SMALL
    assert found.end == {"end_reason": "script finished", "lost": 0}
    assert found.completeness[0] == "complete"
    assert path.stat().st_size == found.header.size + 13 * found.header.frame_bytes, (
        "reserved room was given back"
    )


def test_every_truncation_keeps_the_exact_prefix(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "cut.journal"
    path.write_bytes(whole)
    header = scan(path).header
    expected = np.array([row(tick) for tick in range(1, 13)])
    for size in range(len(whole) - 1, -1, -1):
        os.truncate(path, size)
        if size < header.size:
            with pytest.raises(RolloutError):
                scan(path)
            continue
        found = scan(path)
        count = min((size - header.size) // header.frame_bytes, 12)
        assert found.row_count == found.last_seq == count, size
        assert read_rows(path, found).tobytes() == expected[:count].tobytes(), size
        assert found.completeness[0] != "complete"


@pytest.mark.parametrize("bits", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_no_flipped_bit_yields_an_altered_row(tmp_path: Path, bits: int) -> None:
    """In every byte of a whole journal, header and end included: one bit, or each of the eight."""
    path = written(tmp_path / "flip.journal", 3)
    header = scan(path).header
    rows = [row(tick).tobytes() for tick in (1, 2, 3)]
    with path.open("r+b", buffering=0) as file:
        data = file.read()
        for at in (8 * byte + (byte + bit) % 8 for byte in range(len(data)) for bit in range(bits)):
            os.pwrite(file.fileno(), bytes([data[at // 8] ^ 1 << at % 8]), at // 8)
            if at // 8 < header.size:
                with pytest.raises(RolloutError):
                    scan(path)
            else:
                frame = (at // 8 - header.size) // header.frame_bytes
                found = scan(path)
                kept = [each.tobytes() for each in read_rows(path, found)]
                assert kept == [each for number, each in enumerate(rows) if number != frame], at
                assert found.completeness[0] == "truncated"
            os.pwrite(file.fileno(), data[at // 8 : at // 8 + 1], at // 8)
    assert ticks(path, scan(path)) == [1, 2, 3]


@given(
    cuts=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=4),
    noise=st.binary(max_size=3000),
)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_shuffled_frames_and_noise_never_repeat_or_reorder_a_row(
    tmp_path: Path, whole: bytes, cuts: list[tuple[int, int]], noise: bytes
) -> None:
    path = tmp_path / "noise.journal"
    path.write_bytes(whole)
    header = scan(path).header
    frames = [whole[header.size + i * header.frame_bytes :][: header.frame_bytes] for i in range(13)]
    for a, b in cuts:
        frames[a] = frames[b]
    path.write_bytes(whole[: header.size] + b"".join(frames) + noise)
    kept = ticks(path, scan(path))
    assert kept == sorted(set(kept))


def test_frames_of_another_journal_are_refused(tmp_path: Path, whole: bytes) -> None:
    create_journal(tmp_path / "other.journal", SMALL, {"robot": "another"})
    path = tmp_path / "mixed.journal"
    path.write_bytes(whole)
    size = scan(path).header.size
    path.write_bytes((tmp_path / "other.journal").read_bytes() + whole[size:])
    found = scan(path)
    assert found.row_count == 0
    assert found.damaged == 13


@pytest.mark.parametrize("content", [b"", b"onboard", b"\x89HDF\r\n\x1a\n" + bytes(600), bytes(5000)])
def test_foreign_files_are_one_clear_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.journal"
    path.write_bytes(content)
    with pytest.raises(RolloutError, match=r"foreign\.journal: not a journal") as error:
        scan(path)
    assert "\n" not in str(error.value)


def test_missing_file_and_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match="can't be read"):
        scan(tmp_path / "none.journal")
    with pytest.raises(RolloutError, match="can't be made"):
        create_journal(tmp_path / "nowhere" / "run.journal", SMALL, META)


def test_a_journal_is_never_overwritten(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "run.journal"
    path.write_bytes(whole)
    with pytest.raises(RolloutError, match="exists already"):
        create_journal(path, SMALL, META)
    assert path.read_bytes() == whole


@given(killed_after=st.integers(0, 20), torn=st.binary(max_size=1500))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_new_writer_goes_on_where_the_killed_one_stopped(
    tmp_path: Path, killed_after: int, torn: bytes
) -> None:
    path = tmp_path / "resumed.journal"
    path.unlink(missing_ok=True)
    written(path, killed_after, finish=False)
    with path.open("ab") as file:
        file.write(torn)
    journal = Journal(path)
    assert journal.last_seq == journal.rows == killed_after
    assert not journal.ended
    for seq in range(killed_after + 1, 25):
        assert journal.append(seq, row(seq))
    assert journal.finish({"end_reason": "done"})
    found = scan(path)
    assert ticks(path, found) == list(range(1, 25))
    assert found.completeness[0] == "complete"


def test_rows_overwritten_in_the_ring_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "run.journal", 3, finish=False)
    journal = Journal(path)
    journal.lose(4, 10, Why.OVERWRITTEN)
    journal.append(11, row(11))
    journal.finish({"end_reason": "done"})
    found = scan(path)
    assert ticks(path, found) == [1, 2, 3, 11]
    assert found.lost == 7
    assert found.missing == 0
    assert found.completeness == ("truncated", "7 rows lost: overwritten")


def test_a_gap_that_nobody_counted_shows_by_its_sequence_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "run.journal", 3, finish=False)
    journal = Journal(path)
    journal.append(6, row(6))
    journal.finish({"end_reason": "done"})
    assert scan(path).missing == scan(path).lost == 2
    assert scan(path).completeness[0] == "truncated"


class FailingFile(JournalFile):
    """A disk with room for `room` bytes in all, that writes short at the edge, and can be emptied."""

    def __init__(self, path: Path, room: int, error: int = errno.ENOSPC) -> None:
        super().__init__(path)
        self.room = room
        self.error = error

    def write_at(self, offset: int, data: bytearray) -> int:
        whole = self.room - offset
        if whole <= 0:
            raise OSError(self.error, os.strerror(self.error))
        return super().write_at(offset, data[:whole])

    def reserve(self, offset: int, size: int) -> None:
        if offset + size > self.room and self.error == errno.ENOSPC:
            raise OSError(self.error, os.strerror(self.error))


@given(
    room=st.integers(0, 20_000),
    more=st.integers(0, 30_000),
    refill_at=st.integers(1, 40),
    error=st.sampled_from([errno.ENOSPC, errno.EIO, errno.EROFS]),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_and_lost_add_up_on_a_failing_disk(
    tmp_path: Path, room: int, more: int, refill_at: int, error: int
) -> None:
    path = tmp_path / "full.journal"
    path.unlink(missing_ok=True)
    create_journal(path, SMALL, META)
    file = FailingFile(path, path.stat().st_size + room, error)
    journal = Journal(path, file)
    kept = []
    for seq in range(1, 41):
        file.room += more if seq == refill_at else 0
        if journal.append(seq, row(seq)):
            kept.append(seq)
    assert len(kept) == journal.rows
    assert journal.rows + journal.lost == 40
    ended = journal.finish({"end_reason": "done"})
    found = scan(path)
    assert ticks(path, found) == kept
    assert found.damaged == 0
    if ended:
        assert found.lost == 40 - len(kept)
        assert found.end is not None
        assert found.end["lost"] == 40 - len(kept)
        assert (found.completeness[0] == "complete") == (len(kept) == 40)


def test_losses_on_a_full_disk_are_told_in_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "full.journal"
    create_journal(path, SMALL, META)
    journal = Journal(path, FailingFile(path, path.stat().st_size + 10 * 1040))
    for seq in range(1, 31):
        journal.append(seq, row(seq))
    assert journal.full
    assert journal.finish({"end_reason": "done"}), "room for the last two frames was kept back"
    found = scan(path)
    assert [(drop.count, drop.why) for drop in found.drops] == [(30 - found.row_count, Why.NO_SPACE)]
    assert found.row_count == 8


def test_a_real_full_disk_costs_rows_and_nothing_else(tiny_disk: Path) -> None:
    path = tiny_disk / "run.journal"
    create_journal(path, SMALL, META)
    journal = Journal(path)
    kept = [seq for seq in range(1, 801) if journal.append(seq, row(seq))]
    assert journal.full
    assert 490 < len(kept) <= 502
    assert kept == list(range(1, len(kept) + 1))
    assert journal.finish({"end_reason": "done"})
    found = scan(path)
    assert ticks(path, found) == kept
    assert found.lost == 800 - len(kept)
    assert found.end == {"end_reason": "done", "lost": found.lost}
