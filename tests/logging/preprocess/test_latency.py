"""Latency: known delays are found, to fractions of a period, with an honest uncertainty."""

import numpy as np
import pytest

from onboard.logging.preprocess.latency import log_latency, measure_latency, shift_commands

PERIOD_S = 0.02


def excitation(time_s: np.ndarray, joint: int) -> np.ndarray:
    """A multi-sine that no shift maps onto itself."""
    phase = 0.9 * joint
    tones = ((0.17, 0.31), (0.4, 0.83), (0.25, 1.47), (0.1, 2.3))
    return np.asarray(sum(a * np.sin(2 * np.pi * f * time_s + phase * f) for a, f in tones))


def moved(delay_s: float, n: int = 600, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(n) * PERIOD_S
    target = np.stack([excitation(t, j) for j in range(3)], 1)
    response = np.stack([0.9 * excitation(t - delay_s, j) + 0.2 for j in range(3)], 1)
    return target, response + np.random.default_rng(2).normal(0, noise, response.shape)


@pytest.mark.parametrize("delay_s", [0.0, 0.006, 0.02, 0.033, 0.05, 0.111])
def test_a_delay_is_found_to_a_twentieth_of_a_period(delay_s: float) -> None:
    found = measure_latency(*moved(delay_s), PERIOD_S)
    assert found.delay_s == pytest.approx(delay_s, abs=PERIOD_S / 20)
    np.testing.assert_allclose(found.joints, delay_s, atol=PERIOD_S / 20)
    assert found.pieces == 3 * 6


def test_uncertainty_covers_the_truth_and_grows_with_noise() -> None:
    quiet, loud = (measure_latency(*moved(0.033, noise=noise), PERIOD_S) for noise in (0.002, 0.02))
    assert quiet.sigma_s is not None
    assert loud.sigma_s is not None
    assert quiet.sigma_s < loud.sigma_s < 0.005
    for found in (quiet, loud):
        assert found.delay_s is not None
        assert found.sigma_s is not None
        assert abs(found.delay_s - 0.033) < 4 * found.sigma_s + 1e-3


def test_what_does_not_move_says_nothing() -> None:
    target, response = moved(0.03)
    target[:, 1] = 0.4
    found = measure_latency(target, response, PERIOD_S)
    assert np.isnan(found.joints[1])
    assert found.delay_s == pytest.approx(0.03, abs=1e-3)
    still = measure_latency(np.zeros((300, 2)), np.zeros((300, 2)), PERIOD_S)
    assert (still.delay_s, still.sigma_s, still.pieces) == (None, None, 0)


def test_unrelated_signals_have_no_delay() -> None:
    random = np.random.default_rng(3)
    found = measure_latency(random.normal(0, 1, (600, 2)), random.normal(0, 1, (600, 2)), PERIOD_S)
    assert found.delay_s is None


def test_shifting_back_what_was_measured_leaves_nothing_to_measure() -> None:
    target, response = moved(0.04)
    track = {"time_s": np.arange(600) * PERIOD_S, "action_sent": target, "q": response}
    _, facts = log_latency(track)
    shifted, done = shift_commands(track, facts["delay_s"])
    assert done["ticks"] == 2
    assert abs(done["rest_s"]) < 1e-3
    assert len(shifted["q"]) == 600 - done["rows_cut"] == 598
    np.testing.assert_array_equal(shifted["action_sent"][0], target[0])
    np.testing.assert_array_equal(shifted["q"][0], response[2])
    assert log_latency(shifted)[1]["delay_s"] == pytest.approx(0.0, abs=1e-3)


def test_a_shift_may_go_the_other_way_and_never_past_the_end() -> None:
    target, response = moved(0.0, n=50)
    track = {"time_s": np.arange(50) * PERIOD_S, "action_sent": target, "q": response}
    back, facts = shift_commands(track, -0.02)
    assert facts["ticks"] == -1
    np.testing.assert_array_equal(back["action_sent"][0], target[1])
    np.testing.assert_array_equal(back["q"][0], response[0])
    with pytest.raises(ValueError, match="leaves nothing of 50 rows"):
        shift_commands(track, 1.0)
