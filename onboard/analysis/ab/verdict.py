"""From paired blocks to an interval, from the interval to a verdict.

The change is `(drop - keep) / keep` of the means over blocks, in percent: what dropping the residual
costs. Its 95 % interval is a bootstrap over blocks (both arms of a block together), with the percentiles
moved out for few blocks (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, 4.5.2): the
plain percentile interval of 5 blocks covers only some 85 %.

    drop        the interval's upper end is at most 10 %
    keep        its lower end is above 20 %
    undecided   anything else

Power, measured on synthetic experiments whose episodes scatter by 15 %: an effect of +30 % is kept after
5, 10, 20 blocks (20, 40, 80 episodes) in 24, 35, 60 % of them and never dropped, one of +50 % in 79, 98,
100 %; no effect at all comes out as `drop` in 24, 46, 75 %. Of 200 experiments without an effect none
was kept.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from onboard.analysis.ab.scores import Blocks, Float64Array

DROP_PERCENT = 10.0
KEEP_PERCENT = 20.0
CONFIDENCE = 0.95
RESAMPLES = 4000
MIN_BLOCKS = 3
"""Fewer decide nothing, whatever they say."""

Word = Literal["keep", "drop", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """One metric's outcome.

    Attributes:
        keep, drop: means over blocks.
        change_percent: of dropping, NaN where there is nothing to compare.
        ci_percent: its interval.
        word: the verdict.
        why: in one line, with what was left out.
        episodes, aborted: that went in, that were left out.
        more_episodes: how many more would decide it if everything went on alike; 0 where it is decided,
            None where none will.
    """

    metric: str
    keep: float
    drop: float
    change_percent: float
    ci_percent: tuple[float, float]
    word: Word
    why: str
    episodes: int
    aborted: int
    more_episodes: int | None


def judge(metric: str, blocks: Blocks, seed: int = 0) -> Verdict:
    """Apply the rule to one metric."""
    keep, drop = blocks.keep, blocks.drop
    stood = blocks.episodes > sum(blocks.failed.values())
    usable = len(keep) >= MIN_BLOCKS and float(keep.mean()) > 0 and stood
    change = 100 * (float(drop.mean()) / float(keep.mean()) - 1) if usable else math.nan
    interval = change_interval(keep, drop, seed) if usable else (-math.inf, math.inf)
    word = decide(interval)
    more = None if not usable else more_episodes(change, interval, blocks.episodes, word)
    return Verdict(
        metric=metric,
        keep=float(keep.mean()) if len(keep) else math.nan,
        drop=float(drop.mean()) if len(drop) else math.nan,
        change_percent=change,
        ci_percent=interval,
        word=word,
        why=_why(blocks, word, more, usable),
        episodes=blocks.episodes,
        aborted=blocks.aborted,
        more_episodes=more,
    )


def decide(ci_percent: tuple[float, float]) -> Word:
    """The rule."""
    low, high = ci_percent
    if high <= DROP_PERCENT:
        return "drop"
    return "keep" if low > KEEP_PERCENT else "undecided"


def change_interval(keep: Float64Array, drop: Float64Array, seed: int = 0) -> tuple[float, float]:
    """95 % interval of the change in percent, from means by block (n,) each."""
    count = len(keep)
    picks = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    changes = 100 * (drop[picks].mean(axis=1) / keep[picks].mean(axis=1) - 1)
    tail = _expanded_tail((1 - CONFIDENCE) / 2, count)
    low, high = np.quantile(changes, [tail, 1 - tail])
    return float(low), float(high)


def _expanded_tail(tail: float, count: int) -> float:
    """Percentile to read off instead of `tail`, for a sample of `count`: t for z, n - 1 for n."""
    t = float(stdtrit(count - 1, 1 - tail))
    return NormalDist().cdf(-math.sqrt(count / (count - 1)) * t)


def more_episodes(change: float, interval: tuple[float, float], episodes: int, word: Word) -> int | None:
    """How many more episodes would decide it, the interval shrinking with their square root.

    None where none will: the change itself lies between the two thresholds.
    """
    if word != "undecided":
        return 0
    if DROP_PERCENT <= change <= KEEP_PERCENT:
        return None
    low, high = interval
    if change < DROP_PERCENT:
        half, room = high - change, DROP_PERCENT - change
    else:
        half, room = change - low, change - KEEP_PERCENT
    needed = episodes * (half / room) ** 2
    return 4 * math.ceil(max(1.0, needed - episodes) / 4)


def overall(words: list[Word]) -> Word:
    """Of several protocols: kept where any of them needs it, dropped where none does."""
    if "keep" in words:
        return "keep"
    return "drop" if words and all(word == "drop" for word in words) else "undecided"


def _why(blocks: Blocks, word: Word, more: int | None, usable: bool) -> str:
    parts = []
    if blocks.episodes and blocks.episodes == sum(blocks.failed.values()):
        parts.append("every episode of both arms failed: nothing to compare")
    elif not usable:
        parts.append(f"nothing to compare: {len(blocks.keep)} whole blocks, {MIN_BLOCKS} are needed")
    elif word == "undecided":
        parts.append(
            "no number of episodes will decide it: the effect lies between 10 and 20 %"
            if more is None
            else f"about {more} more episodes would decide it"
        )
    failed = sum(blocks.failed.values())
    if failed:
        counts = ", ".join(f"{count} in {arm}" for arm, count in blocks.failed.items())
        parts.append(f"{failed} falls or safety stops count as the worst outcome ({counts})")
    if blocks.aborted:
        parts.append(f"{blocks.aborted} aborted episodes left out")
    return "; ".join(parts)
