"""Honest statistics: how often the rule errs where the truth is known, and what it makes of falls."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from onboard.analysis.ab.schedule import make_schedule
from onboard.analysis.ab.scores import Score, by_block
from onboard.analysis.ab.verdict import Verdict, decide, judge, more_episodes, overall

EXPERIMENTS = 200


def experiment(seed: int, effect: float, blocks: int = 5, noise: float = 0.15, falls: float = 0.0) -> Verdict:
    """Synthetic episodes: a start that both arms of a pair share, and noise of each episode's own."""
    random = np.random.default_rng(seed)
    starts: dict[int, float] = {}
    scores = []
    for slot in make_schedule(blocks, seed):
        start = starts.setdefault(slot.seed, float(random.lognormal(0.0, 0.2)))
        value = 0.05 * start * random.lognormal(0.0, noise) * (1 + effect * (slot.arm == "drop"))
        fell = bool(random.random() < falls)
        scores.append(Score("walk", slot.block, slot.arm, slot.seed, {"error": value}, fell=fell))
    return judge("error", by_block(scores, "error"), seed)


def words(effect: float, **options: float) -> Counter[str]:
    verdicts = [experiment(seed, effect, **options) for seed in range(EXPERIMENTS)]  # type: ignore[arg-type]
    return Counter(verdict.word for verdict in verdicts)


@pytest.mark.parametrize("options", [{}, {"noise": 0.4}, {"blocks": 3}, {"falls": 0.1}, {"blocks": 10}])
def test_two_equal_arms_are_falsely_kept_in_at_most_5_percent(options: dict[str, float]) -> None:
    assert words(0.0, **options)["keep"] <= 0.05 * EXPERIMENTS


def test_equal_arms_come_out_as_drop_once_there_are_enough_episodes() -> None:
    assert words(0.0, blocks=20)["drop"] >= 0.65 * EXPERIMENTS


@pytest.mark.parametrize("blocks", [5, 20])
def test_an_effect_of_15_percent_is_undecided(blocks: int) -> None:
    found = words(0.15, blocks=blocks)
    assert found["undecided"] >= 0.8 * EXPERIMENTS
    assert found["drop"] <= 0.05 * EXPERIMENTS


@pytest.mark.parametrize(("blocks", "power"), [(5, 0.15), (10, 0.25), (20, 0.5)])
def test_an_effect_of_30_percent_is_kept_with_a_power_that_grows(blocks: int, power: float) -> None:
    found = words(0.30, blocks=blocks)
    assert found["keep"] >= power * EXPERIMENTS
    assert found["drop"] == 0


def test_the_interval_covers_the_truth() -> None:
    verdicts = [experiment(seed, 0.30) for seed in range(EXPERIMENTS)]
    covered = sum(verdict.ci_percent[0] <= 30 <= verdict.ci_percent[1] for verdict in verdicts)
    assert covered >= 0.9 * EXPERIMENTS


def scores_of(keep: Sequence[float | None], drop: Sequence[float | None]) -> list[Score]:
    """One episode an arm and block; None is a fall early on."""
    rows = []
    for block, pair in enumerate(zip(keep, drop, strict=True)):
        for arm, value in zip(("keep", "drop"), pair, strict=True):
            metrics = {"error": 0.01 if value is None else value}
            rows.append(Score("walk", block, arm, block, metrics, fell=value is None))  # type: ignore[arg-type]
    return rows


def test_falls_are_the_worst_outcome_and_are_said() -> None:
    verdict = judge("error", by_block(scores_of([0.05] * 5, [None] * 5), "error"))
    assert verdict.word == "keep"
    assert verdict.change_percent == pytest.approx(100.0)
    assert "5 falls or safety stops count as the worst outcome (0 in keep, 5 in drop)" in verdict.why


def test_a_residual_that_falls_is_dropped_even_where_it_follows_better_before() -> None:
    verdict = judge("error", by_block(scores_of([None] * 5, [0.05] * 5), "error"))
    assert verdict.word == "drop"
    assert verdict.change_percent == pytest.approx(-50.0)


def test_where_everybody_falls_nothing_is_decided() -> None:
    verdict = judge("error", by_block(scores_of([None] * 5, [None] * 5), "error"))
    assert verdict.word == "undecided"
    assert "nothing to compare" in verdict.why


def test_aborted_episodes_are_left_out_and_said() -> None:
    scores = scores_of([0.05] * 6, [0.05] * 6)
    scores[0] = Score("walk", 0, "keep", 0, {"error": 9.9}, aborted="the operator stopped it")
    blocks = by_block(scores, "error")
    assert len(blocks.keep) == 5
    assert blocks.episodes == 10
    verdict = judge("error", blocks)
    assert verdict.aborted == 1
    assert verdict.why == "1 aborted episodes left out"
    assert verdict.word == "drop"


def test_two_blocks_decide_nothing() -> None:
    assert judge("error", by_block(scores_of([0.05] * 2, [0.09] * 2), "error")).word == "undecided"


def test_the_rule_acts_on_the_interval() -> None:
    assert decide((-5.0, 10.0)) == "drop"
    assert decide((-5.0, 10.1)) == "undecided"
    assert decide((20.0, 50.0)) == "undecided"
    assert decide((20.1, 50.0)) == "keep"


def test_how_many_more_episodes() -> None:
    assert more_episodes(0.0, (-20.0, 20.0), 20, "undecided") == 60
    assert more_episodes(40.0, (0.0, 80.0), 20, "undecided") == 60
    assert more_episodes(15.0, (0.0, 30.0), 20, "undecided") is None
    assert more_episodes(0.0, (-5.0, 5.0), 20, "drop") == 0


def test_one_protocol_that_needs_it_keeps_it() -> None:
    assert overall(["drop", "undecided", "keep"]) == "keep"
    assert overall(["drop", "undecided"]) == "undecided"
    assert overall(["drop", "drop"]) == "drop"
    assert overall([]) == "undecided"
