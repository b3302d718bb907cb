"""Arms that change inside a run."""

from collections import Counter
from pathlib import Path

import numpy as np

from onboard.configs.events import Arm
from onboard.policies.residual.blocks import BlockSlot, keep_first
from tests.policies.residual.support import SLOTS, Bench, linear


def test_stretches_follow_abba_and_every_switch_takes_effect(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(-0.4, 0.0))
    slot = BlockSlot(bench.slot, 0.1, 0.02, seed=3)
    slot.reset()
    arms, moved = [], []
    for step in range(40):
        bench.step = step
        combined = slot.combine(bench.ask(), bench.base)
        slot.commit()
        arms.append(slot.arm)
        moved.append(bool(np.any((combined - bench.base)[SLOTS])))
    stretches = arms[::5]
    for start in (0, 4):
        a, b, c, d = stretches[start : start + 4]
        assert a == d != b == c
    assert arms == [arm for arm in stretches for _ in range(5)]
    assert moved == [arm is Arm.KEEP for arm in arms]
    slot.reset()
    assert slot.arm is stretches[0]


def test_blocks_are_balanced() -> None:
    for seed in range(10):
        assert Counter(keep_first(64, seed)) == {True: 32, False: 32}
