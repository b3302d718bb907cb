"""The order of the episodes: balanced, in ABBA blocks, the same for the same seed."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from onboard.analysis.ab.schedule import make_schedule


@given(blocks=st.integers(1, 30), seed=st.integers(0, 1000))
def test_every_block_is_abba_with_shared_starts(blocks: int, seed: int) -> None:
    schedule = make_schedule(blocks, seed)
    assert [slot.number for slot in schedule] == list(range(4 * blocks))
    for block in range(blocks):
        four = schedule[4 * block : 4 * block + 4]
        arms = [slot.arm for slot in four]
        assert arms[0] == arms[3] != arms[1] == arms[2]
        assert four[0].seed == four[1].seed != four[2].seed == four[3].seed
        assert {slot.block for slot in four} == {block}


@given(blocks=st.integers(1, 30), seed=st.integers(0, 1000))
def test_arms_are_balanced_and_starts_differ(blocks: int, seed: int) -> None:
    schedule = make_schedule(blocks, seed)
    assert Counter(slot.arm for slot in schedule) == {"keep": 2 * blocks, "drop": 2 * blocks}
    first = Counter(slot.arm for slot in schedule[::4])
    assert abs(first["keep"] - first["drop"]) <= 1
    assert len({slot.seed for slot in schedule}) == 2 * blocks


def test_the_order_is_drawn_and_repeats() -> None:
    assert make_schedule(8, 3) == make_schedule(8, 3)
    orders = {tuple(slot.arm for slot in make_schedule(8, seed)) for seed in range(20)}
    assert len(orders) > 10
