"""Leg odometry: contact, vertical foot force and base velocity from LowState alone.

```
odometry = make_odometry(load_robot("g1_29dof"))
for each sample of rt/lowstate:            # all of them, 500 a second
    odometry.add(time_s, q, dq, tau_est, quat_wxyz, gyro_body, accel_body)
    if odometry.due:                       # every 20 ms of the robot's time
        estimate = odometry.tick()
```

`add` copies the sample (some µs), `tick` does the work (below 1 ms). Method, accuracy and limits stand
in docs/estimation.md.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onboard.configs.bodies import BodyTable, load_bodies
from onboard.configs.odometry import OdometryConfig, load_odometry
from onboard.configs.robot import RobotConfig
from onboard.policies.estimators.contact import ContactFlags, SupportWatch
from onboard.policies.estimators.kinematics import Float64Array
from onboard.policies.estimators.momentum import GRAVITY_M_S2, GroundForce, Instant, MomentumBalance
from onboard.policies.estimators.velocity import LegSaying, VelocityFilter
from onboard.policies.estimators.window import Window

SLACK_S = 1e-3
"""Half a sample: a tick may end so much early, so that jitter does not make every other one longer."""


@dataclass
class Estimate:
    """What one tick gave; the same object every time.

    Attributes:
        time_s: of the newest sample in it, as given to `add`.
        contact: (2,) left and right, 1 or 0; -1 before the first estimate.
        force_n: (2,) vertical force, mean over the tick; NaN before the first estimate.
        velocity_m_s: (3,) of the pelvis' origin in the pelvis frame, at `time_s`; NaN before the first.
        velocity_std_m_s: (3,) its uncertainty as the filter sees it, world-aligned.
        standing: the feet carry the robot.
    """

    time_s: float = -np.inf
    contact: NDArray[np.int8] = field(default_factory=lambda: np.full(2, -1, np.int8))
    force_n: Float64Array = field(default_factory=lambda: np.full(2, np.nan))
    velocity_m_s: Float64Array = field(default_factory=lambda: np.full(3, np.nan))
    velocity_std_m_s: Float64Array = field(default_factory=lambda: np.full(3, np.nan))
    standing: bool = False


class LegOdometry:
    """The estimator of one robot.

    Attributes:
        weight_n: of the robot.
        estimate: the newest, see `Estimate`.
        due: a tick's worth of samples has been added.
    """

    def __init__(self, table: BodyTable, robot: RobotConfig, config: OdometryConfig) -> None:
        self._config = config
        self._balance = MomentumBalance(table, robot, config.forces)
        self.weight_n = self._balance.weight_n
        self._outline = np.array(table.sole_m) - self._balance.sole_m
        self._outline[:, 2] -= table.sole_radius_m
        self._reach = (self._outline.min(0), self._outline.max(0))
        self._flags = ContactFlags(config.contact)
        self._support = SupportWatch(config.support)
        self._filter = VelocityFilter(config.velocity)
        self._window = Window(robot.imu.pelvis_m)
        self.reset()

    def reset(self) -> None:
        """Forget everything; the next sample is the first."""
        self._flags.reset()
        self._support.reset()
        self._filter.reset()
        self._window.count = 0
        self._before: Instant | None = None
        self._gyro_before: Float64Array = np.zeros(3)
        self._force_before: Float64Array = np.zeros(2)
        self._time_s = self._begin_s = -np.inf
        self.estimate = Estimate()
        self.due = False

    def add(
        self,
        time_s: float,
        q: NDArray[np.floating],
        dq: NDArray[np.floating],
        tau_est: NDArray[np.floating],
        quat_wxyz: NDArray[np.floating],
        gyro_body: NDArray[np.floating],
        accel_body: NDArray[np.floating],
    ) -> None:
        """Take one sample; one that is not newer than the last is dropped, a long gap starts anew.

        Args:
            time_s: when the robot sent it, any steady clock.
            q: (29,) rad.
            dq: (29,) rad/s.
            tau_est: (29,) N·m.
            quat_wxyz: (4,) world from pelvis.
            gyro_body: (3,) rad/s.
            accel_body: (3,) m/s², as an accelerometer reads.
        """
        if time_s <= self._time_s or self._window.full:
            return
        if time_s - self._time_s > self._config.gap_s:
            self.reset()
            self._begin_s = time_s
        self._time_s = time_s
        self._window.add(q, dq, tau_est, quat_wxyz, gyro_body, accel_body)
        self.due = self._before is None or time_s - self._begin_s > self._config.tick_s - SLACK_S

    def tick(self) -> Estimate:
        """Work out the tick that ends with the newest sample; without one, the estimate stays."""
        if not self._window.count:
            return self.estimate
        dt = self._time_s - self._begin_s
        samples = self._window.take(dt, self._gyro_before)
        after = self._balance.instant(samples.q, samples.dq, samples.gyro, samples.turn)
        if self._before is not None:
            ground = self._ground(self._before, after, dt, samples.tau, samples.specific)
            self._move(self._before, after, dt, ground, samples.specific)
        self._before, self._gyro_before, self._begin_s = after, samples.gyro, self._time_s
        self.due = False
        if not np.isfinite(self._filter.velocity).all():
            self.reset()  # a sample that was no number would stay in the filter for ever
        return self.estimate

    def _ground(
        self, before: Instant, after: Instant, dt: float, tau: Float64Array, specific: Float64Array
    ) -> GroundForce:
        """Forces and flags."""
        ground = self._balance.solve(before, after, dt, tau, specific)
        self._support.see(float(ground.vertical_n.sum()), ground.needed_n, dt)
        if self._support.standing:
            ground = self._balance.with_sum(ground)
        estimate = self.estimate
        np.maximum(ground.vertical_n, 0.0, out=estimate.force_n)
        corners = after.sole[:, None] + self._outline @ np.swapaxes(after.foot, 1, 2)
        self._flags.see(estimate.force_n, corners[:, :, 2].min(1), self._support.standing)
        estimate.contact[:] = self._flags.flags
        estimate.standing = self._support.standing
        return ground

    def _move(
        self, before: Instant, after: Instant, dt: float, ground: GroundForce, specific: Float64Array
    ) -> None:
        """Velocity."""
        acceleration = specific.copy()
        acceleration[2] -= GRAVITY_M_S2
        self._filter.predict(acceleration, dt)
        self._filter.correct(self._legs(before, after, dt, ground, 0.5 * dt * acceleration))
        estimate = self.estimate
        estimate.velocity_m_s[:] = self._filter.velocity @ after.turn
        estimate.velocity_std_m_s[:] = np.sqrt(self._filter.variance)
        estimate.time_s = self._time_s

    def _legs(
        self, before: Instant, after: Instant, dt: float, ground: GroundForce, to_end: Float64Array
    ) -> list[LegSaying]:
        """What the standing legs say; their mean over the tick becomes the end's by adding `to_end`."""
        turned = after.foot - before.foot
        moved = after.sole - before.sole + (turned @ self._pressed(ground)[:, :, None])[:, :, 0]
        rolling = np.sqrt(0.5 * (turned * turned).sum((1, 2))) / dt
        force = self.estimate.force_n
        loading = (force - self._force_before) / dt
        self._force_before[:] = force
        return [
            LegSaying(
                velocity=to_end - moved[foot] / dt,
                share=float(force[foot] / force.sum()),
                rolling=float(rolling[foot]),
                loading=float(loading[foot]),
            )
            for foot in np.flatnonzero(self._flags.flags)
        ]

    def _pressed(self, ground: GroundForce) -> Float64Array:
        """(2, 3) centre of pressure of each foot from the middle of its sole, foot frame, m."""
        load = np.maximum(ground.wrench[:, 2], 1.0)
        point: Float64Array = np.zeros((2, 3))
        point[:, 0], point[:, 1] = -ground.wrench[:, 4] / load, ground.wrench[:, 3] / load
        return np.clip(point, *self._reach)


def make_odometry(robot: RobotConfig, overrides: list[str] | None = None) -> LegOdometry:
    """The estimator with the robot's shipped table and numbers.

    Raises:
        ConfigError: there is no table of the robot's links.
    """
    return LegOdometry(load_bodies(robot.name), robot, load_odometry("g1", overrides))
