"""Least squares over whole trajectories: which numbers make the simulator do what the robot did."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import mujoco.minimize
import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.features import Features
from onboard.analysis.fit.knobs import (
    LATENCY,
    STAGES,
    Float64Array,
    Kind,
    Parameters,
    Settings,
    nominal_settings,
)
from onboard.analysis.fit.model import FitModel
from onboard.analysis.fit.shooting import Shooter
from onboard.analysis.fit.trajectory import Trajectory

DIFFERENCE = 1e-4
"""Step of the finite differences, of scaled parameters; far above the integrator's noise."""
STEP_TOLERANCE = 1e-3
GRADIENT_TOLERANCE = 1e-7
MAX_ITERATIONS = 20
LOST_RAD = np.pi
"""Largest error that counts, so that a simulation that ran away leaves the others their say."""

Progress = Callable[[int, float], object]
"""Called after every iteration with its number and the RMS error so far, deg."""


@dataclass(frozen=True)
class Solution:
    """What a fit found.

    Attributes:
        parameters: which numbers were fitted.
        scaled: their values, scaled.
        iterations: of the solver.
        seconds: it took.
    """

    parameters: Parameters
    scaled: Float64Array
    iterations: int
    seconds: float

    @property
    def settings(self) -> Settings:
        """What one simulation needs."""
        return self.parameters.settings(self.scaled[:, None])

    @property
    def latency_s(self) -> float:
        """Command latency found; 0 where it was not fitted."""
        return float(self.settings.latency_s[0])

    def by_knob(self) -> dict[str, dict[int, float]]:
        """Knob to column of the model to value, in the knob's unit; the latency is not among them."""
        found: dict[str, dict[int, float]] = {}
        values = self.parameters.values(self.scaled)
        for parameter, value in zip(self.parameters.items, values.tolist(), strict=True):
            if parameter.column is not None and parameter.knob != LATENCY:
                found.setdefault(parameter.knob, {})[parameter.column] = value
        return found


class Problem(Protocol):
    """Errors as a function of scaled numbers that a solver may turn."""

    @property
    def size(self) -> int:
        """Errors in all."""

    @property
    def bounds(self) -> tuple[Float64Array, Float64Array]:
        """Lower and upper bounds of the numbers."""

    def residual(self, scaled: Float64Array) -> Float64Array:
        """Points (numbers, m) to errors (size, m), rad."""


class Tunable(Protocol):
    """Scaled numbers that simulations depend on."""

    @property
    def bounds(self) -> tuple[Float64Array, Float64Array]:
        """Lower and upper bounds."""

    def settings(self, scaled: Float64Array) -> Settings:
        """Points (parameters, m) to what m simulations need."""


@dataclass(frozen=True)
class Tuned:
    """A target, and what may be turned."""

    target: "Target"
    parameters: Tunable

    @property
    def size(self) -> int:
        """Errors in all."""
        return self.target.size

    @property
    def bounds(self) -> tuple[Float64Array, Float64Array]:
        """Of the parameters."""
        return self.parameters.bounds

    def residual(self, scaled: Float64Array) -> Float64Array:
        """See `Problem`."""
        return self.target.residual(self.parameters.settings(scaled))


class Target:
    """Errors of the simulator against recorded trajectories, on some of the model's joints.

    Args:
        shooter: simulates them.
        columns: joints of the model whose error counts.
    """

    def __init__(self, shooter: Shooter, columns: NDArray[np.intp]) -> None:
        self._shooter = shooter
        self._columns = columns
        slots = shooter.model.slots[columns]
        measured = np.full((len(shooter.trajectories), shooter.rows, len(columns)), np.nan)
        for k, t in enumerate(shooter.trajectories):
            measured[k, : t.rows] = t.q[t.first :, slots]
        # The first row is where both start.
        self._measured = measured[:, 1:]
        self._counts = np.isfinite(self._measured)

    @property
    def size(self) -> int:
        """Errors in all."""
        return int(self._counts.sum())

    def errors(self, settings: Settings) -> Float64Array:
        """(m, trajectories, rows - 1, columns) simulated less measured, rad; NaN beyond a log's end."""
        found = self._shooter.simulate(settings)[:, :, 1:, self._columns]
        errors: Float64Array = np.clip(found - self._measured, -LOST_RAD, LOST_RAD)
        return errors

    def residual(self, settings: Settings) -> Float64Array:
        """(errors of all rows, m), rad."""
        errors = self.errors(settings)
        flat: Float64Array = errors[:, self._counts].T
        return flat


def solve(
    model: FitModel,
    trajectories: Sequence[Trajectory],
    columns: NDArray[np.intp],
    kind: Kind,
    *,
    latency: bool = True,
    progress: Progress = lambda iteration, rms_deg: None,
) -> Solution:
    """Fit one explanation to all trajectories together.

    Args:
        model: the simulator.
        trajectories: what to reproduce; each starts at its own recorded state.
        columns: joints of the model that are fitted and whose error counts.
        kind: what may be turned.
        latency: fit the command latency too.
        progress: see `Progress`.
    """
    begin = time.perf_counter()
    solution: Solution | None = None
    with Shooter(model, trajectories) as shooter:
        target = Target(shooter, columns)
        for knobs in STAGES[kind]:
            parameters = Parameters(knobs, columns, len(model.slots), latency=latency)
            start = parameters.start
            if solution is not None:
                start = parameters.start_at(solution.parameters, solution.scaled)
            done = 0 if solution is None else solution.iterations
            scaled, iterations = descend(Tuned(target, parameters), start, done, progress)
            solution = Solution(parameters, scaled, iterations, time.perf_counter() - begin)
    if solution is None:
        raise ValueError(f"no stages for {kind}")
    return solution


def descend(
    problem: Problem,
    start: Float64Array,
    done: int,
    progress: Progress,
    ridge_rad: float = 0.0,
    most: int = MAX_ITERATIONS,
) -> tuple[Float64Array, int]:
    """One run of the solver; the scaled numbers and the iterations so far.

    Args:
        problem: errors to make small.
        start: scaled.
        done: iterations before.
        progress: see `Progress`.
        ridge_rad: error that a scaled number costs for every unit that it is away from the start.
        most: iterations.
    """

    def residual(scaled: Float64Array) -> Float64Array:
        errors = problem.residual(scaled)
        if not ridge_rad:
            return errors
        return np.concatenate([errors, ridge_rad * (scaled - start[:, None])])

    def after(trace: list[mujoco.minimize.IterLog]) -> None:
        # Its objective is half the sum of squares.
        squares = 2 * float(trace[-1].objective - trace[-1].reduction)
        progress(done + len(trace), float(np.degrees(np.sqrt(squares / problem.size))))

    found, trace = mujoco.minimize.least_squares(
        start,
        residual,
        bounds=problem.bounds,
        eps=DIFFERENCE,
        xtol=STEP_TOLERANCE,
        gtol=GRADIENT_TOLERANCE,
        max_iter=most,
        verbose=mujoco.minimize.Verbosity.SILENT,
        iter_callback=after,
    )
    return np.asarray(found).reshape(-1), done + len(trace)


def rms_deg(errors: Float64Array) -> float:
    """Root mean square of all errors that count, rad to deg."""
    return float(np.degrees(np.sqrt(np.nanmean(errors**2))))


def joint_rms_deg(errors: Float64Array) -> list[float]:
    """The same for every column, the last axis of `errors`."""
    squares = errors.reshape(-1, errors.shape[-1]) ** 2
    return [float(value) for value in np.degrees(np.sqrt(np.nanmean(squares, axis=0)))]


@dataclass(frozen=True)
class Comparison:
    """Errors of the nominal and of the fitted simulator on the same trajectories, rad.

    Attributes:
        before, after: (trajectories, rows - 1, columns), NaN beyond a trajectory's end.
    """

    before: Float64Array
    after: Float64Array

    @property
    def before_deg(self) -> float:
        """RMS of all."""
        return rms_deg(self.before)

    @property
    def after_deg(self) -> float:
        """RMS of all."""
        return rms_deg(self.after)


def compare(
    model: FitModel,
    trajectories: Sequence[Trajectory],
    columns: NDArray[np.intp],
    settings: Settings,
    features: Features | None = None,
) -> Comparison:
    """Simulate once as the simulator is, once with the settings of a fit."""
    with Shooter(model, trajectories, features=features) as shooter:
        target = Target(shooter, columns)
        before = target.errors(nominal_settings(1, len(model.slots)))[0]
        return Comparison(before, target.errors(settings)[0])
