"""Rows from control's ring, joined with the gateway's send times."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onboard.logging.drain import PATIENCE_NS, Drain
from onboard.logging.journal import Journal, create_journal
from onboard.logging.layout import PolicyShape, blank_record, journal_dtype, record_dtype
from onboard.logging.recovery import read_rows, scan
from onboard.runtime.ports import SENT
from onboard.runtime.shm import Shared

ROW = record_dtype([PolicyShape("walk", 10, 29)])
MADE_NS = 1_000_000_000


class Bench:
    """Control and gateway on one side, a drain into a journal on the other."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "run.journal"
        self.shared = Shared.create({"record": (ROW, 50), "sent": (SENT, 200)}, folder)
        create_journal(self.path, journal_dtype(ROW), {})
        self.journal = Journal(self.path)
        self.drain = Drain(self.shared["record"], self.shared["sent"], self.journal)

    def hand_over(self, number: int, tick: int = 0) -> None:
        row = blank_record(ROW)
        row["number"], row["tick"], row["made_ns"] = number, tick or number, MADE_NS
        row["q"] = np.arange(29) + number
        self.shared["record"].push(row)

    def publish(self, number: int, send_ns: int, *, state: int = 1, repeat: bool = False) -> None:
        entry = np.zeros((), SENT)
        entry["number"], entry["send_ns"], entry["state"], entry["repeat"] = number, send_ns, state, repeat
        self.shared["sent"].push(entry)

    def replace_recorder(self) -> None:
        self.journal.close()
        self.journal = Journal(self.path)
        self.drain = Drain(self.shared["record"], self.shared["sent"], self.journal)

    def rows(self) -> np.ndarray:
        return read_rows(self.path, scan(self.path))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.journal.close()
    made.shared.close()


def test_row_gets_the_first_publication_of_its_command(bench: Bench) -> None:
    for number in (1, 2):
        bench.hand_over(number)
        bench.publish(number, 500 + number)
        bench.publish(number, 900 + number, repeat=True)
    assert bench.drain.run(MADE_NS) == 2
    rows = bench.rows()
    assert rows["send_ns"].tolist() == [501, 502]
    assert rows["gateway_state"].tolist() == [1, 1]
    np.testing.assert_array_equal(rows["q"][1], np.arange(29) + 2)


def test_row_waits_for_the_gateway_but_not_for_ever(bench: Bench) -> None:
    bench.hand_over(1)
    assert bench.drain.run(MADE_NS + 1) == 0
    assert bench.drain.behind == 1
    assert bench.drain.run(MADE_NS + PATIENCE_NS) == 1
    assert bench.rows()["send_ns"].tolist() == bench.rows()["gateway_state"].tolist() == [-1]


def test_command_that_a_later_one_overtook_was_never_published(bench: Bench) -> None:
    bench.hand_over(1)
    bench.hand_over(2)
    bench.publish(2, 502)
    assert bench.drain.run(MADE_NS + 1) == 2
    assert bench.rows()["send_ns"].tolist() == [-1, 502]


def test_row_without_a_command_does_not_wait(bench: Bench) -> None:
    bench.hand_over(0, tick=5)
    assert bench.drain.run(MADE_NS + 1) == 1
    assert bench.rows()["send_ns"].tolist() == [-1]


def test_final_drain_waits_for_nothing(bench: Bench) -> None:
    bench.hand_over(1)
    assert bench.drain.run(MADE_NS + 1, final=True) == 1


def test_what_the_ring_overwrote_is_counted_exactly(bench: Bench) -> None:
    for tick in range(1, 121):
        bench.hand_over(0, tick)
    bench.drain.run(MADE_NS)
    kept = bench.rows()["tick"].tolist()
    assert kept == list(range(121 - len(kept), 121))
    assert len(kept) >= 49
    assert bench.journal.rows + bench.journal.lost == 120
    assert scan(bench.path).drops[0].last == 120 - len(kept)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 120), st.booleans()), min_size=1, max_size=8))
def test_written_and_lost_are_all_ticks_whenever_the_recorder_looks(
    tmp_path: Path, bursts: list[tuple[int, bool]]
) -> None:
    """Bursts of rows longer than the ring, looks in between, recorders that are replaced."""
    with TemporaryDirectory(dir=tmp_path) as folder:
        bench, tick = Bench(Path(folder)), 0
        for count, replaced in bursts:
            for _ in range(count):
                tick += 1
                bench.hand_over(0, tick)
            bench.drain.run(MADE_NS)
            if replaced:
                bench.replace_recorder()
        kept = bench.rows()["tick"].tolist()
        assert bench.journal.rows + bench.journal.lost == tick
        assert len(kept) == bench.journal.rows
        assert kept == sorted(set(kept)), "times rise strictly: no row twice, none out of order"
        bench.journal.close()
        bench.shared.close()


def test_new_recorder_repeats_nothing_and_loses_nothing(bench: Bench) -> None:
    for number in range(1, 31):
        bench.hand_over(number)
        bench.publish(number, 1_000 + number)
        if number % 7 == 0:
            bench.drain.run(MADE_NS)
            bench.replace_recorder()
    bench.drain.run(MADE_NS)
    rows = bench.rows()
    assert rows["number"].tolist() == list(range(1, 31))
    assert rows["send_ns"].tolist() == [1_000 + number for number in range(1, 31)], (
        "also for what an earlier one saw"
    )
