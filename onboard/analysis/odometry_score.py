"""How well the leg odometry does on a recorded walk, against the simulator's truth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.analysis.odometry_walk import Float64Array, Walk
from onboard.policies.estimators.estimator import LegOdometry

CONTACT_N = 10.0
"""Truth of contact: more vertical force than this."""

TRANSITION_S = 0.04
"""Ticks nearer than this to a change of that truth are left out of the second figure."""

SETTLE_S = 0.5
"""Left out at the start: the estimator does not know yet whether the robot stands."""


@dataclass(frozen=True)
class Score:
    """How well one walk was estimated.

    Attributes:
        contact: share of feet and ticks whose flag is true to the 10 N truth.
        contact_away: the same away from transitions.
        off: share of flags that say "in the air".
        force_share: RMS error of the vertical force against its mean over the tick, of body weight.
        velocity_rms, velocity_bias: (3,) m/s, pelvis frame.
        velocity_worst: m/s.
    """

    contact: float
    contact_away: float
    off: float
    force_share: float
    velocity_rms: tuple[float, ...]
    velocity_bias: tuple[float, ...]
    velocity_worst: float


@dataclass(frozen=True)
class Estimates:
    """What the estimator said, m ticks.

    Attributes:
        sample: (m,) number of the sample that a tick ends with.
        contact: (m, 2).
        force_n: (m, 2).
        velocity: (m, 3) m/s.
    """

    sample: NDArray[np.intp]
    contact: NDArray[np.int8]
    force_n: Float64Array
    velocity: Float64Array


def estimate(walk: Walk, odometry: LegOdometry) -> Estimates:
    """Feed a walk to the estimator, every sample of it."""
    samples, contacts, forces, velocities = [], [], [], []
    for k in range(len(walk.q)):
        odometry.add(
            k * walk.step_s,
            walk.q[k],
            walk.dq[k],
            walk.tau[k],
            walk.quat_wxyz[k],
            walk.gyro[k],
            walk.accel[k],
        )
        if not odometry.due:
            continue
        found = odometry.tick()
        if k * walk.step_s > SETTLE_S:
            samples.append(k)
            contacts.append(found.contact.copy())
            forces.append(found.force_n.copy())
            velocities.append(found.velocity_m_s.copy())
    return Estimates(np.array(samples), np.array(contacts), np.array(forces), np.array(velocities))


def score(walk: Walk, odometry: LegOdometry) -> Score:
    """Estimate a walk with a fresh estimator and compare; noise leaves a walk's truth as it is."""
    found = estimate(walk, odometry)
    at = found.sample
    real = walk.force_n > CONTACT_N
    away = _far_from_changes(real, round(TRANSITION_S / walk.step_s))[at]
    right = (found.contact > 0) == real[at]
    force_error = found.force_n - _mean_since(walk.force_n, at)
    velocity_error = found.velocity - walk.velocity[at]
    return Score(
        contact=float(right.mean()),
        contact_away=float(right[away].mean()),
        off=float((found.contact == 0).mean()),
        force_share=float(np.sqrt(np.mean(force_error**2))) / odometry.weight_n,
        velocity_rms=tuple(np.sqrt((velocity_error**2).mean(0)).tolist()),
        velocity_bias=tuple(velocity_error.mean(0).tolist()),
        velocity_worst=float(np.abs(velocity_error).max()),
    )


def mean_score(scores: list[Score]) -> Score:
    """Of several walks of equal length: means of shares and biases, roots of mean squares, the worst."""

    def mean(name: str) -> Float64Array:
        return np.asarray(np.mean([getattr(one, name) for one in scores], axis=0), np.float64)

    def root(name: str) -> Float64Array:
        squares = np.square([getattr(one, name) for one in scores])
        return np.asarray(np.sqrt(squares.mean(0)), np.float64)

    return Score(
        contact=float(mean("contact")),
        contact_away=float(mean("contact_away")),
        off=float(mean("off")),
        force_share=float(root("force_share")),
        velocity_rms=tuple(root("velocity_rms").tolist()),
        velocity_bias=tuple(mean("velocity_bias").tolist()),
        velocity_worst=max(one.velocity_worst for one in scores),
    )


def _far_from_changes(real: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """(n, 2) whether no change of contact lies within so many samples."""
    changes = np.zeros((len(real) + 1, real.shape[1]), int)
    changes[2:] = np.cumsum(real[1:] != real[:-1], axis=0)
    k = np.arange(len(real))
    first, last = np.maximum(k - reach, 0), np.minimum(k + reach + 1, len(real))
    far: NDArray[np.bool_] = changes[last] == changes[first]
    return far


def _mean_since(values: Float64Array, at: NDArray[np.intp]) -> Float64Array:
    """(m, 2) mean of the samples of each tick, which began behind the end of the one before."""
    total = np.vstack([np.zeros(values.shape[1]), np.cumsum(values, axis=0)])
    begin = np.concatenate([[2 * at[0] - at[1]], at[:-1]])
    mean: Float64Array = (total[at + 1] - total[begin + 1]) / (at - begin)[:, None]
    return mean
