"""The account of a series of walks: what counts as a trip, and over which ticks the figures go."""

import numpy as np

from benchmarks.false_trips import Walk, judge, show


def walked(seconds: float, trip: str = "", late_ms: float = 1.0) -> Walk:
    figures = {
        "wake_late_ms": np.full(10, late_ms),
        "state_age_ms": np.full(10, 4.0),
        "tick_ms": np.arange(10.0),
    }
    return Walk(seconds, trip, ["OVERRUN"], 2, figures)


def test_a_series_without_a_trip_passes_and_its_figures_go_over_every_tick() -> None:
    result = judge([walked(600.0), walked(30.0, late_ms=3.0)])
    assert result["ok"]
    assert (result["seconds"], result["trips"], result["skipped_ticks"]) == (630.0, [], 4)
    assert result["events"] == ["OVERRUN"]
    assert (result["wake_late_ms"]["p50"], result["wake_late_ms"]["max"]) == (2.0, 3.0)
    assert show(result).row_count == 3


def test_one_trip_fails_it() -> None:
    result = judge([walked(600.0), walked(3.0, "a safety event (TILT)"), walked(0.0, "no word")])
    assert not result["ok"]
    assert result["trips"] == ["a safety event (TILT)", "no word"]


def test_walks_that_never_began_leave_no_figures() -> None:
    result = judge([Walk(0.0, "the run did not start", [], 0, {})])
    assert (result["ok"], "tick_ms" in result) == (False, False)
