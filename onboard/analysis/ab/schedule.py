"""Who flies when: ABBA blocks, drawn before the first episode and never changed after it.

A block has both arms twice, in the order ABBA or BAAB, so that what drifts slowly (temperature, battery,
the floor) hits both alike. Its two pairs each share a seed, that is a disturbed start. As many blocks
begin with A as with B, but for one; which ones, the experiment's seed decides.
"""

from typing import Literal, NamedTuple

import numpy as np

ArmName = Literal["keep", "drop"]


class Slot(NamedTuple):
    """One episode to fly.

    Attributes:
        number: its place in the experiment, from 0.
        block: it belongs to, from 0.
        pair: within the block, 0 or 1.
        arm: `keep` or `drop`.
        seed: of its start; the same for both arms of a pair.
    """

    number: int
    block: int
    pair: int
    arm: ArmName
    seed: int


def make_schedule(blocks: int, seed: int) -> list[Slot]:
    """The order of `4 · blocks` episodes."""
    random = np.random.default_rng(seed)
    keep_first = np.arange(blocks) % 2 == int(random.integers(2))
    random.shuffle(keep_first)
    starts = random.permutation(2 * blocks) + 1 + 10_000 * seed
    slots: list[Slot] = []
    for block, first in enumerate(keep_first.tolist()):
        a: ArmName = "keep" if first else "drop"
        b: ArmName = "drop" if first else "keep"
        for place, arm in enumerate((a, b, b, a)):
            pair = place // 2
            slots.append(Slot(len(slots), block, pair, arm, int(starts[2 * block + pair])))
    return slots
