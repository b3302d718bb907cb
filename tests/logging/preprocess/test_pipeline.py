"""Steps in a row, and the account of what they did."""

import json

import numpy as np
import pytest

from onboard.logging.preprocess.clock import align
from onboard.logging.preprocess.contact import Phase, label_contact
from onboard.logging.preprocess.latency import log_latency, shift_commands
from onboard.logging.preprocess.outliers import reject_outliers
from onboard.logging.preprocess.pipeline import Step, Track, run


def track(n: int = 400, delay_s: float = 0.03) -> Track:
    random = np.random.default_rng(0)
    tick = np.arange(n, dtype=np.uint64) + 17
    time_s = np.arange(n) * 0.02 + random.uniform(-0.001, 0.001, n)
    turns_hz = np.array([0.7, 1.1, 1.9])
    grid = np.arange(n) * 0.02
    q = (0.3 * np.sin(2 * np.pi * turns_hz * (time_s - delay_s)[:, None])).astype(np.float32)
    q[200, 1] += 2.0
    return {
        "time_s": time_s,
        "tick": tick,
        "q": q,
        "dq": np.gradient(q, 0.02, axis=0).astype(np.float32),
        "tau_est": np.zeros((n, 3), np.float32),
        "action_sent": (0.3 * np.sin(2 * np.pi * turns_hz * grid[:, None])).astype(np.float32),
        "contact": np.zeros((n, 2), np.int8),
        "contact_force": np.stack([np.where(grid % 1 < 0.5, 300.0, 0.0), np.full(n, np.nan)], 1),
    }


def test_steps_run_in_order_and_say_what_they_did() -> None:
    before = track()
    kept = {name: column.copy() for name, column in before.items()}
    steps = [
        Step(reject_outliers, {"columns": ["q"]}),
        Step(align),
        Step(log_latency),
        Step(shift_commands, {"by_s": 0.03}),
        Step(label_contact),
    ]
    after, done = run(before, steps)
    assert [facts["step"] for facts in done] == [step.function.__name__ for step in steps]
    assert done[0]["options"] == {"columns": ["q"]}
    assert done[0]["replaced"] == {"q": 1}
    assert json.loads(json.dumps(done)) == done
    assert done[2]["delay_s"] == pytest.approx(0.03, abs=1e-3)
    assert {len(column) for column in after.values()} == {len(after["time_s"])}
    assert (after["phase"] != Phase.UNKNOWN).all()
    for name, column in before.items():
        np.testing.assert_array_equal(column, kept[name], err_msg=f"{name} was changed in place")


def test_no_steps_no_change() -> None:
    before = track()
    after, done = run(before, [])
    assert after is before
    assert done == []


def test_contact_comes_from_the_force_where_there_is_one() -> None:
    labelled, facts = label_contact(track(), buffer_ticks=0)
    np.testing.assert_array_equal(labelled["contact"][:, 0], track()["contact_force"][:, 0] > 10)
    np.testing.assert_array_equal(labelled["contact"][:, 1], 0)
    assert facts["from_force"] == 0.5
    assert sum(facts["phases"].values()) == pytest.approx(1.0)
    assert set(facts["phases"]) == {"flight", "stance", "touchdown", "lift_off"}
