"""Episodes of an A/B experiment: flown in lock-step, or read from recorded rollouts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onboard.analysis.ab.metrics import (
    COLUMNS,
    POLICY_COLUMNS,
    Subject,
    episode_metrics,
    residual_share,
)
from onboard.analysis.ab.schedule import ArmName, Slot
from onboard.analysis.ab.scores import Score
from onboard.cli.trial import Trial, Variation
from onboard.configs.errors import RolloutError
from onboard.configs.events import Arm, Event, Mode, bits, names
from onboard.configs.robot import N_JOINTS
from onboard.configs.script import ScriptConfig
from onboard.logging.layout import SafetyFlag
from onboard.logging.rollout import Rollout
from onboard.runtime.assembly import Plan

CONTACT_N = 10.0
LAST_WORD_ROWS = 2
"""Rows after an episode that still tell why it ended; what a damped robot does then is nobody's fault."""
FALLS = frozenset({"FALL", "FALL_NO_RECOVERY", "ROLL", "PITCH", "TILT"})
ORDERLY = bits(
    Event.MOTION_FINISHED, Event.OPERATOR_STOP, Event.EMERGENCY_STOP, Event.PARENT_LOST, Event.TERMINAL_LOST
)
"""Events that end an episode without saying anything about the policy or its residual."""


@dataclass(frozen=True)
class Flown:
    """An episode and what its residual did.

    Attributes:
        largest_rad, range_share: see `metrics.residual_share`.
        bounded_share: share of its ticks in which the residual was at its bound.
        cut_share: share of its ticks in which the gate cut a target of the residual's joints.
        dropped: why the residual dropped itself, "" where it did not.
    """

    score: Score
    largest_rad: float = 0.0
    range_share: float = 0.0
    bounded_share: float = 0.0
    cut_share: float = 0.0
    dropped: str = ""


class Collector:
    """Keeps the columns of every tick in mode policy (the loop's sink), with the simulator's truth."""

    def __init__(self) -> None:
        self.trial: Trial | None = None
        self._kept: dict[str, list[np.ndarray]] = {name: [] for name in (*COLUMNS, *POLICY_COLUMNS)}
        self._cut: list[np.ndarray] = []

    def push(self, record: np.ndarray) -> int:
        """Take one record."""
        trial = self.trial
        if trial is None or record["mode"] != Mode.POLICY or trial.loop.machine.status.stopping:
            return 0
        truth = trial.robot.physics.truth()
        for name, rows in self._kept.items():
            rows.append(record[name].copy())
        self._kept["base_velocity"][-1] = truth.velocity_body_m_s
        self._kept["contact"][-1] = (truth.foot_force_n[:, 2] > CONTACT_N).astype(np.int8)
        self._cut.append(record["limit_mask"] != 0)
        return len(self._cut)

    def rows(self) -> dict[str, np.ndarray]:
        """(n, ...) columns."""
        return {name: np.array(rows) for name, rows in self._kept.items()}

    def cut_share(self, slots: np.ndarray) -> float:
        """Share of ticks in which the gate cut a target of these joints."""
        return float(np.array(self._cut)[:, slots].any(axis=1).mean()) if self._cut else 0.0


def fly(
    plan: Plan,
    protocol: str,
    script: ScriptConfig,
    slot: Slot,
    sim: tuple[str, ...],
    subject: Subject,
    progress: Callable[[float], object],
) -> Flown:
    """Fly one episode of a schedule from its disturbed start; a safety event ends it at once."""
    collector = Collector()
    trial = Trial(plan, script, Variation(slot.seed, sim=sim), collector)
    collector.trial = trial
    trial.run(progress)
    figures, rows = trial.result(judge_speed=False), collector.rows()
    stopped = tuple(name for name in figures["tripped"] if not bits(Event[name]) & ORDERLY)
    fell = bool(figures["fell"]) or bool(FALLS.intersection(stopped))
    gave_up = trial.console.failed and not (fell or stopped or figures["end"] == "the motion is over")
    score = Score(
        protocol=protocol,
        block=slot.block,
        arm=slot.arm,
        seed=slot.seed,
        metrics=_metrics(rows, subject),
        seconds=float(figures["seconds"]),
        fell=fell,
        stopped=stopped,
        aborted=f"the script gave up: {trial.console.end}" if gave_up else "",
    )
    tally, residual = trial.loop.pilot.slot.tally, plan.residual
    largest, share = residual_share(rows, subject, _default(plan)) if score.metrics else (0.0, 0.0)
    mask = [] if residual is None else [plan.robot.slot(joint) for joint in residual.config.joints]
    return Flown(
        score,
        largest,
        share,
        bounded_share=tally.bounded / max(1, tally.ticks),
        cut_share=collector.cut_share(np.array(mask, np.intp)),
        dropped=tally.why,
    )


def recorded_scores(paths: Iterable[Path], subject: Subject, policy: str) -> list[Score]:
    """Score every episode of recorded rollouts; the k-th two of each arm make block k of their protocol.

    The protocol is the run's note, as `onboard run --note` writes it.

    Raises:
        RolloutError: none of the files has an episode of that policy with an arm.
    """
    found: list[tuple[str, Score]] = []
    for path in paths:
        with Rollout(path) as rollout:
            protocol = str(rollout.attributes.get("note", "")) or "recorded"
            found += [(protocol, score) for score in _episodes(rollout, protocol, subject, policy)]
    if not found:
        raise RolloutError(f"no episode of {policy} with arm keep or drop; record with onboard run --arm")
    counts: dict[tuple[str, str], int] = {}
    scores = []
    for protocol, score in found:
        number = counts.get((protocol, score.arm), 0)
        counts[protocol, score.arm] = number + 1
        scores.append(Score(**{**_fields(score), "block": number // 2}))
    return scores


def _episodes(rollout: Rollout, protocol: str, subject: Subject, policy: str) -> Iterator[Score]:
    column = rollout.column
    arm, mode, episode, index = (column(name) for name in ("arm", "mode", "episode", "policy"))
    flag, events, step = column("safety_flag"), column("safety_events"), column("step")
    for number, log in enumerate(rollout.policies):
        if log.name != policy:
            continue
        mine = (mode == Mode.POLICY) & (index == number) & np.isin(arm, (Arm.KEEP, Arm.DROP))
        for at in _stretches(np.flatnonzero(mine), episode, arm):
            rows = {name: column(name)[at] for name in COLUMNS}
            where = np.isin(log.rows, at)
            rows |= {name: log.column(name)[where] for name in POLICY_COLUMNS}
            until_end = slice(at[0], at[-1] + 1 + LAST_WORD_ROWS)
            yield _recorded(
                rows, subject, protocol, int(arm[at[0]]), flag[until_end], events[until_end], step[at]
            )


def _stretches(rows: np.ndarray, episode: np.ndarray, arm: np.ndarray) -> list[np.ndarray]:
    """Rows in parts of one episode and one arm each; of arms that change in a run, the whole ones.

    The last stretch of a run with blocks is as long as the run happened to be, so it is left out unless
    its episode has no other.
    """
    changes = np.flatnonzero((np.diff(episode[rows]) != 0) | (np.diff(arm[rows].astype(int)) != 0)) + 1
    parts = [part for part in np.split(rows, changes) if part.size]
    own = [int(episode[part[0]]) for part in parts]
    return [
        part
        for k, part in enumerate(parts)
        if own.count(own[k]) == 1 or (k + 1 < len(parts) and own[k + 1] == own[k])
    ]


def _recorded(
    rows: Mapping[str, np.ndarray],
    subject: Subject,
    protocol: str,
    arm: int,
    flag: np.ndarray,
    events: np.ndarray,
    step: np.ndarray,
) -> Score:
    """One recorded episode, judged by what the gate said until it ended."""
    happened = names(int(np.bitwise_or.reduce(events)))
    operator = int(np.bitwise_or.reduce(events)) & bits(Event.EMERGENCY_STOP)
    fell = bool((flag == SafetyFlag.FALL).any())
    stopped = bool((flag == SafetyFlag.OTHER_STOP).any())
    name: ArmName = "keep" if arm == Arm.KEEP else "drop"
    return Score(
        protocol=protocol,
        block=0,
        arm=name,
        seed=0,
        metrics=_metrics(rows, subject),
        seconds=float(len(step) * subject.period_s),
        fell=fell,
        stopped=tuple(happened) if stopped and not operator else (),
        aborted="the operator's emergency stop" if operator and not fell else "",
    )


def _metrics(rows: Mapping[str, np.ndarray], subject: Subject) -> dict[str, float]:
    return episode_metrics(rows, subject) if len(rows["q"]) else {}


def _default(plan: Plan) -> np.ndarray:
    contract, default = plan.bundle.contract, np.zeros(N_JOINTS)
    default[[plan.robot.slot(joint) for joint in contract.joints]] = contract.default_rad
    return default


def _fields(score: Score) -> dict[str, Any]:
    return {name: getattr(score, name) for name in Score.__dataclass_fields__}
