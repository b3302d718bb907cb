"""All episodes of an experiment to its result: verdicts by protocol and metric, falls and events by arm."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from onboard.analysis.ab.scores import Score, by_block
from onboard.analysis.ab.verdict import DROP_PERCENT, Verdict, Word, judge, overall

GUARD = "action_rate"
"""Tracking alone says `drop` of a residual that keeps a weak robot from shaking; this metric objects."""


@dataclass(frozen=True)
class ProtocolResult:
    """One protocol's outcome.

    Attributes:
        verdicts: of every metric, the deciding one first.
        scores: of its episodes.
    """

    name: str
    verdicts: tuple[Verdict, ...]
    scores: tuple[Score, ...]

    @property
    def word(self) -> Word:
        """Of the deciding metric; a `drop` is withheld while dropping surely shakes the robot."""
        word = self.verdicts[0].word
        return "undecided" if word == "drop" and self.shakes else word

    @property
    def shakes(self) -> bool:
        """Dropping raises the action rate by more than 10 %, with the whole interval above that."""
        return any(v.metric == GUARD and v.ci_percent[0] > DROP_PERCENT for v in self.verdicts)

    @property
    def why(self) -> str:
        """What stands behind the word, in one line; "" where the numbers say it all."""
        parts = [self.verdicts[0].why] if self.verdicts[0].why else []
        if self.verdicts[0].word == "drop" and self.shakes:
            parts.append(f"tracking allows dropping, but {GUARD} would surely rise by more than 10 %")
        return "; ".join(parts)

    @property
    def falls(self) -> dict[str, int]:
        """Episodes that fell, by arm."""
        return {arm: sum(s.fell for s in self.scores if s.arm == arm) for arm in ("keep", "drop")}

    @property
    def failed(self) -> dict[str, int]:
        """Episodes that fell or were stopped by a safety event, by arm."""
        return {arm: sum(s.failed for s in self.scores if s.arm == arm) for arm in ("keep", "drop")}

    @property
    def stops(self) -> dict[str, dict[str, int]]:
        """Safety events that ended an episode, by arm."""
        return {
            arm: dict(Counter(event for s in self.scores if s.arm == arm for event in s.stopped))
            for arm in ("keep", "drop")
        }


def judge_protocols(scores: Sequence[Score], primary: str, seed: int = 0) -> list[ProtocolResult]:
    """Judge every metric of every protocol; `primary` is the one that decides."""
    results = []
    for protocol in dict.fromkeys(score.protocol for score in scores):
        mine = [score for score in scores if score.protocol == protocol]
        metrics = dict.fromkeys([primary, *(name for score in mine for name in score.metrics)])
        verdicts = tuple(judge(name, by_block(mine, name), seed) for name in metrics)
        results.append(ProtocolResult(protocol, verdicts, tuple(mine)))
    return results


def experiment_json(results: Sequence[ProtocolResult]) -> dict[str, Any]:
    """The result as plain data; what is not finite becomes null."""
    return {
        "verdict": overall([result.word for result in results]),
        "protocols": {
            result.name: {
                "verdict": result.word,
                "why": result.why,
                "deciding": result.verdicts[0].metric,
                "metrics": [_metric(verdict) for verdict in result.verdicts],
                "episodes": len(result.scores),
                "aborted": [s.aborted for s in result.scores if s.aborted],
                "failed": result.failed,
                "falls": result.falls,
                "stops": result.stops,
            }
            for result in results
        },
    }


def _metric(verdict: Verdict) -> dict[str, Any]:
    plain = asdict(verdict)
    plain["verdict"] = plain.pop("word")
    plain["ci_percent"] = [_finite(value) for value in verdict.ci_percent]
    return {key: _finite(value) for key, value in plain.items()}


def _finite(value: Any) -> Any:  # noqa: ANN401 - any plain value
    return None if isinstance(value, float) and not math.isfinite(value) else value
