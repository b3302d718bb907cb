"""From scores to a result and its report."""

import json
from pathlib import Path

import numpy as np

from onboard.analysis.ab.experiment import experiment_json, judge_protocols
from onboard.analysis.ab.report import write_report
from onboard.analysis.ab.schedule import make_schedule
from onboard.analysis.ab.scores import Score


def scores(protocol: str, effect: float, shake: float = 0.0, falls: int = 0) -> list[Score]:
    random = np.random.default_rng(1)
    found: list[Score] = []
    for slot in make_schedule(5, 0):
        worse = slot.arm == "drop"
        fell = worse and sum(score.fell for score in found) < falls
        metrics = {
            "tracking_rad": 0.05 * (1 + effect * worse) * random.lognormal(0, 0.01),
            "action_rate": 0.04 * (1 + shake * worse) * random.lognormal(0, 0.01),
        }
        stopped = ("JOINT_SPEED",) if fell else ()
        found.append(Score(protocol, slot.block, slot.arm, slot.seed, metrics, 5.0, fell, stopped))
    return found


def test_one_protocol_that_needs_it_keeps_the_residual() -> None:
    results = judge_protocols([*scores("slow", 0.0), *scores("fast", 0.5)], "tracking_rad")
    result = experiment_json(results)
    assert [each["verdict"] for each in result["protocols"].values()] == ["drop", "keep"]
    assert result["verdict"] == "keep"
    first = result["protocols"]["fast"]["metrics"][0]
    assert first["metric"] == "tracking_rad"
    assert first["verdict"] == "keep"
    assert first["ci_percent"][0] < 50 < first["ci_percent"][1]
    assert {"keep", "drop", "change_percent", "episodes", "aborted"} <= first.keys()
    json.dumps(result, allow_nan=False)


def test_falls_and_stops_are_counted_by_arm() -> None:
    (result,) = judge_protocols(scores("slow", 0.0, falls=3), "tracking_rad")
    assert result.falls == {"keep": 0, "drop": 3}
    assert result.stops == {"keep": {}, "drop": {"JOINT_SPEED": 3}}
    assert "3 falls or safety stops" in result.why


def test_a_drop_is_withheld_while_dropping_shakes_the_robot() -> None:
    (calm,) = judge_protocols(scores("slow", 0.0, shake=0.05), "tracking_rad")
    (shaking,) = judge_protocols(scores("slow", 0.0, shake=0.3), "tracking_rad")
    assert (calm.word, shaking.word) == ("drop", "undecided")
    assert "action_rate would surely rise" in shaking.why


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path: Path) -> None:
    results = judge_protocols([*scores("slow", 0.0), *scores("a/b", 0.5, falls=2)], "tracking_rad")
    page = write_report(results, {"policy": "<walker>", "seed": 0}, ["A & B."], tmp_path / "report")
    text = page.read_text()
    assert text.count("data:image/png;base64,") == 4
    assert "<walker>" not in text
    assert "&lt;walker&gt;: keep" in text
    assert "http" not in text
    assert sorted(path.suffix for path in page.parent.iterdir()) == [".html", ".png", ".png", ".png", ".png"]


def test_an_experiment_without_a_whole_block_still_makes_a_report(tmp_path: Path) -> None:
    results = judge_protocols(scores("slow", 0.0)[:1], "tracking_rad")
    assert results[0].word == "undecided"
    assert write_report(results, {}, [], tmp_path).exists()
