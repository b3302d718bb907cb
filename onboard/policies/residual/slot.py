"""The residual's place in a tick: between the policy's raw action and its target.

    base ──▶ delta ──▶ bound ──▶ low-pass ──▶ fade ──▶ combined = base + correction (raw)

Arm `keep` applies the correction, `shadow` only computes it, `drop` does neither. A residual that says
something that is not finite or of a wrong shape, that raises, that stays at its bound, whose iteration does
not settle, or that no longer knows the contact, drops itself until the policy is entered anew; its last good
correction fades out.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from onboard.configs.events import Arm
from onboard.configs.robot import RobotConfig
from onboard.policies.actor import Actor
from onboard.policies.residual.by_contact import ByContact
from onboard.policies.residual.contract import Part, Residual
from onboard.policies.residual.delta import Asked, Delta, Float32Array, Question
from onboard.policies.residual.files import ResidualBundle
from onboard.policies.residual.linear import LinearDelta
from onboard.policies.residual.masks import Mask, make_mask
from onboard.policies.residual.network import NetworkDelta, check_contracts

_HALF_S = 1e-3
"""Sums of periods are compared with durations less this."""


@dataclass
class Tally:
    """What a slot did since it was made.

    Attributes:
        ticks: in which a correction was computed.
        bounded: of these, at the bound in some joint.
        drops: how often it dropped itself.
    """

    ticks: int = 0
    bounded: int = 0
    drops: int = 0
    why: str = ""


class Slot(Protocol):
    """What the pilot asks once a tick."""

    arm: Arm
    added: Float32Array
    tally: Tally

    @property
    def dropped(self) -> str:
        """Why the residual dropped itself in this episode, "" while it has not."""

    def reset(self) -> None:
        """The policy is entered."""

    def combine(self, asked: Asked, base: Float32Array) -> Float32Array:
        """(A,) raw action with the residual applied to the policy's own, `base` (A,)."""

    def feedback(self, base: Float32Array, combined: Float32Array) -> Float32Array:
        """(A,) what the policy shall take for its last action."""

    def gains(self, kp: Float32Array, kd: Float32Array) -> tuple[Float32Array, Float32Array]:
        """(29,) each: the gains to send, for the policy's own."""

    def commit(self) -> None:
        """The gate accepted the tick."""

    def warm(self) -> None:
        """A dry pass between two ticks; changes nothing."""


class NoResidual:
    """The slot of a policy without a residual.

    Args:
        width: of the raw action.
        arm: NONE, or DROP for a run that is compared with one that has a residual.
    """

    def __init__(self, width: int, arm: Arm = Arm.NONE) -> None:
        self.arm, self.dropped, self.tally = arm, "", Tally()
        self.added: Float32Array = np.zeros(width, np.float32)

    def reset(self) -> None:
        """Nothing to forget."""

    def combine(self, asked: Asked, base: Float32Array) -> Float32Array:
        """The policy's own action."""
        return base

    def feedback(self, base: Float32Array, combined: Float32Array) -> Float32Array:
        """The policy's own action."""
        return base

    def gains(self, kp: Float32Array, kd: Float32Array) -> tuple[Float32Array, Float32Array]:
        """The policy's own gains."""
        return kp, kd

    def commit(self) -> None:
        """Nothing to remember."""

    def warm(self) -> None:
        """Nothing to go through."""


class ResidualSlot:
    """A residual at run time.

    Args:
        bundle: as read.
        policy: that it corrects.
        robot: for the joints' slots.
        arm: KEEP, DROP or SHADOW; may be changed at any time, which takes `fade_s` to act.

    Attributes:
        dropped: why it dropped itself in this episode, "" while it has not.
        added: (A,) raw, the correction that this tick computed and, in arm KEEP, applied.
        tally: for the report.

    Raises:
        PolicyError: the residual does not fit the policy, or can't be inverted.
    """

    def __init__(self, bundle: ResidualBundle, policy: Actor, robot: RobotConfig, arm: Arm) -> None:
        config, contract = bundle.config, policy.bundle.contract
        self.config = config
        self.arm = arm
        self.dropped = ""
        self.tally = Tally()
        self._policy = policy
        self.mask = make_mask(config.joints, contract, robot)
        self._delta = _make_delta(bundle, policy, robot, self.mask)
        self._period_s = 1.0 / contract.rate_hz
        self._share = _lowpass_share(config.lowpass_hz, self._period_s)
        self._bound = None if config.bound_rad is None else np.float32(config.bound_rad)
        # A correction whose length is below the bound has no element beyond it; 1 % for rounding.
        self._surely_inside = 0.99 * float(self._bound or 0.0) ** 2
        self._filtered, self._applied, self._scratch = np.zeros((3, len(self.mask.slots)), np.float32)
        self._zero = np.zeros(len(self.mask.slots), np.float32)
        self.added: Float32Array = np.zeros(len(self.mask.driven), np.float32)
        self._combined = np.zeros_like(self.added)
        self._looked = False
        self.reset()

    def reset(self) -> None:
        """The policy is entered: nothing is dropped any more.

        The correction acts at once: targets and gains fade in with the policy anyway, and a policy that
        begins on a robot that is too weak for half a second does not begin well.
        """
        self.dropped = ""
        self._level = 0.0 if self.arm is Arm.DROP else 1.0
        self._step = -1
        self._troubled_s = self._unknown_s = 0.0
        self._idle()

    def combine(self, asked: Asked, base: Float32Array) -> Float32Array:
        """(A,) raw action with the residual applied; see `Slot`."""
        wanted = self.arm is not Arm.DROP and not self.dropped
        passed_s = max(1, asked.step - self._step) * self._period_s
        self._step = asked.step
        if not wanted and self._level <= 0.0:
            self._idle()
            return base
        self._fade(wanted, passed_s)
        if not self.dropped:
            self._compute(Question(asked, base, self._policy.target(base)), passed_s)
        return self._apply(base)

    def feedback(self, base: Float32Array, combined: Float32Array) -> Float32Array:
        """(A,) what the policy shall take for its last action: its own, unless the file says otherwise."""
        return combined if self.config.feedback == "combined" else base

    def gains(self, kp: Float32Array, kd: Float32Array) -> tuple[Float32Array, Float32Array]:
        """The policy's own gains: it works through the target."""
        return kp, kd

    def commit(self) -> None:
        """The gate accepted the tick: the delta's history advances."""
        if self._looked:
            self._delta.remember(self._applied if self.arm is not Arm.SHADOW else self._zero)
            self._looked = False

    def warm(self) -> None:
        """A dry pass between two ticks; changes nothing."""
        if self._level > 0.0:
            self._delta.warm()

    def _idle(self) -> None:
        """Nothing is computed; a later start begins with empty histories."""
        if self._applied.any() or self._looked or self._step < 0:
            self._delta.reset()
        self._looked = False
        self._filtered[:] = self._applied[:] = 0.0
        self.added[:] = 0.0

    def _fade(self, wanted: bool, passed_s: float) -> None:
        change = passed_s / self.config.fade_s if self.config.fade_s else 1.0
        self._level = min(1.0, self._level + change) if wanted else max(0.0, self._level - change)

    def _compute(self, question: Question, passed_s: float) -> None:
        """The correction of this tick; on trouble the one before stays."""
        try:
            self._delta.look(question)
            self._looked = True
            if not self._delta.known:
                self._wait_for_contact(passed_s)
                return
            found = self._delta.correction()
        except Exception as error:  # whatever a residual does, the policy goes on without it
            self._drop(f"{type(error).__name__}: {error}")
            return
        self._unknown_s = 0.0
        if found.shape != self._filtered.shape:
            self._drop(f"{found.shape} values instead of {self._filtered.shape}")
            return
        square = float(found.dot(found))
        if math.isfinite(square):
            self._bound_and_filter(found, square, passed_s)
        else:
            self._drop("not finite")

    def _wait_for_contact(self, passed_s: float) -> None:
        self._unknown_s += passed_s
        if self._unknown_s > self.config.drop_on.contact_unknown_s - _HALF_S:
            self._drop("the contact is not known")

    def _bound_and_filter(self, found: Float32Array, square: float, passed_s: float) -> None:
        bounded = False
        if self._bound is not None and square > self._surely_inside:
            bounded = bool(np.maximum.reduce(np.abs(found, out=self._scratch)) > self._bound)
            if bounded:
                np.minimum(found, self._bound, out=found)
                np.maximum(found, -self._bound, out=found)
        if self._share < 1.0:
            np.subtract(found, self._filtered, out=self._scratch)
            np.multiply(self._scratch, self._share, out=self._scratch)
            np.add(self._filtered, self._scratch, out=self._filtered)
        else:
            self._filtered[:] = found
        self.tally.ticks += 1
        self.tally.bounded += bounded
        settled = self._delta.settled
        self._troubled_s = self._troubled_s + passed_s if bounded or not settled else 0.0
        if self._troubled_s > self.config.drop_on.bound_saturated_s - _HALF_S:
            self._drop("at its bound" if settled else "the iteration does not settle")

    def _drop(self, why: str) -> None:
        self.dropped = why
        self.tally.drops += 1
        self.tally.why = why

    def _apply(self, base: Float32Array) -> Float32Array:
        applied, mask = self._applied, self.mask
        np.multiply(self._filtered, np.float32(self._level), out=applied)
        np.divide(applied, mask.scale, out=self._scratch)
        self.added[mask.elements] = self._scratch
        if self.arm is Arm.SHADOW:
            return base
        return np.add(base, self.added, out=self._combined)


def _lowpass_share(cutoff_hz: float | None, period_s: float) -> float:
    """Share of a step that a first-order filter takes in one period, exact for a held input."""
    return 1.0 if cutoff_hz is None else 1.0 - math.exp(-2 * math.pi * cutoff_hz * period_s)


def _make_delta(bundle: ResidualBundle, policy: Actor, robot: RobotConfig, mask: Mask) -> Delta:
    parts = {
        phase: _make_part(part, bundle, policy, robot, mask) for phase, part in bundle.config.parts.items()
    }
    return ByContact(parts) if bundle.config.kind == "by_contact" else parts[""]


def _make_part(part: Part, bundle: ResidualBundle, policy: Actor, robot: RobotConfig, mask: Mask) -> Delta:
    config: Residual = bundle.config
    if part.network is None:
        return LinearDelta(config, part.coefficients, mask.slots)
    contract = policy.bundle.contract
    delta = NetworkDelta(config, part.network, bundle.models[part.network.model], robot, contract, mask)
    if config.mode == "invert":
        check_contracts(delta, mask, contract, robot)
    return delta
