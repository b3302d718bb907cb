"""What the runtime flies: a policy, or an excitation on the bench."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onboard.policies.bundle import PolicyBundle
from onboard.policies.command import MotionCommand
from onboard.runtime.link import State

Float32Array = NDArray[np.float32]


class Actor(Protocol):
    """The run-time side of a contract; `onboard.policies.policy.Policy` explains every member."""

    bundle: PolicyBundle
    kp: Float32Array
    kd: Float32Array
    start_pose: Float32Array
    obs: Float32Array
    raw: Float32Array
    phase: Float32Array
    hold: Float32Array
    provided: dict[str, Float32Array]

    @property
    def extras(self) -> Mapping[str, NDArray[Any]]:
        """Logged outputs."""

    @property
    def motion_index(self) -> int:
        """Frame of the motion, -1 without one."""

    @property
    def has_motion(self) -> bool:
        """It comes to an end by itself."""

    @property
    def motion_done(self) -> bool:
        """That end has come."""

    @property
    def hands_over(self) -> bool:
        """Whoever was in charge before takes over then."""

    @property
    def reference_q(self) -> Float32Array | None:
        """(29,) rad, what it tries to follow."""

    def neutral_command(self) -> MotionCommand:
        """A command that asks for nothing."""

    def reset(self, state: State) -> None:
        """Start anew."""

    def observe(self, state: State, command: MotionCommand, step: int) -> Float32Array:
        """Take one tick in."""

    def infer(self) -> Float32Array:
        """(A,) raw action."""

    def target(self, base: Float32Array) -> Float32Array:
        """(29,) rad, joint targets of a raw action."""

    def commit(self, base: Float32Array) -> None:
        """The tick counted."""

    def warm(self) -> None:
        """A dry pass; changes nothing."""
