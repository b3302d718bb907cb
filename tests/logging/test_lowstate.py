"""Counting what the network did to the state stream."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.logging.disk import Backlog
from onboard.logging.journal import Journal, create_journal
from onboard.logging.layout import lowstate_dtype
from onboard.logging.lowstate import CALIBRATION_SAMPLES, LowStateListener, TickCounter
from onboard.logging.recovery import read_rows, scan
from onboard.runtime.wire import LowStateEncoder


def counted(ticks: list[int]) -> TickCounter:
    counter = TickCounter()
    for tick in ticks:
        counter.see(tick % 2**32)
    return counter


@given(
    start=st.integers(0, 2**32 - 1),
    step=st.sampled_from([1, 2, 2000]),
    lost=st.sets(st.integers(1, 398), max_size=40),
)
def test_every_lost_sample_is_counted(start: int, step: int, lost: set[int]) -> None:
    ticks = [start + step * k for k in range(400) if k not in lost]
    counter = counted(ticks)
    assert (counter.gaps, counter.reordered, counter.duplicates) == (len(lost), 0, 0)


@given(swaps=st.sets(st.integers(CALIBRATION_SAMPLES + 5, 390), max_size=20))
def test_a_late_sample_is_reordered_and_not_lost(swaps: set[int]) -> None:
    apart = {k for k in swaps if k - 1 not in swaps and k - 2 not in swaps}
    ticks = [2 * k for k in range(400)]
    for k in apart:
        ticks[k], ticks[k + 1] = ticks[k + 1], ticks[k]
    counter = counted(ticks)
    assert (counter.gaps, counter.reordered) == (0, len(apart))


def test_duplicates_and_restarts_are_no_losses() -> None:
    counter = counted([k for k in range(0, 600, 2) for _ in range(2)])
    assert (counter.gaps, counter.duplicates) == (0, 300)
    restarted = counted([5_000_000 + 2 * k for k in range(300)] + [2 * k for k in range(300)])
    assert (restarted.gaps, restarted.reordered) == (0, 0)


class Message(NamedTuple):
    raw: bytes
    source_time_ns: int


class Mailbox:
    def __init__(self) -> None:
        self.messages: list[Message] = []

    def take_all(self) -> list[Message]:
        taken, self.messages = self.messages, []
        return taken


def test_bad_checksums_are_counted_and_never_kept(tmp_path: Path) -> None:
    create_journal(tmp_path / "run.lowstate.journal", lowstate_dtype(), {})
    journal = Journal(tmp_path / "run.lowstate.journal")
    mailbox, encoder = Mailbox(), LowStateEncoder(5)
    backlog = Backlog(journal)
    listener = LowStateListener(mailbox, backlog.keep)
    for k in range(500):
        encoder.q[...] = k
        raw = bytearray(encoder.seal(2 * k))
        if k % 10 == 3:
            raw[200] ^= 4
        mailbox.messages.append(Message(bytes(raw), 1_000 + k))
        if k % 10 == 9:
            listener.poll(k * 2_000_000)
    assert (listener.received, listener.crc_errors) == (500, 50)
    assert listener.crc_rate == pytest.approx(0.1)
    assert listener.ticks.gaps == 50, "what was thrown away is missing from the stream"
    listener.poll(10_000_000_000)
    assert listener.crc_rate == 0, "the rate is of the last second"
    backlog.write()
    assert journal.finish({})
    rows = read_rows(journal.path, scan(journal.path))
    good = np.array([k for k in range(500) if k % 10 != 3])
    np.testing.assert_array_equal(rows["q"][:, 7], good)
    np.testing.assert_array_equal(rows["robot_tick"], 2 * good)
    np.testing.assert_array_equal(rows["source_time_ns"], 1_000 + good)


@pytest.mark.parametrize("raw", [b"", b"\0\1\0\0", bytes(2092), b"\0\2\0\0" + bytes(2088)])
def test_foreign_messages_are_bad_samples(raw: bytes) -> None:
    mailbox = Mailbox()
    mailbox.messages.append(Message(raw, 0))
    listener = LowStateListener(mailbox, None)
    listener.poll(0)
    assert (listener.received, listener.crc_errors) == (1, 1)
