"""The residual's rows of `make bench`: what is measured, and how it is told."""

import io
import json

import pytest
from rich.console import Console

from benchmarks import residual
from benchmarks.__main__ import plain
from benchmarks.residual import Cost
from onboard.configs.errors import OnboardError


def test_linear_and_network_are_measured_against_their_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual, "TICKS", 20)
    try:
        costs = residual.measure_all()
    except OnboardError as error:
        pytest.skip(f"{residual.POLICY} is not installed: {error}")
    assert {name.split(",")[0]: cost.goal for name, cost in costs.items()} == {"linear": 10, "network": 60}
    assert all(0 < cost.p50 <= cost.p99 for cost in costs.values())


def test_the_table_says_what_was_met() -> None:
    text = io.StringIO()
    costs = {"linear": Cost(8.0, 20.0, 10.0), "network": Cost(70.0, 90.0, 60.0)}
    Console(file=text, width=110).print(residual.table(costs))
    linear, network = [line.split() for line in text.getvalue().splitlines() if "below" in line]
    assert linear == ["linear", "8.0", "20.0", "below", "10", "met"]
    assert network[-2:] == ["missed", "here"]
    assert json.loads(json.dumps(plain(costs)))["linear"] == {"p50": 8.0, "p99": 20.0, "goal": 10.0}
