"""The policies of one run: which is in charge, and how one hands over to another.

    asked ──▶ approach: arms that the old policy does not drive move to the new one's start pose, while
              the old one keeps balancing ──▶ switch: the new policy is reset and takes over
    a motion that ends goes back to the policy that it came from; without one it is over (hold)

Only arms move in an approach, and after a switch from where they were to what the new policy holds. The
waist carries the trunk: it goes to the new policy's hold with the short blend of the switch, since a
walker that is handed a bent trunk falls over it.
"""

import math
from collections.abc import Sequence

import numpy as np

from onboard.configs.robot import N_JOINTS
from onboard.policies.actor import Actor
from onboard.runtime.link import Float32Array
from onboard.runtime.motions import smooth
from onboard.runtime.operator_input import NEXT


class Repertoire:
    """Who is in charge.

    Args:
        policies: at least one; the first is in charge at the beginning.
        period_s: control period.
        approach_s: how long undriven arms take to move; 0 for at once.

    Attributes:
        index: of the policy in charge.
        wanted: index that the approach leads to, None without one.
    """

    def __init__(self, policies: Sequence[Actor], period_s: float, approach_s: float) -> None:
        self.policies = tuple(policies)
        self.index = 0
        self.wanted: int | None = None
        self._came_from: int | None = None
        self._length = max(1, math.ceil(approach_s / period_s))
        self._own_hold = [policy.hold.copy() for policy in policies]
        self._free = [undriven_arms(policy) for policy in policies]
        self._ticks = self._length
        self._from: Float32Array = np.zeros(N_JOINTS, np.float32)
        self._goal: Float32Array = np.zeros(N_JOINTS, np.float32)

    @property
    def policy(self) -> Actor:
        """In charge."""
        return self.policies[self.index]

    @property
    def motion_over(self) -> bool:
        """A motion has ended and nothing takes over."""
        return self.policy.motion_done and self._came_from is None and self.wanted is None

    def begin(self) -> None:
        """Mode policy is entered: nothing is pending, and everybody holds what it holds by itself."""
        self.wanted = self._came_from = None
        self._ticks = self._length
        for policy, hold in zip(self.policies, self._own_hold, strict=True):
            policy.hold[:] = hold

    def ask(self, index: int) -> None:
        """Ask for a policy by index, or for the `NEXT`; one that is in charge or unknown is ignored."""
        if index == NEXT:
            index = (self.index + 1) % len(self.policies)
        if 0 <= index < len(self.policies) and index != self.index:
            self.wanted = index
            self._move_hold(self.policies[index].start_pose)

    def advance(self, periods: int) -> bool:
        """Move on by some periods; True when the policy in `wanted` must take over now."""
        if self.wanted is None and self.policy.motion_done and self._came_from is not None:
            self.wanted = self._came_from
            self._ticks = self._length  # a motion that is over has nothing to approach with
        if self._ticks < self._length:
            self._ticks = min(self._ticks + periods, self._length)
            share = smooth(self._ticks / self._length)
            free = self._free[self.index]
            self.policy.hold[free] = self._from[free] + share * (self._goal - self._from)[free]
        return self.wanted is not None and self._ticks >= self._length

    def take_over(self, sent: Float32Array) -> None:
        """The wanted policy is in charge from now on; its undriven arms start from what was sent."""
        if self.wanted is None:
            return
        returning = self.wanted == self._came_from
        self._came_from = None if returning else self.index
        self.index, self.wanted = self.wanted, None
        free = self._free[self.index]
        self.policy.hold[:] = self._own_hold[self.index]
        self.policy.hold[free] = sent[free]
        self._move_hold(self._own_hold[self.index])

    def _move_hold(self, goal: Float32Array) -> None:
        self._from[:] = self.policy.hold
        self._goal[:] = goal
        self._ticks = 0 if len(self._free[self.index]) else self._length


_ARM = ("shoulder", "elbow", "wrist")


def undriven_arms(policy: Actor) -> np.ndarray:
    """SDK motor indices of the arm joints that a policy leaves where its `hold` says."""
    graphs = policy.bundle.contract.graphs.values()
    driven = {joint for graph in graphs if graph.action is not None for joint in graph.action.joints}
    names = policy.bundle.robot.joint_names
    free = [
        slot for slot, name in enumerate(names) if name not in driven and any(part in name for part in _ARM)
    ]
    return np.array(free, np.intp)
