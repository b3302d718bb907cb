"""From logs to a judged fit: which data to fit, which to hold out, both explanations, errors, warnings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.held import held_model
from onboard.analysis.fit.knobs import Kind
from onboard.analysis.fit.model import FitModel
from onboard.analysis.fit.reading import Gains, read_trajectories
from onboard.analysis.fit.solve import Comparison, Solution, compare, solve
from onboard.analysis.fit.trajectory import EXCITED_RAD, Trajectory, excited, split_time
from onboard.configs.errors import ConfigError, RolloutError
from onboard.configs.robot import RobotConfig

HELD_OUT_SHARE = 0.3
"""Of every stretch, at its end, where there is no other log to hold out."""

Tell = Callable[[str], object]


@dataclass(frozen=True)
class Wish:
    """What to fit.

    Attributes:
        logs: rollouts or npz files.
        held_out: logs to test on; the last of `logs` where there are several, else a time split.
        joints: names; those that were moved on purpose where empty.
        kinds: explanations to try.
        latency: fit the command latency too.
        gains: what the logs do not tell.
    """

    logs: tuple[Path, ...]
    held_out: tuple[Path, ...] = ()
    joints: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ("linear", "physical")
    latency: bool = True
    gains: Gains | None = None


@dataclass(frozen=True)
class Data:
    """The trajectories of a fit.

    Attributes:
        fitted, held_out: stretches in which a joint of interest moved.
        files, held_out_files: sha256 by file name; one file may stand in both, split in time.
        slots: SDK motor indices of the joints.
    """

    fitted: tuple[Trajectory, ...]
    held_out: tuple[Trajectory, ...]
    files: dict[str, str]
    held_out_files: dict[str, str]
    slots: NDArray[np.intp]


@dataclass(frozen=True)
class Explained:
    """One explanation and how well it describes the data.

    Attributes:
        kind: which.
        solution: the numbers.
        fitted, held_out: errors of the nominal and of the fitted simulator.
    """

    kind: Kind
    solution: Solution
    fitted: Comparison
    held_out: Comparison

    @property
    def improved(self) -> bool:
        """The error on data that was not fitted dropped."""
        return self.held_out.after_deg < self.held_out.before_deg


@dataclass(frozen=True)
class Fit:
    """All of it."""

    data: Data
    model: FitModel
    columns: NDArray[np.intp]
    explained: tuple[Explained, ...]


def gather(wish: Wish, robot: RobotConfig) -> Data:
    """Read the logs and divide them.

    Raises:
        ConfigError: a joint is unknown, or no log is named.
        RolloutError: a log can't be used, or no joint moved.
    """
    if not wish.logs:
        raise ConfigError("no log to fit; name one or more rollouts or npz files")
    named, held_out = list(wish.logs), list(wish.held_out)
    if not held_out and len(named) > 1:
        held_out = [named.pop()]
    logs = {path: read_trajectories(path, robot, wish.gains) for path in (*named, *held_out)}
    fitted = [trajectory for path in named for trajectory in logs[path]]
    slots = np.array([robot.slot(joint) for joint in wish.joints], dtype=np.intp)
    if not len(slots):
        slots = excited(fitted)
    fitted = [trajectory for trajectory in fitted if moves(trajectory, slots)]
    if not fitted:
        raise RolloutError(
            f"{', '.join(map(str, named))}: no joint to fit has a target that moves by {EXCITED_RAD} rad; "
            "record a bench run that excites it, or name others with --joints"
        )
    if held_out:
        tested = [t for path in held_out for t in logs[path] if moves(t, slots)]
    else:
        fitted, tested = map(list, zip(*(split_time(t, HELD_OUT_SHARE) for t in fitted), strict=True))
    if not tested:
        raise RolloutError(
            f"{', '.join(map(str, held_out))}: holds nothing in which the joints to fit move; name another"
        )
    files, tested_files = (
        {path.name: logs[path][0].sha256 for path in paths} for paths in (named, held_out or named)
    )
    return Data(tuple(fitted), tuple(tested), files, tested_files, slots)


def fit(data: Data, wish: Wish, robot: RobotConfig, tell: Tell = lambda line: None) -> Fit:
    """Fit every explanation that was asked for.

    Args:
        data: from `gather`.
        wish: what to fit.
        robot: the joints' order.
        tell: gets a line of progress after every iteration.
    """
    model = held_model(robot, data.slots)
    columns = model.columns(data.slots)
    explained = []
    for kind in wish.kinds:

        def progress(iteration: int, rms_deg: float, kind: Kind = kind) -> None:
            tell(f"{kind}: iteration {iteration}, {rms_deg:.3f} deg RMS")

        solution = solve(model, data.fitted, columns, kind, latency=wish.latency, progress=progress)
        fitted = compare(model, data.fitted, columns, solution.settings)
        tested = compare(model, data.held_out, columns, solution.settings)
        explained.append(Explained(kind, solution, fitted, tested))
    return Fit(data, model, columns, tuple(explained))


def moves(trajectory: Trajectory, slots: Sequence[int] | NDArray[np.intp]) -> bool:
    """One of these joints is moved on purpose."""
    return bool(np.isin(excited([trajectory]), slots).any())
