"""The balance of momentum against MuJoCo's own forces."""

from dataclasses import replace

import numpy as np
import pytest

from onboard.analysis.odometry_walk import Walk
from onboard.configs.bodies import load_bodies
from onboard.configs.odometry import load_odometry
from onboard.configs.robot import load_robot
from onboard.policies.estimators.kinematics import matrix
from onboard.policies.estimators.momentum import GroundForce, MomentumBalance
from onboard.policies.estimators.window import Window


@pytest.fixture(scope="module")
def balance() -> MomentumBalance:
    return MomentumBalance(load_bodies("g1_29dof"), load_robot("g1_29dof"), load_odometry().forces)


def tick(balance: MomentumBalance, walk: Walk, begin: int, count: int = 10) -> GroundForce:
    """Balance of the samples behind `begin`, from the ends' exact states."""
    window, end = Window(load_robot("g1_29dof").imu.pelvis_m), begin + count
    for k in range(begin + 1, end + 1):
        window.add(walk.q[k], walk.dq[k], walk.tau[k], walk.quat_wxyz[k], walk.gyro[k], walk.accel[k])
    samples = window.take(count * walk.step_s, walk.gyro[begin])
    ends = [
        balance.instant(walk.q[k], walk.dq[k], walk.gyro[k], matrix(walk.quat_wxyz[k])) for k in (begin, end)
    ]
    return balance.solve(ends[0], ends[1], count * walk.step_s, samples.tau, samples.specific)


def test_the_change_of_momentum_tells_the_whole_force(balance: MomentumBalance, walk: Walk) -> None:
    begins = range(1500, 2800, 50)
    needed = np.array([tick(balance, walk, k).needed_n for k in begins])
    real = np.array([walk.force_n[k + 1 : k + 11].sum(1).mean() for k in begins])
    assert np.ptp(real) > balance.weight_n, "the walk must have steps in it"
    assert np.sqrt(np.mean((needed - real) ** 2)) < 0.03 * balance.weight_n


def test_the_robot_weighs_what_its_links_weigh(balance: MomentumBalance) -> None:
    assert balance.weight_n == pytest.approx(33.341142 * 9.81)


def test_known_sum_corrects_each_foot_by_its_own_doubt(balance: MomentumBalance, walk: Walk) -> None:
    ground = tick(balance, walk, 800)
    known = balance.with_sum(ground)
    gap = ground.needed_n - ground.vertical_n.sum()
    after = known.needed_n - known.vertical_n.sum()
    assert abs(after) < abs(gap)
    assert np.sign(known.vertical_n - ground.vertical_n).tolist() == [np.sign(gap)] * 2


def test_no_foot_pulls(balance: MomentumBalance, walk: Walk) -> None:
    ground = tick(balance, walk, 800)
    pulling = replace(ground, wrench=ground.wrench - 500.0 * np.eye(2, 1) * np.eye(1, 6, 2))
    known = balance.with_sum(pulling)
    assert known.vertical_n[0] == pytest.approx(0.0, abs=1e-9)
    assert known.vertical_n[1] > pulling.vertical_n[1]


def test_an_end_stop_is_no_ground(balance: MomentumBalance, hanging: Walk) -> None:
    """Feet in the air, and a motor that pushes a joint against its end: what balances it is the stop."""
    knee, pressed = 3, 60.0
    low = float(load_robot("g1_29dof").lower[knee])
    at = replace(
        hanging, q=hanging.q.copy(), dq=0.0 * hanging.dq, gyro=0.0 * hanging.gyro, tau=hanging.tau.copy()
    )
    at.q[:] = at.q[0]
    still = tick(balance, at, 50).vertical_n[0]
    at.tau[:, knee] += pressed
    pushed = tick(balance, at, 50).vertical_n[0]
    at.q[:, knee] = low
    stopped = tick(balance, at, 50).vertical_n[0]
    assert abs(pushed - still) > 60.0
    assert abs(stopped - still) < 0.35 * abs(pushed - still)
