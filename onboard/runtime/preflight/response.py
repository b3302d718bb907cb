"""How one joint answers to its commands: does it move, how strongly, how late, against which friction.

Strength and delay come from one model of the motor, over a stretch of about a second or two:

    impulse in 10 ms = strength·∫kp·(target(t - delay) - q) - damping·Δq - friction·sign(dq)·Δt + c·Δt

Its left side is what the motion took, `balance`; so neither a torque sensor nor an acceleration is
needed, and the joint's own inertia, the swing of its neighbours, gravity and the gains count as what
they are. For a given delay the rest is linear; the delay is the one that leaves the least over.

A joint that stands still tells nothing: dry friction then is whatever holds it. So only moments count in
which it moves, and those just before it sets off after a step, with a holding torque of their own for
every step: without them a delay could be too short and nobody would notice.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.policies.estimators.kinematics import Float64Array
from onboard.runtime.preflight.balance import integral
from onboard.runtime.preflight.recording import Samples

LAGS_S: Float64Array = np.arange(-0.012, 0.1201, 0.002)
"""Delays that are tried; below 0 too, so that the best of a robot without any is not at the edge."""
WINDOW = 5
"""Samples of one moment."""
MOVES_SHARE, MOVES_RAD_S = 0.05, 0.02
"""Share of the largest speed above which a joint moves, and what it must exceed in any case."""
MIN_MOVING = 10
"""Moments."""
PUSHES = 0.05
"""Share of the largest torque that was asked for by which a friction may come out as negative."""
BEFORE_S, ONSET_S = 0.02, 0.15
"""Around a step, until the joint sets off."""


class Fit(NamedTuple):
    """The model's figures.

    Attributes:
        strength: torque per torque that was asked for; 1 is nominal.
        delay_s: from the command's publication to the torque, on the robot's clock laid on ours.
        damping: N·m·s/rad, the commanded kd included.
        friction_nm: dry.
        explained: share of the impulse's variance, 1 for a perfect fit.
    """

    strength: float
    delay_s: float
    damping: float
    friction_nm: float
    explained: float


def fit(
    samples: Samples,
    impulse: Float64Array,
    asked: Float64Array,
    joint: int,
    kp: float,
    steps_s: Sequence[float] = (),
) -> Fit:
    """Fit the model; all zero where the joint hardly moved.

    Args:
        samples: of the stretch, n of them.
        impulse: (n,) N·m·s since the first sample.
        asked: (len(LAGS_S), n) rad·s, the target's integral since the first sample, for every lag.
        joint: SDK motor index.
        kp: commanded, N·m/rad.
        steps_s: when the target jumped.
    """
    at = np.arange(0, samples.time_s.size, WINDOW)
    time_s, turned = samples.time_s[at], np.diff(samples.q[at, joint])
    span_s = np.diff(time_s)
    speed = turned / span_s
    moving = np.abs(speed) > max(MOVES_SHARE * np.abs(speed).max(), MOVES_RAD_S)
    if moving.sum() < MIN_MOVING:
        return Fit(0.0, 0.0, 0.0, 0.0, 0.0)
    onsets = [_onset(time_s[:-1], moving, step_s) for step_s in steps_s]
    columns = [-turned, -np.sign(speed) * moving * span_s, moving * span_s]
    used = np.any([moving, *onsets], axis=0)
    known = np.stack([*columns, *(onset * span_s for onset in onsets if onset.any())], axis=1)[used]
    spring = kp * np.diff((asked - integral(samples.time_s, samples.q[:, joint]))[:, at])[:, used]
    took = np.diff(impulse[at])[used]
    # What the known columns explain is taken out of both sides once; one column per lag remains.
    basis = np.linalg.qr(known)[0]
    rest = took - basis @ (basis.T @ took)
    springs = spring - (spring @ basis) @ basis.T
    power = np.maximum((springs * springs).sum(1), 1e-12)
    match = springs @ rest
    left = rest @ rest - match * np.abs(match) / power  # pulling the wrong way explains nothing
    strengths = match / power
    others = np.linalg.pinv(known) @ (took[:, None] - (strengths[:, None] * spring).T)
    # Half a swing too late a resonance fits as well, with a friction that pushes.
    pushes = PUSHES * np.abs(spring / span_s[used]).max(1)
    left[(others[0] < 0.0) | (others[1] < -pushes)] = np.inf
    best, lag_s = _lowest(left)
    explained = 1.0 - float(left[best] / max(took @ took, 1e-12)) if np.isfinite(left[best]) else 0.0
    return Fit(float(strengths[best]), lag_s, float(others[0, best]), float(others[1, best]), explained)


def _onset(time_s: Float64Array, moving: NDArray[np.bool_], step_s: float) -> NDArray[np.bool_]:
    """Moments around a step in which the joint still stands."""
    after = np.flatnonzero(moving & (time_s >= step_s))
    until_s = min(time_s[after[0]] if after.size else np.inf, step_s + ONSET_S)
    onset: NDArray[np.bool_] = (time_s >= step_s - BEFORE_S) & (time_s < until_s) & ~moving
    return onset


def _lowest(left: Float64Array) -> tuple[int, float]:
    """Index of the least, and the lag at the vertex of the parabola through it and its neighbours."""
    best = int(np.argmin(left))
    if best in (0, len(left) - 1):
        return best, float(LAGS_S[best])
    before, here, after = left[best - 1 : best + 2]
    bend = before - 2 * here + after
    shift = 0.5 * (before - after) / bend if 0 < bend < np.inf else 0.0
    return best, float(LAGS_S[best] + shift * (LAGS_S[1] - LAGS_S[0]))
