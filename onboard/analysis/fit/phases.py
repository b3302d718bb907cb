"""Logs by contact phase: bench runs for flight, short windows of walks for every way of standing.

A walk can't be followed for long by a simulation that does not balance, so it is cut into windows that
each start at their own recorded state and lie within one contact phase. The phase is that of the recorded
contact, which is what the slot will go by; rows near a touchdown or lift-off belong to none, since there a
foot that lands a millisecond earlier or later decides, and not the delta.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.fit import HELD_OUT_SHARE, Data, Wish, moves
from onboard.analysis.fit.reading import read_trajectories
from onboard.analysis.fit.trajectory import EXCITED_RAD, Trajectory, excited, split_time
from onboard.configs.errors import ConfigError, RolloutError
from onboard.configs.robot import RobotConfig
from onboard.logging.preprocess.contact import Phase as FootPhase
from onboard.logging.preprocess.contact import Support, foot_phases, support
from onboard.policies.residual.contract import Phase

WINDOW_ROWS = 8
"""Simulated rows of a window, 0.16 s: long enough that a weak joint gives way by a degree, short enough that
the nominal robot stays within 0.1 degrees of its recording."""
STRIDE_ROWS = 4
"""From one window's start to the next one's."""
MOST_WINDOWS = 30
"""Of a phase, spread over the logs; more cost time and tell little."""
LEAST_WINDOWS = 10
STANDING: Mapping[Phase, Support] = {"left": Support.LEFT, "right": Support.RIGHT, "both": Support.BOTH}

Logs = Mapping[Path, Sequence[Trajectory]]


def gather_phases(wish: Wish, robot: RobotConfig) -> dict[Phase, Data]:
    """Read logs of hanging and of walking robots and divide them by phase.

    Of each kind the last of several logs is held out (or those of `wish.held_out`), of a single one the
    last part of every stretch.

    Raises:
        ConfigError: a joint is unknown, or no log is named.
        RolloutError: a log can't be used, or a phase has too little data; the message says what to record.
    """
    if not wish.logs:
        raise ConfigError("no log to fit; name a bench run and a walk at least")
    named, held_out = (
        {path: read_trajectories(path, robot, wish.gains) for path in paths}
        for paths in (wish.logs, wish.held_out)
    )
    for path, trajectories in (named | held_out).items():
        _check(path, trajectories)
    hanging, walking = (_divide(named, held_out, hangs) for hangs in (True, False))
    slots = np.array([robot.slot(joint) for joint in wish.joints], dtype=np.intp)
    flight = _flight(*hanging, slots)
    found: dict[Phase, Data] = {"flight": flight}
    for phase, feet in STANDING.items():
        found[phase] = _standing(phase, feet, *walking, flight.slots)
    return found


def windows(trajectory: Trajectory, feet: Support) -> list[Trajectory]:
    """Windows of which every row belongs to one way of standing, away from its ends."""
    phases = foot_phases(trajectory.contact)
    steady = ((phases == FootPhase.STANCE) | (phases == FootPhase.FLIGHT)).all(axis=1)
    inside: NDArray[np.bool_] = np.logical_and(steady, support(trajectory.contact) == feet)
    known = np.asarray(np.isfinite(trajectory.base_velocity).all(axis=1))
    found = []
    row, last = trajectory.first, len(trajectory.t_s) - WINDOW_ROWS
    while row < last:
        if known[row] and inside[row : row + WINDOW_ROWS + 1].all():
            found.append(trajectory.cut(row, row + WINDOW_ROWS + 1))
            row += STRIDE_ROWS
        else:
            row += 1
    return found


def _check(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """A log must know its contact, and off the gantry its velocity."""
    if not any((t.contact >= 0).any() for t in trajectories):
        raise RolloutError(
            f"{path}: its contact is not known in any row, so no row has a phase; record with onboard run or "
            "onboard bench of this version, or give the npz a key 'contact' (n, 2)"
        )
    moving = any(np.isfinite(t.base_velocity).all(axis=1).any() for t in trajectories)
    if not moving and not _hangs(trajectories):
        raise RolloutError(
            f"{path}: the robot stands in it, but its base velocity is not known in any row; record with "
            "onboard run of this version, feed an external pose, or give the npz a key 'base_velocity' (n, 3)"
        )


def _hangs(trajectories: Sequence[Trajectory]) -> bool:
    return not any((t.contact == 1).any() for t in trajectories)


def _divide(named: Logs, held_out: Logs, hangs: bool) -> tuple[Logs, Logs]:
    """Logs of one kind to fit, and to test on."""
    mine, tested = (
        {path: list(ts) for path, ts in logs.items() if _hangs(ts) is hangs} for logs in (named, held_out)
    )
    if tested or not mine:
        return mine, tested
    if len(mine) > 1:
        path = list(mine)[-1]
        return mine, {path: mine.pop(path)}
    ((path, trajectories),) = mine.items()
    parts = [split_time(t, HELD_OUT_SHARE) for t in trajectories]
    return {path: [first for first, _ in parts]}, {path: [last for _, last in parts]}


def _flight(fitted: Logs, tested: Logs, slots: NDArray[np.intp]) -> Data:
    """Bench runs, as for a delta without phases; without named joints those that they move."""
    if not fitted:
        raise RolloutError(
            "phase flight: no log of a hanging robot among those to fit; add a bench run of the joints"
        )
    if not len(slots):
        slots = excited([t for ts in fitted.values() for t in ts])
    kept, held = ([t for ts in logs.values() for t in ts if moves(t, slots)] for logs in (fitted, tested))
    if not (kept and held):
        where = ", ".join(map(str, tested if kept else fitted)) or "nothing"
        raise RolloutError(
            f"phase flight: {where}: no joint to fit has a target that moves by {EXCITED_RAD} rad; add a "
            "bench run that excites it, or name other joints with --joints"
        )
    return Data(tuple(kept), tuple(held), _hashes(fitted), _hashes(tested), slots)


def _standing(phase: Phase, feet: Support, fitted: Logs, tested: Logs, slots: NDArray[np.intp]) -> Data:
    every = [[w for ts in logs.values() for t in ts for w in windows(t, feet)] for logs in (fitted, tested)]
    for found, logs, what in zip(every, (fitted, tested), ("to fit", "held out"), strict=True):
        if len(found) < LEAST_WINDOWS:
            where = ", ".join(path.name for path in logs) or "no log of a robot on the ground"
            how = "longer stands" if phase == "both" else "more walking, in every direction"
            raise RolloutError(
                f"phase {phase}: {len(found)} windows of {WINDOW_ROWS * 0.02:g} s {what} ({where}), expected "
                f"at least {LEAST_WINDOWS}; record {how}"
            )
    kept, held = (tuple(_spread(found)) for found in every)
    return Data(kept, held, _hashes(fitted), _hashes(tested), slots)


def _spread(found: Sequence[Trajectory]) -> Iterable[Trajectory]:
    """At most `MOST_WINDOWS`, evenly."""
    take = np.linspace(0, len(found) - 1, min(len(found), MOST_WINDOWS)).round().astype(int)
    return [found[k] for k in take.tolist()]


def _hashes(logs: Logs) -> dict[str, str]:
    return {path.name: trajectories[0].sha256 for path, trajectories in logs.items()}
