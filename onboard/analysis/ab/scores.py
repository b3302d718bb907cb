"""What an episode comes to: its metrics, and whether it counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onboard.analysis.ab.schedule import ArmName

Float64Array = NDArray[np.float64]

WORST = 2.0
"""A fall or a safety stop scores this many times the worst that any episode of the experiment reached."""


@dataclass(frozen=True)
class Score:
    """One episode.

    Attributes:
        protocol: what was played.
        block, arm, seed: its place in the schedule.
        metrics: name to value, smaller is better for all of them.
        seconds: how long the policy was in charge.
        fell: the robot fell.
        stopped: safety events that ended it; counts like a fall.
        aborted: why it does not count at all (operator, script, a process), "" where it does.
    """

    protocol: str
    block: int
    arm: ArmName
    seed: int
    metrics: Mapping[str, float]
    seconds: float = 0.0
    fell: bool = False
    stopped: tuple[str, ...] = ()
    aborted: str = ""

    @property
    def failed(self) -> bool:
        """It ended in a fall or a safety stop."""
        return self.fell or bool(self.stopped)


@dataclass
class Blocks:
    """One metric by block: the means of the episodes that count.

    Attributes:
        keep, drop: (n,) one number a block; blocks that lack an arm are left out.
        episodes: that went in.
        failed: of these, falls and safety stops, by arm.
        aborted: episodes of this protocol that were left out.
    """

    keep: Float64Array
    drop: Float64Array
    episodes: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    aborted: int = 0


def by_block(scores: Iterable[Score], metric: str) -> Blocks:
    """Pair the arms by block; falls and stops score `WORST` times the worst value there is."""
    scores = list(scores)
    counted = [score for score in scores if not score.aborted and (score.failed or metric in score.metrics)]
    worst = max((s.metrics[metric] for s in counted if metric in s.metrics), default=0.0)
    rows: dict[int, dict[str, list[float]]] = {}
    for score in counted:
        value = WORST * worst if score.failed else score.metrics[metric]
        rows.setdefault(score.block, {"keep": [], "drop": []})[score.arm].append(value)
    whole = [arms for _, arms in sorted(rows.items()) if arms["keep"] and arms["drop"]]
    means = {arm: np.array([np.mean(arms[arm]) for arms in whole], np.float64) for arm in ("keep", "drop")}
    return Blocks(
        means["keep"],
        means["drop"],
        episodes=sum(len(values) for arms in whole for values in arms.values()),
        failed={arm: sum(s.failed for s in counted if s.arm == arm) for arm in ("keep", "drop")},
        aborted=sum(bool(score.aborted) for score in scores),
    )
