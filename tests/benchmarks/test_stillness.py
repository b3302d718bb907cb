"""When the machine stood still: what is said of it, and of a walk that it stopped."""

import time
from pathlib import Path

import pytest

from benchmarks.stillness import Stillness, in_words, watched_cores
from onboard.runtime.realtime import may_use_fifo

S = 1_000_000_000


@pytest.fixture
def still(tmp_path: Path) -> Stillness:
    """A core stood still three times."""
    file = tmp_path / "gaps.txt"
    file.write_text(f"{S} 0 0\n{10 * S} 8.0 10\n{20 * S} 12.5 0\n{20 * S + 5} 43.2 40\n")
    return Stillness(file, 1)


def test_every_gap_counts(still: Stillness) -> None:
    account = still.account()
    assert account == {
        "watched": True,
        "longest_ms": 43.2,
        "stolen_of_longest_ms": 40.0,
        "over_10_ms": 2,
        "over_20_ms": 1,
    }
    words = in_words(account)
    assert "more than 10 ms 2 times, more than 20 ms 1 times" in words
    assert words.endswith("43.2 ms at the longest, of which the host took 40 ms")


@pytest.mark.parametrize(
    ("stopped_ns", "said"),
    [
        (9 * S, ""),
        (10 * S, "; a core had just stood still for 8 ms"),
        (14 * S, ""),
        (20 * S + S // 2, "; a core had just stood still for 43 ms"),
    ],
)
def test_only_what_was_right_before_a_stop_can_explain_it(
    still: Stillness, stopped_ns: int, said: str
) -> None:
    assert still.before(stopped_ns) == said


@pytest.mark.skipif(not may_use_fifo(), reason="SCHED_FIFO is refused here")
def test_the_cores_are_watched_where_that_is_allowed() -> None:
    with watched_cores() as still:
        until = time.monotonic() + 20.0
        while not still.watched:
            assert time.monotonic() < until, "a watcher did not begin"
            time.sleep(0.01)


def test_without_watchers_nothing_is_claimed(still: Stillness) -> None:
    assert in_words({**still.account(), "watched": False}).endswith("SCHED_FIFO was refused")
