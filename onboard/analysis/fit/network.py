"""A delta network fitted to whole trajectories: the same shooting as for the linear delta, more unknowns.

Fitted is the output layer (see `features`), starting as the linear delta, which it contains: what it adds
must earn its place on held-out data. A ridge keeps what the data do not ask for at the start.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.features import ERROR_RAD, SPEED_RAD_S, Features, recorded_inputs, sample_features
from onboard.analysis.fit.fit import Explained, Fit
from onboard.analysis.fit.knobs import Float64Array, Settings, nominal_settings
from onboard.analysis.fit.shooting import Shooter
from onboard.analysis.fit.solve import Comparison, Progress, Target, Tuned, compare, descend

WEIGHT = 0.02
"""Typical change of an output weight, rad per unit of a feature."""
RIDGE_RAD = 0.01
ITERATIONS = 10
"""Of the solver; what comes later no longer carries over."""
LARGEST = 100.0


@dataclass(frozen=True)
class NetworkFit:
    """A fitted network.

    Attributes:
        features: input and hidden layer.
        output: (features, joints) output layer, rad.
        latency_s: taken over from the linear fit.
        fitted, held_out: errors.
        iterations, seconds: of the solver.
    """

    features: Features
    output: Float64Array
    latency_s: float
    fitted: Comparison
    held_out: Comparison
    iterations: int
    seconds: float

    def largest_rad(self, fit: Fit) -> float:
        """Largest delta on the recorded inputs of the fitted data."""
        return float(np.abs(self._hidden(fit)[1] @ self.output).max())

    def steepest(self, fit: Fit) -> float:
        """Largest change of the delta with the target asked for, on the recorded inputs (2-norm)."""
        x, y = self._hidden(fit)
        joints, inputs = self.output.shape[1], x.shape[1]
        # The newest error of every joint stands first among the inputs.
        direct = self.output[:joints]
        slopes = 1 - y[:, inputs:] ** 2
        bent = np.einsum("jh,rh,hk->rjk", self.features.weights[:joints], slopes, self.output[inputs:])
        return float(np.linalg.norm((direct + bent) / ERROR_RAD, 2, axis=(1, 2)).max())

    def _hidden(self, fit: Fit) -> tuple[Float64Array, Float64Array]:
        x = recorded_inputs(self.features, fit.data.fitted, fit.data.slots)
        return x, np.concatenate([x, np.tanh(x @ self.features.weights + self.features.shift)], axis=1)


@dataclass(frozen=True)
class _OutputLayer:
    """The output weights as numbers for the solver; everything else as the linear fit left it."""

    shape: tuple[int, int]
    width: int
    latency_s: float

    @property
    def bounds(self) -> tuple[Float64Array, Float64Array]:
        size = self.shape[0] * self.shape[1]
        return np.full(size, -LARGEST), np.full(size, LARGEST)

    def settings(self, scaled: Float64Array) -> Settings:
        nominal = nominal_settings(scaled.shape[1], self.width)
        network = WEIGHT * scaled.T.reshape(-1, *self.shape)
        return Settings(nominal.joints, np.full(scaled.shape[1], self.latency_s), network)


def fit_network(
    fit: Fit,
    linear: Explained,
    *,
    hidden: int = 24,
    frames: int = 4,
    seed: int = 0,
    progress: Progress = lambda iteration, rms_deg: None,
) -> NetworkFit:
    """Fit a network to the data of a fit.

    Args:
        fit: data, model and joints.
        linear: its linear explanation, where the network starts.
        hidden: units.
        frames: that it sees, the present one included.
        seed: of the hidden layer.
        progress: see `solve.Progress`.
    """
    begin = time.perf_counter()
    features = sample_features(fit.data.fitted, fit.data.slots, fit.columns, frames, hidden, seed)
    start = _start(features, linear)
    layer = _OutputLayer(start.shape, len(fit.model.slots), linear.solution.latency_s)
    with Shooter(fit.model, fit.data.fitted, features=features) as shooter:
        problem = Tuned(Target(shooter, fit.columns), layer)
        scaled, iterations = descend(problem, start.ravel() / WEIGHT, 0, progress, RIDGE_RAD, ITERATIONS)
    settings = layer.settings(scaled[:, None])
    fitted, held_out = (
        compare(fit.model, data, fit.columns, settings, features)
        for data in (fit.data.fitted, fit.data.held_out)
    )
    output = WEIGHT * scaled.reshape(start.shape)
    seconds = time.perf_counter() - begin
    return NetworkFit(features, output, layer.latency_s, fitted, held_out, iterations, seconds)


def _start(features: Features, linear: Explained) -> Float64Array:
    """(features, joints): the linear delta through the skip connection of the newest frame."""
    found, joints = linear.solution.by_knob(), len(features.columns)
    output: NDArray[np.float64] = np.zeros((features.width, joints))
    for j, column in enumerate(features.columns.tolist()):
        output[j, j] = found["a"][column] * ERROR_RAD
        output[joints + j, j] = found["b"][column] * SPEED_RAD_S
    return output
