"""The hidden layer of a delta network: what it sees, and the directions in which it looks.

    x  = the newest frames of (target less position, velocity) of the corrected joints, scaled
    y  = x, tanh(x W + c)          skip connection and hidden units
    delta = y V                    V is what is fitted

W and c are not trained but taken from the recorded data (sampled networks: each hidden unit rises between
two recorded inputs that lie apart), so that the fit stays a least-squares problem over whole trajectories
with as many unknowns as V has, and needs no library for automatic differentiation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.trajectory import LEAD_ROWS, Trajectory

Float64Array = NDArray[np.float64]

ERROR_RAD, SPEED_RAD_S = 0.1, 2.0
"""Units in which inputs are of the order of 1."""


@dataclass(frozen=True)
class Features:
    """Input and hidden layer.

    Attributes:
        columns: joints of the model that it sees and corrects.
        frames: how many, the newest first.
        weights, shift: (inputs, hidden), (hidden,).
    """

    columns: NDArray[np.intp]
    frames: int
    weights: Float64Array
    shift: Float64Array

    @property
    def scale(self) -> Float64Array:
        """(inputs,) factors on the raw inputs."""
        joints = len(self.columns)
        return np.tile(np.repeat([1 / ERROR_RAD, 1 / SPEED_RAD_S], joints), self.frames)

    @property
    def width(self) -> int:
        """Length of y."""
        return sum(self.weights.shape)

    def push(self, frames: Float64Array, error_rad: Float64Array, dq: Float64Array) -> Float64Array:
        """Frames (n, frames, 2 joints) with a new one; `error_rad` and `dq` are of the whole model."""
        newest = np.concatenate([error_rad[:, self.columns], dq[:, self.columns]], axis=1)
        return np.concatenate([newest[:, None], frames[:, :-1]], axis=1)

    def delta(self, frames: Float64Array, output: Float64Array) -> Float64Array:
        """(n, joints) rad, with one output layer (n, width, joints) for each simulation."""
        x = frames.reshape(len(frames), -1) * self.scale
        y = np.concatenate([x, np.tanh(x @ self.weights + self.shift)], axis=1)
        delta: Float64Array = np.einsum("ef,efj->ej", y, output)
        return delta


def sample_features(
    trajectories: Sequence[Trajectory],
    slots: NDArray[np.intp],
    columns: NDArray[np.intp],
    frames: int,
    hidden: int,
    seed: int,
) -> Features:
    """Draw a hidden layer from recorded inputs.

    Args:
        trajectories: recorded.
        slots: SDK motor indices of the corrected joints.
        columns: the same joints in the model.
        frames: at most `LEAD_ROWS`.
        hidden: units.
        seed: of the draw.
    """
    if not 1 <= frames <= LEAD_ROWS:
        raise ValueError(f"{frames} frames; a network sees 1 to {LEAD_ROWS}")
    empty = Features(columns, frames, np.zeros((2 * frames * len(columns), 0)), np.zeros(0))
    x = recorded_inputs(empty, trajectories, slots)
    random = np.random.default_rng(seed)
    one, other = (x[random.integers(0, len(x), 8 * hidden)] for _ in range(2))
    apart = other - one
    square = np.sum(apart**2, axis=1)
    # Of eight times as many pairs, those that lie apart are likelier to be taken.
    chosen = random.choice(len(square), hidden, replace=False, p=square / square.sum())
    weights = (2 * apart[chosen] / square[chosen, None]).T
    middle = (one + other)[chosen] / 2
    return Features(columns, frames, weights, -np.sum(middle * weights.T, axis=1))


def recorded_inputs(
    features: Features, trajectories: Sequence[Trajectory], slots: NDArray[np.intp]
) -> Float64Array:
    """(rows, inputs) scaled, as recorded."""
    return np.concatenate([_inputs(t, slots, features.frames) for t in trajectories]) * features.scale


def _inputs(trajectory: Trajectory, slots: NDArray[np.intp], frames: int) -> Float64Array:
    """(rows, inputs) as recorded, unscaled, the newest frame first."""
    error = trajectory.target[:, slots] - trajectory.q[:, slots]
    rows = np.concatenate([error, trajectory.dq[:, slots]], axis=1)
    ages = [np.roll(rows, age, axis=0)[frames:] for age in range(frames)]
    return np.concatenate(ages, axis=1)
