"""Contract check on recorded states: the observation rebuilt and the policy run again, tick by tick.

Nothing is simulated. Every row of a policy in charge goes through the same code as at run time: `reset`
where an episode begins, `observe` with the logged state, command and grid step, `infer`, and `commit` with
what was logged, so that one difference does not spread into all rows behind it. On the machine and with
the versions that recorded, an observation must come out bit by bit.
"""

import json
import platform
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import RolloutError
from onboard.configs.loader import parse_yaml
from onboard.logging.layout import LIMITS
from onboard.logging.rollout import Rollout
from onboard.policies.command import MotionCommand
from onboard.policies.estimators.provider import EXTERNAL, signals_from
from onboard.policies.labels import action_labels, observation_labels
from onboard.policies.policy import Policy
from onboard.runtime.link import State

SAME_OBS, SAME_ACTION = 0.0, 1e-6
"""Allowed differences on the machine and with the versions that recorded."""
OTHER_OBS, OTHER_ACTION = 1e-6, 1e-4
"""Anywhere else: other processors and libraries round differently."""

_STATE = ("q", "dq", "tau_est", "quat_wxyz", "gyro_body", "accel_body", "torso_quat_wxyz", "torso_gyro")
_ROW = (*_STATE, "robot_tick", "command", "step", "episode", "tick", "skipped_ticks", "limit_mask")
_PROVIDED = {"base_lin_vel": "base_velocity", "contact": "contact"}
"""Privileged signals to the columns that hold what their provider gave, unless it was the external pose."""


@dataclass(frozen=True)
class Difference:
    """The largest difference of one kind.

    Attributes:
        rows: that differ by more than is allowed.
        largest: over all rows; 0 where nothing could be compared.
        where: row of the rollout and name of the element of the largest, "" where nothing differs.
    """

    rows: int
    largest: float
    where: str


@dataclass(frozen=True)
class Parity:
    """One policy of a rollout, replayed.

    Attributes:
        policy: its name.
        rows: compared.
        left_out: rows behind a loss of records, whose history can't be known, until the next reset.
        unknown: elements of the observation that the rollout does not hold, not compared.
        obs, action: differences.
        same_machine: the tolerance that was used is the strict one.
    """

    policy: str
    rows: int
    left_out: int
    unknown: int
    obs: Difference
    action: Difference
    same_machine: bool

    @property
    def holds(self) -> bool:
        """Everything agrees."""
        return self.rows > 0 and not self.obs.rows and not self.action.rows

    def describe(self) -> str:
        """In one line, and where the largest differences are in one more each."""
        if not self.rows:
            return f"{self.policy}: no rows to compare"
        kind = "this machine" if self.same_machine else "another machine or other versions"
        text = (
            f"{self.policy}: {'agrees' if self.holds else 'DIFFERS'} over {self.rows} rows ({kind}): "
            f"observation {self.obs.largest:.2g} in {self.obs.rows} rows, action {self.action.largest:.2g} "
            f"in {self.action.rows} rows"
        )
        text += f"; {self.left_out} rows behind lost records left out" if self.left_out else ""
        text += f"; {self.unknown} elements are not in the rollout" if self.unknown else ""
        for difference in (self.obs, self.action):
            text += f"\n  largest at {difference.where}" if difference.where else ""
        return text


def replay(rollout: Rollout, index: int, policy: Policy) -> Parity:
    """Replay one policy of a rollout.

    Args:
        rollout: the log.
        index: of the policy in the run.
        policy: built from the files that the run used, or from what is to be checked against them.

    Raises:
        RolloutError: the policy has other widths than the logged one.
    """
    log = rollout.policies[index]
    wanted = {"obs": policy.obs.size, "action_policy": policy.raw.size}
    for name, size in wanted.items():
        if log.width(name) != size:
            raise RolloutError(
                f"{rollout.path}: {log.name} logged '{name}' with {log.width(name)} numbers, the given "
                f"policy has {size}; give the one that was run"
            )
    same = same_machine(rollout)
    rebuilt, again, usable = _run_again(rollout, index, policy)
    obs, action = log.column("obs"), log.column("action_policy")
    known = ~np.isnan(rebuilt[usable]).any(axis=0) | np.isnan(obs[usable]).any(axis=0)
    answered = usable & np.isfinite(action).all(axis=1) & known.all()
    allowed = (SAME_OBS, SAME_ACTION) if same else (OTHER_OBS, OTHER_ACTION)
    obs_names = np.array(observation_labels(policy.bundle))[known]
    return Parity(
        policy=log.name,
        rows=int(usable.sum()),
        left_out=int((~usable).sum()),
        unknown=int((~known).sum()),
        obs=_difference(obs[:, known], rebuilt[:, known], usable, allowed[0], log.rows, obs_names.tolist()),
        action=_difference(action, again, answered, allowed[1], log.rows, action_labels(policy.bundle)),
        same_machine=same,
    )


def bring_to(rollout: Rollout, index: int, policy: Policy, row: int) -> None:
    """Leave a policy as it was before a row of the rollout: histories, last action, clocks, reference.

    Args:
        rollout: the log.
        index: of the policy in the run.
        policy: to bring there.
        row: of the rollout, in which that policy is in charge.
    """
    rows = rollout.policies[index].rows
    episode = rollout.column("episode")[rows]
    last = int(np.searchsorted(rows, row))
    first = int(np.searchsorted(episode, episode[last]))
    _run_again(rollout, index, policy, slice(first, last))


def same_machine(rollout: Rollout) -> bool:
    """Recorded on this machine, with the libraries that decide about rounding."""
    machine = json.loads(str(rollout.attributes.get("machine", "{}")))
    software = json.loads(str(rollout.attributes.get("software", "{}")))
    import onnxruntime

    here = {"numpy": np.__version__, "onnxruntime": onnxruntime.__version__}
    return machine.get("host") == platform.node() and all(
        software.get(name) == version for name, version in here.items()
    )


def _run_again(
    rollout: Rollout, index: int, policy: Policy, select: slice = slice(None)
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """Observations and actions of the policy's logged rows, and which of these have a known history."""
    log = rollout.policies[index]
    rows = log.rows[select]
    feedback = log.column("action_combined" if _feeds_combined(rollout, index) else "action_policy", select)
    columns = {name: rollout.column(name)[rows] for name in _ROW}
    provided = _provided(rollout, policy, rows)
    starts, broken = _starts(columns, rows)
    resent = (columns["limit_mask"] & LIMITS["resent"]).any(axis=1)
    rebuilt = np.empty((len(rows), policy.obs.size), np.float32)
    again = np.full((len(rows), policy.raw.size), np.nan, np.float32)
    state, command = State(), MotionCommand()
    for k in range(len(rows)):
        _load(state, command, columns, k)
        for signal, values in provided.items():
            policy.provided[signal][:] = values[k]
        if starts[k]:
            policy.reset(state)
        rebuilt[k] = policy.observe(state, command, int(columns["step"][k]))
        again[k] = policy.infer()
        if np.isfinite(feedback[k]).all() and not resent[k]:
            policy.commit(feedback[k])
    return rebuilt, again, ~broken


def _provided(rollout: Rollout, policy: Policy, rows: NDArray[np.int64]) -> dict[str, np.ndarray]:
    """What the providers gave, as far as the rollout holds it: signal to (rows, width)."""
    given = {signal: rollout.column(column)[rows] for signal, column in _PROVIDED.items()}
    outside = signals_from(policy.bundle.contract, EXTERNAL)
    if "base_lin_vel" in outside:
        given["base_lin_vel"] = rollout.column("external_velocity")[rows]
    if "base_height" in outside:
        given["base_height"] = rollout.column("external_pose")[rows][:, 2:3].astype(np.float32)
    return given


def _starts(
    columns: dict[str, np.ndarray], rows: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows that begin an episode, and rows behind lost records of theirs."""
    new = np.diff(columns["episode"].astype(np.int64), prepend=-1) != 0
    passed = np.diff(columns["tick"].astype(np.int64), prepend=0)
    skipped = np.diff(columns["skipped_ticks"].astype(np.int64), prepend=0)
    lost = ~new & ((passed != 1 + skipped) | (np.diff(rows, prepend=0) != 1))
    # An episode whose first row is lost has none with step 0.
    lost |= new & (columns["step"] != 0)
    episode = np.cumsum(new)
    broken = np.zeros(len(new), bool)
    for number in np.unique(episode[lost]):
        mine = episode == number
        broken |= mine & (np.arange(len(new)) >= np.flatnonzero(lost & mine)[0])
    return new, broken


def _load(state: State, command: MotionCommand, columns: dict[str, np.ndarray], k: int) -> None:
    for name in _STATE:
        getattr(state, name)[:] = columns[name][k]
    state.robot_tick = int(columns["robot_tick"][k])
    state.received = True
    command.values[:] = columns["command"][k]


def _feeds_combined(rollout: Rollout, index: int) -> bool:
    """The run's residual made the combined action the policy's last action."""
    text = str(list(rollout.attributes.get("residual", [""] * (index + 1)))[index])
    data = parse_yaml(text, str(rollout.path)) if text else {}
    slot = data.get("residual", {}) if isinstance(data, dict) else {}
    return bool(slot.get("feedback") == "combined")


def _difference(
    logged: np.ndarray,
    found: np.ndarray,
    usable: NDArray[np.bool_],
    allowed: float,
    rows: NDArray[np.int64],
    names: list[str],
) -> Difference:
    # Numbers that are NaN on both sides agree.
    both = np.isnan(logged) & np.isnan(found)
    gap = np.abs(logged.astype(np.float64) - found)
    gap[both] = 0.0
    gap[np.isnan(gap)] = np.inf
    gap[~usable] = 0.0
    if not gap.size or not gap.max() > 0:
        return Difference(0, 0.0, "")
    row, column = np.unravel_index(int(gap.argmax()), gap.shape)
    where = (
        f"row {rows[row]}, {names[int(column)]}: logged {logged[row, column]:.9g}, "
        f"rebuilt {found[row, column]:.9g}"
    )
    return Difference(int((gap > allowed).any(axis=1).sum()), float(gap.max()), where)
