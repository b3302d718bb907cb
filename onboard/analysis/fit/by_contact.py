"""A delta for each contact phase, and for comparison one for all of them, on the same data.

Every phase has its own simulator: on the bench the pelvis moves as it was recorded, on the ground it is free
and there is a floor. What they share is the command latency, which no contact changes. First one delta is
fitted to all phases together. From there each phase's own delta starts, and a ridge keeps what the phase's
data do not ask for where it was: a robot that stands still tells little.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.fit import Data, Explained, Fit, Tell
from onboard.analysis.fit.free import free_model
from onboard.analysis.fit.held import held_model
from onboard.analysis.fit.knobs import Float64Array, Parameters
from onboard.analysis.fit.model import FitModel
from onboard.analysis.fit.shooting import Shooter
from onboard.analysis.fit.solve import Problem, Solution, Target, Tuned, compare, descend
from onboard.configs.robot import RobotConfig
from onboard.policies.residual.contract import Phase

KNOBS = ("a", "b")
RIDGE_RAD = 0.005
ITERATIONS = 12
"""Of the solver, for one delta and again for each phase's own; later ones change nothing any more."""


@dataclass(frozen=True)
class PhaseFit:
    """One phase.

    Attributes:
        phase: which feet stand on the ground.
        fit: data, simulator, and the phase's own delta as the only explanation.
        one: the delta that all phases share, judged on this phase's data.
    """

    phase: Phase
    fit: Fit
    one: Explained

    @property
    def own(self) -> Explained:
        """The phase's own delta."""
        return self.fit.explained[0]


@dataclass(frozen=True)
class _Place:
    """A phase while it is fitted.

    Attributes:
        problem: its errors, as they depend on `parameters`.
        parameters: its coefficients, the latency last.
        data, model, columns: as in `Fit`.
    """

    problem: Problem
    parameters: Parameters
    data: Data
    model: FitModel
    columns: NDArray[np.intp]


class Together:
    """The errors of several problems, one after the other, as one problem for the solver.

    Args:
        problems: with numbers of their own.
        takes: for each of them where its numbers stand among all.
    """

    def __init__(self, problems: Sequence[Problem], takes: Sequence[NDArray[np.intp]]) -> None:
        self._parts = tuple(zip(problems, takes, strict=True))
        low, high = (np.empty(1 + max(int(take.max()) for take in takes)) for _ in range(2))
        for problem, take in self._parts:
            low[take], high[take] = problem.bounds
        self.bounds = low, high

    @property
    def size(self) -> int:
        """Errors in all."""
        return sum(problem.size for problem, _ in self._parts)

    def residual(self, scaled: Float64Array) -> Float64Array:
        """(errors of all, m); each problem is asked once for each of its different points."""
        errors = []
        for problem, take in self._parts:
            points, which = np.unique(scaled[take], axis=1, return_inverse=True)
            errors.append(problem.residual(points)[:, which.ravel()])
        return np.concatenate(errors)


def fit_by_contact(
    data: Mapping[Phase, Data], robot: RobotConfig, *, latency: bool = True, tell: Tell = lambda line: None
) -> tuple[PhaseFit, ...]:
    """Fit one delta to all phases, then one to each.

    Args:
        data: from `phases.gather_phases`.
        robot: the joints' order.
        latency: fit the command latency too.
        tell: gets a line of progress after every iteration.
    """
    begin = time.perf_counter()
    with ExitStack() as stack:
        places = [_place(stack, each, phase, robot, latency) for phase, each in data.items()]
        problems = [place.problem for place in places]
        shared, each = _takes(places, latency)
        start = places[0].parameters.start
        together = Together(problems, shared)
        one, steps = descend(together, start, 0, _progress("one delta", tell), most=ITERATIONS)
        between = time.perf_counter()
        start = np.empty(1 + max(int(take.max()) for take in each))
        for take in each:
            start[take] = one
        own, more = descend(
            Together(problems, each), start, 0, _progress("by contact", tell), RIDGE_RAD, ITERATIONS
        )
    seconds = between - begin, time.perf_counter() - between
    found = []
    for phase, place, take in zip(data, places, each, strict=True):
        first, second = (
            _explained(place, Solution(place.parameters, scaled, count, spent))
            for scaled, count, spent in ((one, steps, seconds[0]), (own[take], more, seconds[1]))
        )
        found.append(PhaseFit(phase, Fit(place.data, place.model, place.columns, (second,)), first))
    return tuple(found)


def _place(stack: ExitStack, data: Data, phase: Phase, robot: RobotConfig, latency: bool) -> _Place:
    model = held_model(robot, data.slots) if phase == "flight" else free_model(robot)
    columns = model.columns(data.slots)
    target = Target(stack.enter_context(Shooter(model, data.fitted)), columns)
    parameters = Parameters(KNOBS, columns, len(model.slots), latency=latency)
    return _Place(Tuned(target, parameters), parameters, data, model, columns)


def _takes(places: Sequence[_Place], latency: bool) -> tuple[list[NDArray[np.intp]], list[NDArray[np.intp]]]:
    """Where each phase's numbers stand: all in the same places, or apart but for the latency at the end."""
    own = len(places[0].parameters) - latency
    end = own * len(places)
    apart = [np.arange(k * own, (k + 1) * own) for k in range(len(places))]
    if latency:
        apart = [np.append(place, end) for place in apart]
    return [np.arange(own + latency) for _ in places], apart


def _explained(place: _Place, solution: Solution) -> Explained:
    fitted, held_out = (
        compare(place.model, part, place.columns, solution.settings)
        for part in (place.data.fitted, place.data.held_out)
    )
    return Explained("linear", solution, fitted, held_out)


def _progress(what: str, tell: Tell) -> Callable[[int, float], object]:
    return lambda iteration, rms_deg: tell(f"{what}: iteration {iteration}, {rms_deg:.3f} deg RMS")
