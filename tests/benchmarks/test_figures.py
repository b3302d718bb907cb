"""Medians, ratios and tables from made-up samples."""

import io
import json
from typing import Any

import pytest
from rich.console import Console

from benchmarks import figures
from benchmarks.__main__ import make_sides, plain, show, summarise
from benchmarks.rounds import Samples

STAGES = {
    "bytes": ("take", "decode", "observe", "infer", "encode", "write"),
    "objects": (
        *("take", "deserialise", "check", "read", "observe", "infer"),
        *("fill", "crc", "serialise", "write"),
    ),
    "callback": ("read", "observe", "infer", "fill", "crc", "write"),
    "onboard": (
        *("state", "gate", "operator", "observe", "infer", "limit", "send", "record"),
        *("taken_to_write", "made_to_write"),
    ),
}
US = {"deserialise": 400.0, "crc": 150.0, "serialise": 250.0}


def samples(*sides: str, ticks: int = 100) -> dict[str, Samples]:
    """Every stage takes 10 µs unless `US` says otherwise; the last tick takes ten times as long."""
    found = {}
    for side in sides:
        stages = {
            name: [US.get(name, 10.0)] * (ticks - 1) + [10 * US.get(name, 10.0)] for name in STAGES[side]
        }
        joined = Samples()
        percent = {"control": 5.0} if side == "onboard" else {"process": 20.0}
        joined.add({"stages": stages, "late_us": [1.0] * ticks, "cpu_percent": percent})
        found[side] = joined
    return found


def test_a_spread_is_median_tail_and_count() -> None:
    found = figures.spread(list(range(101)))
    assert found == (50.0, 99.0, 101)


def test_stages_of_one_job_are_added_tick_by_tick_not_median_by_median() -> None:
    stages = {"a": [1.0, 100.0, 1.0], "b": [100.0, 1.0, 1.0]}
    assert figures.added(stages, ("a", "b")).tolist() == [101.0, 101.0, 2.0]
    assert figures.spread(figures.added(stages, ("a", "b"))).p50 == 101.0


def test_every_row_names_stages_that_the_sides_measure() -> None:
    for row in figures.ROWS:
        for side, names in row.stages.items():
            assert set(names) <= set(STAGES[side]), row.key


def test_ratios_say_how_many_times_dearer_the_objects_are() -> None:
    result = summarise(samples(*STAGES))
    assert result["ratios"]["decode"] == {"bytes": pytest.approx(41.0)}
    assert result["ratios"]["checked"] == {"bytes": pytest.approx(42.0)}
    assert result["ratios"]["encode"] == {"bytes": pytest.approx(41.0)}
    assert result["ratios"]["tick"]["bytes"] == pytest.approx(870 / 60)
    assert result["ratios"]["tick"]["onboard"] == pytest.approx(870 / 70)
    assert result["ratios"]["to_write"]["onboard"] == pytest.approx(860 / 10)


def test_the_record_is_not_part_of_the_tick() -> None:
    """It is filled after the command is on its way."""
    assert summarise(samples("bytes", "onboard"))["rows"]["tick"]["onboard"].p50 == 70.0


def test_aims_are_met_or_missed() -> None:
    reached = figures.aims({"checked": {"bytes": 10.0}, "tick": {"onboard": 3.9}}, 10.1)
    assert {name: aim.met for name, aim in reached.items()} == {
        "control_cpu": False,
        "decode": True,
        "tick": False,
    }


def test_without_the_vendors_package_ours_are_shown_without_ratios() -> None:
    assert [side.name for side in make_sides(None)] == ["bytes", "onboard"]
    result = summarise(samples("bytes", "onboard"))
    assert result["ratios"] == {}
    assert list(result["aims"]) == ["control_cpu"]
    text = shown(result)
    assert "objects" not in text


def test_the_vendors_sides_get_a_robot_of_the_vendors_types() -> None:
    sides = make_sides(("python3.10", "..."))
    assert {side.name: side.vendor_types for side in sides} == {
        "bytes": False,
        "objects": True,
        "callback": True,
        "onboard": False,
    }


def test_the_tables_show_what_was_found() -> None:
    text = shown(summarise(samples(*STAGES)))
    assert "410 / 447" in text  # the 99th percentile lies a hundredth of the way to the one slow tick
    assert "41.0" in text
    assert "callback" in text


def test_rounds_are_joined() -> None:
    joined = samples("bytes")["bytes"]
    result = {
        "stages": {"take": [1.0, 2.0]},
        "late_us": [3.0],
        "cpu_percent": {"process": 30.0},
    }
    joined.add(result)
    assert len(joined.stages["take"]) == 102
    assert joined.cpu_percent["process"] == [20.0, 30.0]


def test_the_result_is_json_with_names() -> None:
    data = json.loads(json.dumps(plain(summarise(samples(*STAGES)))))
    assert data["rows"]["decode"]["objects"]["p50"] == 410.0
    assert data["aims"]["tick"]["met"] is True


def shown(result: dict[str, Any]) -> str:
    text = io.StringIO()
    show(Console(file=text, width=120), result)
    return text.getvalue()
