"""A linear inverse through the motors' gains instead of the target: the same torque by another way.

    kp·(q' - q) - kd·dq   with   q' = q + g·(q_target - q - b·dq)
        =  (g·kp)·(q_target - q) - (kd + g·kp·b)·dq

The right side sends the policy's own target with other gains. What differs is the limits: the target
may not leave the joint's range, and policies that ask for torque near its end with a target beyond it
lose what an inverse adds there (measured: docs/residual.md). The torque limit of the gate counts with
the gains that are sent, so it holds as before. The motors also act between two ticks, where a moved
target is 20 ms old.
"""

import numpy as np

from onboard.configs.errors import PolicyError
from onboard.configs.events import Arm
from onboard.configs.robot import RobotConfig
from onboard.policies.actor import Actor
from onboard.policies.residual.delta import Asked, Float32Array, Question
from onboard.policies.residual.files import ResidualBundle
from onboard.policies.residual.linear import LinearDelta, inverse_gains
from onboard.policies.residual.masks import make_mask
from onboard.policies.residual.slot import ResidualSlot, Slot, Tally

KP_MAX = 500.0
"""N·m/rad; what a robot's description may state at most."""


def make_slot(bundle: ResidualBundle, policy: Actor, robot: RobotConfig, arm: Arm) -> Slot:
    """The slot of a residual.

    Raises:
        PolicyError: the residual does not fit the policy, or can't be inverted.
    """
    kind = GainSlot if bundle.config.through == "gains" else ResidualSlot
    return kind(bundle, policy, robot, arm)


class GainSlot:
    """A `Slot` that changes gains. What it amounts to on the target stands in the record (`added`).

    Args:
        bundle: of a linear inverse.
        policy: that it corrects.
        robot: for the joints' slots.
        arm: KEEP, DROP or SHADOW; may be changed at any time, which takes `fade_s` to act.

    Raises:
        PolicyError: a gain would leave its range.
    """

    def __init__(self, bundle: ResidualBundle, policy: Actor, robot: RobotConfig, arm: Arm) -> None:
        config, contract = bundle.config, policy.bundle.contract
        self.config = config
        self.arm = arm
        self.dropped = ""
        self.tally = Tally()
        self.mask = make_mask(config.joints, contract, robot)
        self._policy = policy
        self._delta = LinearDelta(config, config.coefficients, self.mask.slots)
        self._period_s = 1.0 / contract.rate_hz
        gain, b = inverse_gains(config, config.coefficients)
        slots = self.mask.slots
        self._factor: Float32Array = np.ones(len(robot.joints), np.float32)
        self._damping: Float32Array = np.zeros(len(robot.joints), np.float32)
        self._factor[slots] = gain
        self._damping[slots] = gain * b * policy.kp[slots]
        self._check(robot)
        self._kp, self._kd = np.zeros((2, len(robot.joints)), np.float32)
        self.added: Float32Array = np.zeros(len(self.mask.driven), np.float32)
        self.reset()

    def reset(self) -> None:
        """The policy is entered: the gains act at once, and fade in as the policy does."""
        self._level = 0.0 if self.arm is Arm.DROP else 1.0
        self._step = -1
        self.added[:] = 0.0

    def combine(self, asked: Asked, base: Float32Array) -> Float32Array:
        """The policy's own action; its target is not moved."""
        passed_s = max(1, asked.step - self._step) * self._period_s
        self._step = asked.step
        change = passed_s / self.config.fade_s if self.config.fade_s else 1.0
        on = self.arm is not Arm.DROP
        self._level = min(1.0, self._level + change) if on else max(0.0, self._level - change)
        self.added[:] = 0.0
        if self._level > 0.0:
            self._delta.look(Question(asked, base, self._policy.target(base)))
            share = np.float32(self._level) / self.mask.scale
            self.added[self.mask.elements] = self._delta.correction() * share
            self.tally.ticks += 1
        return base

    def feedback(self, base: Float32Array, combined: Float32Array) -> Float32Array:
        """The policy's own action."""
        return base

    def gains(self, kp: Float32Array, kd: Float32Array) -> tuple[Float32Array, Float32Array]:
        """(29,) each, N·m/rad and N·m·s/rad: those of the joints of the mask changed, as far as faded in."""
        if self._level <= 0.0 or self.arm is Arm.SHADOW:
            return kp, kd
        level = np.float32(self._level)
        np.multiply(kp, 1 + level * (self._factor - 1), out=self._kp)
        np.add(kd, level * self._damping, out=self._kd)
        return self._kp, self._kd

    def commit(self) -> None:
        """There is nothing to remember."""

    def warm(self) -> None:
        """Go through the code once."""
        self._delta.warm()

    def _check(self, robot: RobotConfig) -> None:
        kp, kd = self._policy.kp * self._factor, self._policy.kd + self._damping
        for slot in self.mask.slots:
            if kp[slot] > KP_MAX or kd[slot] < 0:
                raise PolicyError(
                    f"residual {self.config.name}: {robot.joint_names[slot]} would get kp {kp[slot]:.0f} and "
                    f"kd {kd[slot]:.2f}; expected at most {KP_MAX:.0f} and at least 0: use through: target"
                )
