"""How one joint answers to its commands: does it move, how strongly, how late, against which friction.

Strength and delay come from one model of the motor, over a stretch of about a second or two:

    impulse(t) = strength·∫(kp·(target(t - delay) - q)) - damping·(q - q0) - friction·∫sign(dq) + c0 + c1·t

Its left side is what the motion took, `balance`; so neither a torque sensor nor an acceleration is
needed, and the joint's own inertia, the swing of its neighbours, gravity and the gains count as what
they are. For a given delay the rest is linear; the delay is the one that leaves the least over.
"""

from typing import NamedTuple

import numpy as np

from onboard.policies.estimators.kinematics import Float64Array
from onboard.runtime.preflight.balance import integral
from onboard.runtime.preflight.recording import Samples

LAGS_S: Float64Array = np.arange(-0.012, 0.1201, 0.002)
"""Delays that are tried; below 0 too, so that the best of a robot without any is not at the edge."""
STILL_RAD_S = 0.02
"""Friction turns over smoothly around a speed of 0."""


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


def fit(samples: Samples, impulse: Float64Array, asked: Float64Array, joint: int, kp: float) -> Fit:
    """Fit the model.

    Args:
        samples: of the stretch, n of them.
        impulse: (n,) N·m·s since the first sample.
        asked: (len(LAGS_S), n) rad·s, the target's integral since the first sample, for every lag.
        joint: SDK motor index.
        kp: commanded, N·m/rad.
    """
    time_s = samples.time_s - samples.time_s[0]
    q, dq = samples.q[:, joint], samples.dq[:, joint]
    turned = integral(samples.time_s, np.tanh(dq / STILL_RAD_S))
    known = np.stack([-(q - q[0]), -turned, time_s, np.ones_like(time_s)], axis=1)
    spring = kp * (asked - integral(samples.time_s, q))
    # What the known columns explain is taken out of both sides once; one column per lag remains.
    basis = np.linalg.qr(known)[0]
    rest = impulse - basis @ (basis.T @ impulse)
    springs = spring - (spring @ basis) @ basis.T
    power = np.maximum((springs * springs).sum(1), 1e-12)
    match = springs @ rest
    left = rest @ rest - match * np.abs(match) / power  # pulling the wrong way explains nothing
    best, lag_s = _lowest(left)
    strength = float(match[best] / power[best])
    others = np.linalg.lstsq(known, impulse - strength * spring[best], rcond=None)[0]
    spread = impulse - impulse.mean()
    explained = 1.0 - float(left[best] / max(spread @ spread, 1e-12))
    return Fit(strength, lag_s, float(others[0]), float(others[1]), explained)


def _lowest(left: Float64Array) -> tuple[int, float]:
    """Index of the least, and the lag at the vertex of the parabola through it and its neighbours."""
    best = int(np.argmin(left))
    if best in (0, len(left) - 1):
        return best, float(LAGS_S[best])
    before, here, after = left[best - 1 : best + 2]
    bend = before - 2 * here + after
    shift = 0.5 * (before - after) / bend if bend > 0 else 0.0
    return best, float(LAGS_S[best] + shift * (LAGS_S[1] - LAGS_S[0]))
