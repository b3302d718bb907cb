"""What every kind of delta has in common: what it is asked, and what it answers."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from onboard.policies.command import MotionCommand
from onboard.runtime.link import State

Float32Array = NDArray[np.float32]


class Asked(NamedTuple):
    """What a tick knows before the policy acts.

    Attributes:
        state: newest state.
        command: the operator's.
        step: grid periods since the policy was entered.
        contact: (2,) left and right foot: 1, 0, or -1 unknown.
    """

    state: State
    command: MotionCommand
    step: int
    contact: NDArray[np.int8]


class Question(NamedTuple):
    """One tick, as a delta sees it.

    Attributes:
        asked: state, command, step, contact.
        raw: (A,) the policy's raw action.
        target: (29,) rad, the joint targets of that action, SDK order.
    """

    asked: Asked
    raw: Float32Array
    target: Float32Array


class Delta(Protocol):
    """One delta in one mode. Per tick: `look`, then `correction` where it is wanted, then `remember`."""

    @property
    def known(self) -> bool:
        """It can answer in this tick."""

    @property
    def settled(self) -> bool:
        """The last correction is a solution, where it was found by iteration."""

    def reset(self) -> None:
        """Forget what was remembered."""

    def look(self, question: Question) -> None:
        """Take one tick in."""

    def correction(self) -> Float32Array:
        """(n,) rad: what to add to the targets of the mask; overwritten by the next call.

        Raises:
            PolicyError: a network's runtime failed.
        """

    def remember(self, applied: Float32Array) -> None:
        """The tick counted, and this correction (n,), rad, reached the robot."""

    def warm(self) -> None:
        """Go through the code and the model once for the caches' sake; between two ticks."""
