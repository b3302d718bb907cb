"""Which target is in force when, for any latency."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.analysis.fit.knobs import MAX_LATENCY_S
from onboard.analysis.fit.recorded import Recorded
from onboard.analysis.fit.trajectory import LEAD_ROWS, Trajectory, split_time
from tests.analysis.fit.bench import still

ROW = 8
"""Of a trajectory whose target at every row is the row's number."""


def in_force(latency_s: float, trajectory: Trajectory | None = None, row: int = ROW) -> np.ndarray:
    recorded = Recorded(np.array([3]), [trajectory or still()], 15)
    return recorded.in_force(row, np.array([0]), np.array([latency_s]))[0, :, 0]


@pytest.mark.parametrize(
    ("latency_s", "expected"),
    [
        (0.0, [8] * 10),
        (0.02, [7] * 10),
        (0.1, [3] * 10),
        (0.01, [7] * 5 + [8] * 5),
        (0.007, [7] * 3 + [7.5] + [8] * 6),
        (0.0202, [6.9] + [7] * 9),
    ],
)
def test_a_command_takes_effect_after_the_latency_within_a_step_by_its_share(
    latency_s: float, expected: list[float]
) -> None:
    np.testing.assert_allclose(in_force(latency_s), expected, atol=1e-9)


def test_the_lead_covers_the_longest_latency() -> None:
    assert LEAD_ROWS * 0.02 >= MAX_LATENCY_S


@given(st.floats(0, MAX_LATENCY_S))
def test_targets_in_force_never_go_back_and_lag_by_the_latency(latency_s: float) -> None:
    targets = in_force(latency_s)
    assert (np.diff(targets) >= -1e-9).all()
    # The mean of a staircase over one tick is its value half a tick later, less the latency.
    assert targets.mean() == pytest.approx(ROW - latency_s / 0.02, abs=1e-6)


def test_before_the_start_stand_the_commands_that_were_recorded_there() -> None:
    _, later = split_time(still(), 0.5)
    assert later.first == LEAD_ROWS
    np.testing.assert_allclose(in_force(0.06, later, row=0), 7.0)


def test_before_the_recording_stands_its_first_command() -> None:
    np.testing.assert_allclose(in_force(0.06, row=1), 0.0)


def test_steps_follow_the_recorded_clock() -> None:
    trajectory = still()
    trajectory.t_s[10:] += 0.004
    steps = Recorded(np.array([3]), [trajectory], 15).steps[0]
    np.testing.assert_array_equal(steps[:12], [10] * 9 + [12, 10, 10])


def test_windows_start_at_their_own_state_and_share_no_simulated_row() -> None:
    windows = list(still().windows(4))
    starts = [window.target[window.first, 0] for window in windows]
    assert starts == [0, 4, 8, 12]
    assert all(window.rows == 5 for window in windows)
