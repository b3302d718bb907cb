"""Rings: round trips, wrap-around, torn slots, two processes, foreign files."""

import multiprocessing
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.runtime.link import COMMAND
from onboard.runtime.ports import open_shared, run_layout
from onboard.runtime.shm import HEADER_BYTES, Ring, Shared, ShmError, dtype_from_json, dtype_to_json

ROW = np.dtype([("a", "<u8"), ("b", "<f4", 5), ("c", "<i2", (3, 2))])


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    made = Shared.create({"one": (ROW, 4), "two": (COMMAND, 8)}, tmp_path)
    yield made
    made.close()


def row(value: int) -> np.ndarray:
    record = np.zeros((), ROW)
    record["a"], record["b"], record["c"] = value, value, value % 100
    return record


def test_newest_and_each_by_number(shared: Shared) -> None:
    ring, out = shared["one"], np.zeros((), ROW)
    assert ring.latest(out) == 0
    for value in range(1, 11):
        assert ring.push(row(value)) == value
        assert ring.latest(out) == value
        assert out == row(value)
    assert [ring.read(seq, out) for seq in range(0, 12)] == [False] * 7 + [True] * 4 + [False]


def test_another_mapping_of_the_same_file_sees_it(shared: Shared) -> None:
    shared["two"].push(np.ones((), COMMAND))
    other = Shared.open(shared.path)
    out = np.zeros((), COMMAND)
    assert other["two"].latest(out) == 1
    assert out == np.ones((), COMMAND)
    assert other.layout == shared.layout
    other.close()


def test_a_writer_goes_on_where_the_last_one_stopped(shared: Shared) -> None:
    shared["one"].push(row(1))
    other = Shared.open(shared.path)
    assert other["one"].push(row(2)) == 2
    other.close()


def test_a_slot_that_was_never_finished_shows_the_one_before(shared: Shared) -> None:
    ring, out = shared["one"], np.zeros((), ROW)
    ring.push(row(1))
    ring.push(row(2))
    ring._tails[2 % 4][:] = bytes(12)  # the writer died before the checksum
    assert ring.latest(out) == 1
    assert out["a"] == 1


@given(st.integers(0, ROW.itemsize - 1), st.integers(1, 255))
def test_no_flipped_byte_is_accepted(byte: int, flip: int) -> None:
    memory = memoryview(bytearray(Ring.size(ROW, 2)))
    ring = Ring(memory, ROW, 2)
    ring.push(row(7))
    memory[64 + Ring.size(ROW, 1) - 64 + 8 + byte] ^= flip  # slot 1 follows slot 0
    assert not ring.read(1, np.zeros((), ROW))


def test_the_file_is_private_and_goes_away(shared: Shared) -> None:
    assert stat.S_IMODE(shared.path.stat().st_mode) == 0o600
    shared.unlink()
    assert not shared.path.exists()
    shared.unlink()


def test_two_runs_never_share_a_name(tmp_path: Path) -> None:
    first, second = (Shared.create({"one": (ROW, 2)}, tmp_path) for _ in range(2))
    assert first.path != second.path
    first.close()
    second.close()


def test_a_mapping_of_another_version_is_refused_and_says_in_what_it_differs(tmp_path: Path) -> None:
    layout = run_layout(ROW)
    ours = Shared.create(layout, tmp_path)
    open_shared(ours.path).close()
    other = Shared.create({**layout, "control": (ROW, 4)}, tmp_path)
    with pytest.raises(ShmError, match=r"another version of onboard \(it differs in control\)"):
        open_shared(other.path)
    del layout["record"]
    with pytest.raises(ShmError, match="differs in record"):
        open_shared(Shared.create(layout, tmp_path).path)


@pytest.mark.parametrize("bytes_left", [HEADER_BYTES + 100, 40, 8])
def test_a_mapping_that_was_cut_short_is_refused(tmp_path: Path, bytes_left: int) -> None:
    path = Shared.create({"one": (ROW, 4)}, tmp_path).path
    with path.open("r+b") as file:
        file.truncate(bytes_left)
    with pytest.raises(ShmError, match="not shared memory of this version"):
        Shared.open(path)


@pytest.mark.parametrize("content", [b"", b"something else", bytes(HEADER_BYTES)])
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ShmError, match="shared memory"):
        Shared.open(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ShmError, match="absent"):
        Shared.open(tmp_path / "absent")


def test_types_survive_json() -> None:
    for dtype, _ in run_layout(ROW).values():
        assert dtype_from_json(dtype_to_json(dtype)) == dtype


def _write_many(path: Path, count: int) -> None:
    shared = Shared.open(path)
    for value in range(1, count + 1):
        shared["one"].push(row(value))
    shared.close()


def test_a_reader_never_sees_a_torn_slot(shared: Shared) -> None:
    count = 20_000
    writer = multiprocessing.get_context("spawn").Process(target=_write_many, args=(shared.path, count))
    writer.start()
    out, seen = np.zeros((), ROW), 0
    while writer.is_alive() or seen < count:
        number = shared["one"].latest(out)
        if number:
            assert out == row(int(out["a"]))
            assert number >= seen
            seen = number
    writer.join()
    assert writer.exitcode == 0
    assert shared["one"].head == count
