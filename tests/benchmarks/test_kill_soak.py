"""Processes of whole runs killed at random moments; the arithmetic on made-up runs, and a few real ones."""

import pytest

from benchmarks.kill_soak import figures, soak
from benchmarks.killed_run import VICTIMS, Killed
from tests.runtime.flight import plan


def test_figures_by_victim() -> None:
    found = [
        Killed("all", "ramp", 0.1, handed_over=100, rows=100, recovered=True, completeness="recovered"),
        Killed("all", "policy", 0.2, handed_over=200, rows=190, wrong="10 records lost"),
        Killed("control", "ramp", 0.3, handed_over=50, rows=50, completeness="complete"),
    ]
    rows = figures(found)
    assert list(rows) == ["control", "all"]
    assert {key: rows["all"][key] for key in ("n", "ok", "recovered", "handed_over", "lost")} == {
        "n": 2,
        "ok": 1,
        "recovered": 1,
        "handed_over": 300,
        "lost": 10,
    }
    assert rows["all"]["stretches"] == {"ramp": 1, "policy": 1}
    assert "WRONG: 10 records lost" in rows["all"]["wrong"][0]


@pytest.mark.slow
def test_every_record_is_there_whoever_is_killed() -> None:
    plan()  # skips where the policy is not installed
    said: list[str] = []
    found, _ = soak(len(VICTIMS), 0, list(VICTIMS), said.append)
    assert len(found) == len(VICTIMS), said
    assert not [killed.line for killed in found if killed.wrong]
    assert all(killed.rows == killed.handed_over > 0 for killed in found)
    assert {killed.victim for killed in found if killed.recovered} <= {"all"}
