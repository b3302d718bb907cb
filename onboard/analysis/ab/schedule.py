"""Who flies when: ABBA blocks, drawn before the first episode and never changed after it.

A block has both arms twice, in the order ABBA or BAAB, so that what drifts slowly (temperature, battery,
the floor) hits both alike. Its two pairs each share a seed, that is a disturbed start. As many blocks
begin with A as with B, but for one; which ones, the experiment's seed decides.
"""

from typing import Literal, NamedTuple

import numpy as np

from onboard.configs.events import Arm
from onboard.policies.residual.blocks import arms_of_block, keep_first

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
    starts = np.random.default_rng(seed).permutation(2 * blocks) + 1 + 10_000 * seed
    slots: list[Slot] = []
    for block, first in enumerate(keep_first(blocks, seed)):
        for place, arm in enumerate(arms_of_block(first)):
            pair = place // 2
            name: ArmName = "keep" if arm is Arm.KEEP else "drop"
            slots.append(Slot(len(slots), block, pair, name, int(starts[2 * block + pair])))
    return slots
