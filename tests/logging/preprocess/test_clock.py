"""Alignment: signals that are known between the samples."""

import numpy as np
import pytest

from onboard.logging.preprocess.clock import align
from onboard.logging.preprocess.pipeline import Track

DRIFT = 1.0001


def turning(time_s: np.ndarray) -> np.ndarray:
    half = 0.5 * time_s
    return np.stack([np.cos(half), np.zeros_like(half), np.sin(half), np.zeros_like(half)], 1)


def sampled(n: int = 500, jitter_s: float = 0.002) -> Track:
    """Two seconds of slow signals, sampled late by up to one robot sample on a drifting clock."""
    grid_s = np.arange(n) * 0.02 * DRIFT
    time_s = grid_s + np.random.default_rng(1).uniform(-jitter_s / 2, jitter_s / 2, n)
    sign = np.where(np.arange(n) % 7, 1.0, -1.0)[:, None]
    return {
        "time_s": time_s,
        "tick": np.arange(n, dtype=np.uint64),
        "q": np.sin(3 * time_s)[:, None].repeat(2, 1),
        "quat_wxyz": (turning(time_s) * sign).astype(np.float32),
        "action_sent": np.sin(3 * grid_s)[:, None],
        "mode": np.full(n, 3, np.uint8),
        "external_pose": time_s[:, None].repeat(7, 1),
        "external_age_s": time_s.astype(np.float32),
    }


def test_states_move_to_the_line_and_commands_stay() -> None:
    before = sampled()
    after, facts = align(before)
    np.testing.assert_allclose(np.diff(after["time_s"]), 0.02 * DRIFT, atol=2e-7)
    np.testing.assert_allclose(after["q"][:, 0], np.sin(3 * after["time_s"]), atol=5e-4)
    raw_error = np.abs(before["q"][:, 0] - np.sin(3 * np.arange(500) * 0.02 * DRIFT)).max()
    assert raw_error > 2e-3, "the jitter was worth removing"
    first = int(after["tick"][0])
    rows = slice(first, first + len(after["tick"]))
    for name in ("action_sent", "mode", "external_pose", "external_age_s"):
        np.testing.assert_array_equal(after[name], before[name][rows])
    assert facts["period_s"] == pytest.approx(0.02 * DRIFT, rel=1e-5)
    assert 0.4 < facts["jitter_rms_ms"] < facts["jitter_max_ms"] < 1.1
    assert facts["rows_cut"] == 500 - len(after["q"]) <= 2


def test_quaternions_turn_the_short_way_whatever_their_sign() -> None:
    after, _ = align(sampled())
    np.testing.assert_allclose(np.linalg.norm(after["quat_wxyz"], axis=1), 1, atol=1e-6)
    agreement = np.abs((after["quat_wxyz"] * turning(after["time_s"])).sum(1))
    np.testing.assert_allclose(agreement, 1, atol=1e-6)
    assert after["quat_wxyz"].dtype == np.float32


def test_a_uniform_clock_changes_nothing() -> None:
    before = sampled(jitter_s=0.0)
    after, facts = align(before)
    rows = slice(facts["rows_cut"] and int(after["tick"][0]), int(after["tick"][-1]) + 1)
    np.testing.assert_allclose(after["q"], before["q"][rows], atol=1e-9)
    assert facts["jitter_max_ms"] < 1e-6


def test_skipped_ticks_keep_their_place() -> None:
    before = {name: np.delete(column, [200, 201], 0) for name, column in sampled().items()}
    after, _ = align(before)
    gaps = np.diff(after["time_s"])
    assert gaps.max() == pytest.approx(0.06 * DRIFT, rel=1e-4)
    np.testing.assert_allclose(after["q"][:, 0], np.sin(3 * after["time_s"]), atol=2e-3)


def test_one_row_has_no_line() -> None:
    before = {name: column[:1] for name, column in sampled().items()}
    after, facts = align(before)
    assert after is before
    assert facts["rows_cut"] == 0
