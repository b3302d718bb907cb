"""The simulator of the fit, and what the fit finds on a robot whose faults are known."""

from dataclasses import replace

import numpy as np
import pytest

from onboard.analysis.fit.held import held_model
from onboard.analysis.fit.knobs import Parameters, Settings, nominal_settings
from onboard.analysis.fit.shooting import Shooter
from onboard.analysis.fit.solve import Solution, compare, solve
from onboard.analysis.fit.trajectory import Float64Array
from tests.analysis.fit.bench import ROBOT, SECOND, SLOTS, record, trajectory

Arrays = dict[str, Float64Array]
HELD = held_model(ROBOT, SLOTS)
COLUMNS = HELD.columns(SLOTS)


@pytest.fixture(scope="module")
def linear(weak: tuple[Arrays, Arrays]) -> Solution:
    return solve(HELD, [trajectory(weak[0])], COLUMNS, "linear")


def test_only_the_limbs_that_are_asked_for_are_simulated() -> None:
    assert HELD.slots.tolist() == [0, 1, 2, 3, 4, 5]
    assert held_model(ROBOT, [4, 10]).slots.tolist() == list(range(12))
    assert held_model(ROBOT, [20]).slots.tolist() == list(range(12, 29))


def test_the_nominal_robot_is_simulated_as_it_moved_though_its_pelvis_swings() -> None:
    log = trajectory(record(SECOND, gap=()))
    assert log.gyro_rms_rad_s > 0.1
    error = compare(HELD, [log], COLUMNS, nominal_settings(1, len(HELD.slots)))
    assert error.before_deg < 0.1
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (log.rows, 1))
    still = replace(log, gyro_body=0 * log.gyro_body, quat_wxyz=upright)
    assert compare(HELD, [still], COLUMNS, nominal_settings(1, 6)).before_deg > 5 * error.before_deg


def test_the_delta_of_a_weak_late_robot(linear: Solution, weak: tuple[Arrays, Arrays]) -> None:
    found = linear.by_knob()
    assert all(-0.5 < a < -0.25 for a in found["a"].values())
    assert all(abs(b) < 0.05 for b in found["b"].values())
    assert linear.latency_s == pytest.approx(0.02, abs=0.006)
    held_out = compare(HELD, [trajectory(weak[1])], COLUMNS, linear.settings)
    assert held_out.after_deg < 0.15 * held_out.before_deg


def test_the_physical_explanation_finds_the_gains(weak: tuple[Arrays, Arrays]) -> None:
    found = solve(HELD, [trajectory(weak[0])], COLUMNS, "physical")
    assert list(found.by_knob()["gain"].values()) == pytest.approx([0.6] * 4, abs=0.05)
    assert found.latency_s == pytest.approx(0.02, abs=0.002)
    held_out = compare(HELD, [trajectory(weak[1])], COLUMNS, found.settings)
    assert held_out.after_deg < 0.1 * held_out.before_deg


def test_a_latency_that_is_not_fitted_is_absorbed(linear: Solution, weak: tuple[Arrays, Arrays]) -> None:
    absorbed = solve(HELD, [trajectory(weak[0])], COLUMNS, "linear", latency=False)
    assert absorbed.latency_s == 0.0
    assert sum(absorbed.by_knob()["a"].values()) < sum(linear.by_knob()["a"].values()) - 0.2
    worse, better = (
        compare(HELD, [trajectory(weak[1])], COLUMNS, solution.settings) for solution in (absorbed, linear)
    )
    assert worse.after_deg > 2 * better.after_deg


def test_logs_of_different_length_are_fitted_together(weak: tuple[Arrays, Arrays]) -> None:
    whole, short = trajectory(weak[0]), trajectory(weak[1]).cut(0, 40)
    settings = nominal_settings(2, len(HELD.slots))
    with Shooter(HELD, [whole, short]) as both, Shooter(HELD, [short]) as alone:
        together = both.simulate(settings)[:, 1, :40]
        np.testing.assert_allclose(together, alone.simulate(settings)[:, 0], atol=1e-9)
    errors = compare(HELD, [whole, short], COLUMNS, settings).before
    assert np.isfinite(errors[0]).all()
    assert np.isfinite(errors[1, :39]).all()
    assert np.isnan(errors[1, 39:]).all()


def test_threads_change_nothing(weak: tuple[Arrays, Arrays]) -> None:
    settings = Parameters(("a", "b"), COLUMNS, 6).settings(np.random.default_rng(1).uniform(-0.5, 0, (9, 5)))
    found = []
    for threads in (1, 3):
        with Shooter(HELD, [trajectory(weak[0]).cut(0, 30)], threads) as shooter:
            found.append(shooter.simulate(settings))
    np.testing.assert_array_equal(found[0], found[1])


def test_a_simulation_that_runs_away_costs_much_but_does_not_end_the_fit(weak: tuple[Arrays, Arrays]) -> None:
    nominal = nominal_settings(1, 6)
    wild = Settings({**nominal.joints, "b": np.full((1, 6), 5.0)}, nominal.latency_s)
    errors = compare(HELD, [trajectory(weak[0])], COLUMNS, wild).after
    assert np.isfinite(errors).all()
    assert 2.0 < np.abs(errors).max() <= np.pi
