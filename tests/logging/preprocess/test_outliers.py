"""Outliers: planted spikes are found, honest motion is left alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.logging.preprocess.outliers import reject_outliers, replace_outliers, running_median


def walk(n: int = 600, joints: int = 4) -> np.ndarray:
    t = np.arange(n)[:, None] * 0.02
    phase = np.arange(joints)
    noise = np.random.default_rng(0).normal(0, 0.002, (n, joints))
    motion: np.ndarray = 0.4 * np.sin(2 * np.pi * 1.2 * t + phase) + 0.1 * np.sin(2 * np.pi * 4.7 * t)
    return (motion + noise).astype(np.float32)


@given(
    at=st.lists(st.integers(3, 596), min_size=1, max_size=8, unique=True),
    height=st.floats(0.5, 50) | st.floats(-50, -0.5),
)
@settings(max_examples=50, deadline=None)
def test_spikes_are_replaced_by_what_their_neighbours_say(at: list[int], height: float) -> None:
    at = [row for k, row in enumerate(sorted(at)) if k == 0 or row - sorted(at)[k - 1] > 4]
    clean, spoilt = walk(), walk()
    spoilt[at, 2] += height
    fixed, bad = replace_outliers(spoilt)
    assert set(at) <= set(np.flatnonzero(bad[:, 2]).tolist())
    assert np.abs(fixed - clean).max() < 0.12
    assert fixed.dtype == np.float32


def test_two_bad_samples_in_a_row_are_both_found() -> None:
    spoilt = walk()
    spoilt[100:102, 1] = 9.0
    fixed, bad = replace_outliers(spoilt)
    assert bad[100:102, 1].all()
    around = walk()[98:104, 1]
    assert around.min() <= fixed[100:102, 1].min() <= fixed[100:102, 1].max() <= around.max()


def test_a_walk_without_outliers_is_left_alone() -> None:
    fixed, bad = replace_outliers(walk())
    assert bad.sum() == 0
    np.testing.assert_array_equal(fixed, walk())


@pytest.mark.parametrize("n", [0, 1, 4, 5, 30])
def test_constants_and_short_stretches_have_none(n: int) -> None:
    values = np.ones((n, 2), np.float32)
    fixed, bad = replace_outliers(values)
    np.testing.assert_array_equal(fixed, values)
    assert not bad.any()


def test_median_of_the_ends_repeats_the_ends() -> None:
    values = np.array([[9.0], [1.0], [2.0], [3.0], [-7.0]])
    assert running_median(values, 3)[:, 0].tolist() == [9.0, 2.0, 2.0, 2.0, -7.0]


def test_rows_are_marked_and_counted() -> None:
    q = walk()
    q[50, 0], q[60, 3] = 5.0, -5.0
    track = {"time_s": np.arange(600) * 0.02, "q": q, "dq": walk()}
    cleaned, facts = reject_outliers(track, columns=("q", "dq"))
    assert np.flatnonzero(cleaned["outlier"]).tolist() == [50, 60]
    assert facts == {"replaced": {"q": 2, "dq": 0}, "rows": 2}
    with pytest.raises(ValueError, match="odd number"):
        reject_outliers(track, columns=("q",), window=4)
