import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from onboard.analysis.odometry_score import estimate, score
from onboard.analysis.odometry_walk import Noise, Walk, with_noise
from onboard.configs.errors import ConfigError
from onboard.configs.robot import load_robot
from onboard.policies.estimators.estimator import Estimate, LegOdometry, make_odometry


def fresh(*overrides: str) -> LegOdometry:
    return make_odometry(load_robot("g1_29dof"), list(overrides))


def feed(odometry: LegOdometry, walk: Walk, samples: range, step: int = 1) -> list[Estimate]:
    """Samples as they come over the wire; the estimates, whose arrays are copied."""
    found = []
    for k in samples[::step]:
        sample = (walk.q[k], walk.dq[k], walk.tau[k], walk.quat_wxyz[k], walk.gyro[k], walk.accel[k])
        odometry.add(k * walk.step_s, *sample)
        if odometry.due:
            now = odometry.tick()
            arrays = {name: getattr(now, name).copy() for name in ("contact", "force_n", "velocity_m_s")}
            found.append(replace(now, **arrays))
    return found


def test_walk_meets_the_goals_with_clean_and_with_noisy_sensors(walk: Walk) -> None:
    assert not walk.fell
    for heard in (walk, with_noise(walk, Noise(), seed=5)):
        found = score(heard, fresh())
        assert found.contact >= 0.97
        assert found.contact_away >= 0.99
        assert found.force_share <= 0.10
        assert max(found.velocity_rms) <= 0.03


def test_feet_in_the_air_are_not_taken_for_standing(hanging: Walk) -> None:
    heard = with_noise(hanging, Noise(), seed=5)
    odometry = fresh()
    found = score(heard, odometry)
    assert found.off >= 0.99
    assert found.velocity_worst < 0.3, "while nothing measures it, the velocity must not run away"
    assert not odometry.estimate.standing


def test_the_sum_of_both_feet_would_put_the_weight_on_feet_in_the_air(hanging: Walk) -> None:
    """The trap that `SupportWatch` is there for: without it most flags are wrong."""
    always = ["support.lost_below=0.000001", "support.found_above=0.000002", "contact.hanging_factor=1"]
    assert score(with_noise(hanging, Noise(), seed=5), fresh(*always)).off < 0.5


def test_snapshots_at_the_control_rate_are_much_worse(walk: Walk) -> None:
    """What feeding every sample is for."""
    heard = with_noise(walk, Noise(), seed=5)
    sparse = feed(fresh(), heard, range(9, len(walk.q)), step=10)[25:]
    dense = estimate(heard, fresh())
    at = [round(one.time_s / walk.step_s) for one in sparse]
    velocity = np.array([one.velocity_m_s for one in sparse]) - walk.velocity[at]
    fine = dense.velocity - walk.velocity[dense.sample]
    assert np.sqrt((velocity**2).mean()) > 2 * np.sqrt((fine**2).mean())


def test_a_tilted_imu_and_a_biased_accelerometer_do_bounded_harm(walk: Walk) -> None:
    biased = score(with_noise(walk, Noise(accel_bias_m_s2=0.2), seed=5), fresh())
    assert max(biased.velocity_rms) < 0.06


def test_a_tick_is_20_ms_of_the_robots_time_and_lost_samples_do_not_shift_it(walk: Walk) -> None:
    times = [one.time_s for one in feed(fresh(), walk, range(1000))][1:]
    np.testing.assert_allclose(np.diff(times), 0.02, atol=1e-9)
    odometry, lossy = fresh(), []
    for k in range(1000):
        if k % 7:
            lossy += feed(odometry, walk, range(k, k + 1))
    assert np.abs(np.diff([one.time_s for one in lossy[1:]]) - 0.02).max() < 0.003
    real = walk.velocity[[round(one.time_s / walk.step_s) for one in lossy[25:]]]
    assert np.abs(np.array([one.velocity_m_s for one in lossy[25:]]) - real).max() < 0.1


def test_old_and_repeated_samples_change_nothing(walk: Walk) -> None:
    odometry, other = fresh(), fresh()
    feed(odometry, walk, range(500))
    for begin in range(0, 500, 5):
        feed(other, walk, range(begin, begin + 5))
        feed(other, walk, range(max(0, begin - 5), begin + 5))
    np.testing.assert_array_equal(odometry.estimate.velocity_m_s, other.estimate.velocity_m_s)
    np.testing.assert_array_equal(odometry.estimate.force_n, other.estimate.force_n)


def test_a_gap_starts_anew(walk: Walk) -> None:
    odometry = fresh()
    feed(odometry, walk, range(1000))
    assert odometry.estimate.standing
    feed(odometry, walk, range(1100, 1101))
    assert list(odometry.estimate.contact) == [-1, -1]
    assert np.isnan(odometry.estimate.velocity_m_s).all()
    np.testing.assert_array_equal(
        feed(odometry, walk, range(1101, 1400))[-1].force_n,
        feed(fresh(), walk, range(1100, 1400))[-1].force_n,
    )


def test_a_sample_that_is_no_number_is_forgotten_with_its_tick(walk: Walk) -> None:
    odometry = fresh()
    feed(odometry, walk, range(500))
    accel = walk.accel.copy()
    accel[505] = np.nan
    feed(odometry, replace(walk, accel=accel), range(500, 511))
    assert list(odometry.estimate.contact) == [-1, -1]
    feed(odometry, walk, range(511, 901))
    assert np.abs(odometry.estimate.velocity_m_s - walk.velocity[900]).max() < 0.05


def test_before_the_first_tick_nothing_is_known() -> None:
    nothing = fresh().tick()
    assert list(nothing.contact) == [-1, -1]
    assert np.isnan(nothing.force_n).all()
    assert nothing.time_s == -np.inf


def test_the_estimate_does_not_depend_on_where_the_robot_heads(walk: Walk) -> None:
    """Turning the world about the vertical changes no number of the robot's own frame."""
    c, s = np.cos(0.6), np.sin(0.6)
    w, x, y, z = walk.quat_wxyz.T
    turned = replace(
        walk, quat_wxyz=np.stack([c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w], 1)
    )
    here, there = estimate(walk, fresh()), estimate(turned, fresh())
    np.testing.assert_allclose(here.velocity, there.velocity, atol=1e-9)
    np.testing.assert_allclose(here.force_n, there.force_n, atol=1e-6)


def test_a_robot_without_a_table_of_links_is_refused() -> None:
    with pytest.raises(ConfigError, match="'g1_23dof' is no shipped bodies configuration"):
        make_odometry(load_robot("g1_23dof"))


def test_contradicting_numbers_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"off_n 90\.0 is above on_n 60\.0"):
        fresh("contact.off_n=90")
    with pytest.raises(ConfigError, match="lost_below is above found_above"):
        fresh("support.lost_below=0.5")


def test_it_runs_without_a_physics_engine() -> None:
    code = (
        "import sys; sys.modules['mujoco'] = sys.modules['scipy'] = None\n"
        "from onboard.configs.robot import load_robot\n"
        "from onboard.policies.estimators.estimator import make_odometry\n"
        "make_odometry(load_robot('g1_29dof')).tick()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
