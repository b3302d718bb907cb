"""Velocity of the pelvis: the accelerometer predicts, the legs that stand correct."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from onboard.configs.odometry import Velocity
from onboard.policies.estimators.kinematics import Float64Array


class LegSaying(NamedTuple):
    """What a leg says of the pelvis, and what makes it doubtful.

    Attributes:
        velocity: (3,) m/s, world-aligned, of the pelvis if that foot's centre of pressure stood still.
        share: of the load that the foot carries.
        rolling: rad/s, how fast the foot turns.
        loading: N/s, how fast its load changes: a sole that gives lets the foot sink and rise.
    """

    velocity: Float64Array
    share: float
    rolling: float
    loading: float


class VelocityFilter:
    """A Kalman filter with the velocity as its state; the axes are independent.

    Attributes:
        velocity: (3,) m/s, world-aligned.
        variance: (3,) m²/s².
    """

    def __init__(self, config: Velocity) -> None:
        self._config = config
        self.velocity: Float64Array = np.zeros(3)
        self.variance: Float64Array = np.zeros(3)
        self.reset()

    def reset(self) -> None:
        """At rest, and not sure of it."""
        self.velocity[:] = 0.0
        self.variance[:] = self._config.rest_m_s**2

    def predict(self, acceleration: Float64Array, dt: float) -> None:
        """Pass a tick; `acceleration` (3,) m/s², mean over it, gravity taken off."""
        self.velocity += acceleration * dt
        self.variance += (self._config.accel_m_s2 * dt) ** 2

    def correct(self, legs: Iterable[LegSaying]) -> None:
        """Take in what the legs that stand say; where none does, that a robot in the air hardly moves."""
        standing = False
        for leg in legs:
            standing = True
            innovation = leg.velocity - self.velocity
            self._update(innovation, self._noise(leg, innovation))
        if not standing:
            self._update(-self.velocity, np.full(3, self._config.rest_m_s**2))

    def _noise(self, leg: LegSaying, innovation: Float64Array) -> Float64Array:
        """(3,) variance of a leg's word."""
        config = self._config
        noise = np.full(3, (config.leg_m_s / leg.share) ** 2 + (config.roll_lever_m * leg.rolling) ** 2)
        noise[2] += (config.sole_m_n * leg.loading) ** 2
        slip = float(np.sqrt(innovation @ innovation)) / config.slip_m_s
        noise *= max(1.0, slip) ** 2
        return noise

    def _update(self, innovation: Float64Array, noise: Float64Array) -> None:
        gain = self.variance / (self.variance + noise)
        self.velocity += gain * innovation
        self.variance *= 1.0 - gain
