"""Statistics in one pass over batches, kept in a file."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.errors import RolloutError
from onboard.logging.preprocess.normalize import fit_statistics, load_statistics


def columns(n: int = 500) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    q = random.normal([1000.0, 0.0, -3.0], [1e-2, 2.0, 1.0], (n, 3))
    q[:, 2] = 7.0
    return {"q": q, "dq": random.normal(0, 4, (n, 2))}


@given(cuts=st.lists(st.integers(0, 500), max_size=6))
def test_batches_of_any_size_give_the_statistics_of_the_whole(cuts: list[int]) -> None:
    whole = columns()
    edges = [0, *sorted(cuts), 500]
    parts = [{n: c[a:b] for n, c in whole.items()} for a, b in itertools.pairwise(edges)]
    found = fit_statistics(parts)
    assert found.count == 500
    for name, values in whole.items():
        np.testing.assert_allclose(found.mean[name], values.mean(0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.std[name], values.std(0), rtol=1e-6, atol=1e-9)


def test_normalised_has_unit_scale_constants_stay_finite_and_back_again() -> None:
    whole = columns()
    statistics = fit_statistics([whole])
    scaled = statistics.normalize({**whole, "mode": np.ones(500)})
    np.testing.assert_allclose(scaled["dq"].std(0), 1, atol=1e-5)
    np.testing.assert_allclose(scaled["q"][:, :2].mean(0), 0, atol=1e-5)
    assert (scaled["q"][:, 2] == 0).all()
    assert (scaled["mode"] == 1).all(), "columns without statistics pass through"
    np.testing.assert_allclose(statistics.restore(scaled)["q"], whole["q"], rtol=1e-6)


def test_statistics_survive_the_file(tmp_path: Path) -> None:
    statistics = fit_statistics([columns()])
    statistics.save(tmp_path / "scale.npz")
    again = load_statistics(tmp_path / "scale.npz")
    assert again.count == statistics.count
    for name in ("q", "dq"):
        np.testing.assert_array_equal(again.mean[name], statistics.mean[name])
        np.testing.assert_array_equal(again.std[name], statistics.std[name])


def test_nothing_and_nan_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match="no rows"):
        fit_statistics([])
    with pytest.raises(RolloutError, match="'q' has a number that is not finite"):
        fit_statistics([{"q": np.array([[np.nan]])}])
    (tmp_path / "text.npz").write_text("hello")
    for name in ("text.npz", "none.npz"):
        with pytest.raises(RolloutError, match=f"{name}: no normalisation statistics"):
            load_statistics(tmp_path / name)
