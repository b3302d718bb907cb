"""Arms that change inside one run: ABBA blocks of equal stretches, in an order that a seed decides.

    keep drop drop keep | drop keep keep drop | ...

What drifts slowly (temperature, battery, the floor) then hits both arms alike. The order is fixed before
the run begins and stands in its configuration as the seed. Every switch fades as the residual says.
"""

import numpy as np

from onboard.configs.events import Arm
from onboard.policies.residual.delta import Asked, Float32Array
from onboard.policies.residual.slot import Slot

BLOCKS = 64
"""Of four stretches each; longer runs begin anew."""


def keep_first(blocks: int, seed: int) -> list[bool]:
    """Which blocks begin with `keep`: half of them, but for one; which ones, the seed decides."""
    random = np.random.default_rng(seed)
    first = np.arange(blocks) % 2 == int(random.integers(2))
    random.shuffle(first)
    return [bool(each) for each in first]


def arms_of_block(begins_with_keep: bool) -> tuple[Arm, Arm, Arm, Arm]:
    """ABBA."""
    a, b = (Arm.KEEP, Arm.DROP) if begins_with_keep else (Arm.DROP, Arm.KEEP)
    return a, b, b, a


class BlockSlot:
    """A `Slot` whose arm follows the order, stretch by stretch since the policy was entered.

    Args:
        slot: the residual's.
        stretch_s: length of a stretch.
        period_s: of the control loop.
        seed: of the order.

    Attributes:
        arm: of the present stretch.
    """

    def __init__(self, slot: Slot, stretch_s: float, period_s: float, seed: int) -> None:
        self._slot = slot
        self._ticks = max(1, round(stretch_s / period_s))
        self._order = [arm for first in keep_first(BLOCKS, seed) for arm in arms_of_block(first)]
        self.added = slot.added
        self.tally = slot.tally
        self.reset()

    @property
    def dropped(self) -> str:
        """Why the residual dropped itself, "" while it has not."""
        return self._slot.dropped

    def reset(self) -> None:
        """The policy is entered: the order begins."""
        self.arm = self._slot.arm = self._order[0]
        self._slot.reset()

    def combine(self, asked: Asked, base: Float32Array) -> Float32Array:
        """(A,) raw action with the residual of this stretch applied."""
        self.arm = self._slot.arm = self._order[asked.step // self._ticks % len(self._order)]
        return self._slot.combine(asked, base)

    def feedback(self, base: Float32Array, combined: Float32Array) -> Float32Array:
        """(A,) what the policy shall take for its last action."""
        return self._slot.feedback(base, combined)

    def gains(self, kp: Float32Array, kd: Float32Array) -> tuple[Float32Array, Float32Array]:
        """(29,) each: the gains to send."""
        return self._slot.gains(kp, kd)

    def commit(self) -> None:
        """The gate accepted the tick."""
        self._slot.commit()

    def warm(self) -> None:
        """A dry pass between two ticks; changes nothing."""
        self._slot.warm()
