"""Episodes of an A/B experiment, flown in lock-step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from onboard.analysis.ab.metrics import (
    COLUMNS,
    POLICY_COLUMNS,
    Subject,
    episode_metrics,
    residual_share,
)
from onboard.analysis.ab.schedule import Slot
from onboard.analysis.ab.scores import Score
from onboard.cli.trial import Trial, Variation
from onboard.configs.events import Event, Mode, bits
from onboard.configs.robot import N_JOINTS
from onboard.configs.script import ScriptConfig
from onboard.runtime.assembly import Plan

CONTACT_N = 10.0
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
        bounded_share: share of its ticks in which the residual was at its bound; None where unknown.
        cut_share: share of its ticks in which the gate cut a target of the residual's joints.
        dropped: why the residual dropped itself, "" where it did not.
    """

    score: Score
    largest_rad: float = 0.0
    range_share: float = 0.0
    bounded_share: float | None = None
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
        metrics=metrics_or_none(rows, subject),
        seconds=float(figures["seconds"]),
        fell=fell,
        stopped=stopped,
        aborted=f"the script gave up: {trial.console.end}" if gave_up else "",
    )
    tally, residual = trial.loop.pilot.slot.tally, plan.residual
    largest, share = residual_share(rows, subject, default_pose(plan)) if score.metrics else (0.0, 0.0)
    mask = [] if residual is None else [plan.robot.slot(joint) for joint in residual.config.joints]
    return Flown(
        score,
        largest,
        share,
        bounded_share=tally.bounded / max(1, tally.ticks),
        cut_share=collector.cut_share(np.array(mask, np.intp)),
        dropped=tally.why,
    )


def metrics_or_none(rows: Mapping[str, np.ndarray], subject: Subject) -> dict[str, float]:
    """Figures of an episode; none of one without a row."""
    return episode_metrics(rows, subject) if len(rows["q"]) else {}


def default_pose(plan: Plan) -> np.ndarray:
    """(29,) rad, SDK motor order; 0 for joints that the policy does not know."""
    contract, default = plan.bundle.contract, np.zeros(N_JOINTS)
    default[[plan.robot.slot(joint) for joint in contract.joints]] = contract.default_rad
    return default
