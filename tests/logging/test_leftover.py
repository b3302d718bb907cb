"""Rows that died with every process: taken from shared memory when the journal is recovered."""

import json
from collections.abc import Iterator
from pathlib import Path

import h5py
import msgspec
import numpy as np
import pytest

from onboard.cli.log import run as log
from onboard.cli.main import main
from onboard.logging.convert import convert
from onboard.logging.drain import Drain
from onboard.logging.journal import Journal, claimed, create_journal
from onboard.logging.layout import blank_record, journal_dtype, record_dtype
from onboard.logging.rollout import Rollout
from onboard.runtime.ports import RUN, SENT, run_layout
from onboard.runtime.shm import Shared
from tests.logging.synthetic import WALK, info


class Wreck:
    """A run whose processes all die: its mapping and its journal stay."""

    def __init__(self, folder: Path) -> None:
        self.row = blank_record(record_dtype([WALK]))
        self.shared = Shared.create(run_layout(self.row.dtype), folder)
        self.info = msgspec.structs.replace(info(), memory=str(self.shared.path))
        self.path = folder / f"{self.info.stem}.journal"
        create_journal(self.path, journal_dtype(self.row.dtype), msgspec.to_builtins(self.info))
        self.describe(self.info.wall_ns)

    def describe(self, wall_ns: int) -> None:
        run = np.zeros((), RUN)
        run["wall_ns"] = wall_ns
        self.shared["run"].push(run)

    def hand_over(self, first: int, last: int) -> None:
        sent = np.zeros((), SENT)
        for tick in range(first, last + 1):
            self.row["tick"] = self.row["number"] = tick
            self.row["robot_tick"], self.row["q"] = 20 * tick, tick
            self.row["recv_ns"] = self.row["made_ns"] = 20_000_000 * tick
            self.shared["record"].push(self.row)
            sent["number"], sent["send_ns"], sent["state"] = tick, 20_000_000 * tick + 7, 1
            self.shared["sent"].push(sent)

    def record(self, *, torn: int = 0, finish: bool = False) -> None:
        """What a recorder does until it is killed in the midst of a frame, or ends."""
        journal = Journal(self.path)
        Drain(self.shared["record"], self.shared["sent"], journal).run(0, final=True)
        if finish:
            journal.finish({"end_reason": "over"})
        else:
            journal.close()
        with self.path.open("ab") as file:
            file.write(bytes(range(1, 1 + torn)))


@pytest.fixture
def wreck(tmp_path: Path) -> Iterator[Wreck]:
    made = Wreck(tmp_path)
    yield made
    made.shared.close()


def ticks(path: Path) -> list[int]:
    with h5py.File(path, "r") as h5:
        found = h5["rollout/tick"][:]
        np.testing.assert_array_equal(h5["rollout/q"][:], np.repeat(found[:, None], 29, 1))
        np.testing.assert_array_equal(h5["rollout/send_ns"][:], 20_000_000 * found.astype(int) + 7)
        return [int(tick) for tick in found]


@pytest.mark.parametrize("torn", [0, 100])
def test_recover_takes_the_rest_from_shared_memory(
    wreck: Wreck, capsys: pytest.CaptureFixture[str], torn: int
) -> None:
    wreck.hand_over(1, 30)
    wreck.record(torn=torn)
    wreck.hand_over(31, 40)
    before = wreck.path.read_bytes()
    for _ in range(2):  # and again, the same
        assert log(["recover", str(wreck.path), "--json", "-"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert ticks(Path(result["rollout"])) == list(range(1, 41))
        assert (result["completeness"], result["rows_lost"]) == ("recovered", 0)
        assert "its last 10 rows come from its shared memory" in result["why"]
    assert wreck.path.read_bytes() == before, "the journal stays as it is"


def test_a_rollout_is_never_replaced_by_a_poorer_one(
    wreck: Wreck, capsys: pytest.CaptureFixture[str]
) -> None:
    wreck.hand_over(1, 30)
    wreck.record()
    wreck.hand_over(31, 40)
    assert main(["log", "recover", str(wreck.path)]) == 0
    wreck.shared.unlink()  # the computer was restarted
    assert main(["log", "recover", str(wreck.path)]) == 2
    error = capsys.readouterr().err
    assert "there already, with 40 rows where 30 are left" in error
    assert error.count("\n") == 1
    assert ticks(wreck.path.with_suffix(".h5")) == list(range(1, 41))


def test_a_run_that_never_had_a_recorder_is_recovered_whole(wreck: Wreck) -> None:
    wreck.hand_over(1, 20)
    assert ticks(convert(wreck.path)) == list(range(1, 21))


def test_the_reader_of_a_leftover_journal_sees_them_too(wreck: Wreck) -> None:
    wreck.hand_over(1, 20)
    with Rollout(wreck.path) as rollout:
        assert len(rollout) == 20
        assert rollout[19].tick == 20


def test_what_the_ring_has_overwritten_is_counted(wreck: Wreck, capsys: pytest.CaptureFixture[str]) -> None:
    wreck.hand_over(1, 20)
    wreck.record()
    wreck.hand_over(21, 2_000)
    assert log(["recover", str(wreck.path), "--json", "-"]) == 3
    result = json.loads(capsys.readouterr().out)
    assert result["rows"] + result["rows_lost"] == 2_000
    assert result["completeness"] == "truncated"
    found = ticks(Path(result["rollout"]))
    assert found[:20] == list(range(1, 21))
    assert found[20:] == list(range(2_001 - len(found) + 20, 2_001))


def test_a_journal_that_was_closed_needs_no_memory(wreck: Wreck) -> None:
    wreck.hand_over(1, 20)
    wreck.record(finish=True)
    wreck.hand_over(21, 25)
    with Rollout(convert(wreck.path)) as rollout:
        assert len(rollout) == 20
        assert rollout.completeness == "complete"


def test_memory_of_another_run_is_left_alone(wreck: Wreck) -> None:
    wreck.hand_over(1, 20)
    wreck.record()
    wreck.hand_over(21, 25)
    wreck.describe(wreck.info.wall_ns + 1)
    assert len(ticks(convert(wreck.path))) == 20


@pytest.mark.parametrize("left", [None, b"", b"ONBDSHM1 something else" + bytes(70_000)])
def test_memory_that_is_gone_or_broken_costs_what_was_in_it_alone(wreck: Wreck, left: bytes | None) -> None:
    wreck.hand_over(1, 20)
    wreck.record()
    wreck.shared.unlink()
    if left is not None:
        wreck.shared.path.write_bytes(left)
    with Rollout(convert(wreck.path)) as rollout:
        assert len(rollout) == 20
        assert "may be missing" in str(rollout.attributes["completeness_why"])


def test_a_journal_that_a_recorder_works_on_is_not_recovered(
    wreck: Wreck, capsys: pytest.CaptureFixture[str]
) -> None:
    wreck.hand_over(1, 20)
    with claimed(wreck.path):
        assert main(["log", "recover", str(wreck.path)]) == 2
    error = capsys.readouterr().err
    assert "a recorder is still at work on it" in error
    assert error.count("\n") == 1
    assert main(["log", "recover", str(wreck.path)]) == 0
