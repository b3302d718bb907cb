"""Sources of contact and base velocity for runs in lock-step: the simulator's truth, or the estimator."""

from onboard.policies.estimators.estimator import LegOdometry, make_odometry
from onboard.policies.estimators.provider import LEG_ODOMETRY, SIMULATOR_TRUTH, Known, Source
from onboard.sim.sim_link import SimLink

CONTACT_N = 10.0
"""Truth of contact: more vertical force than this."""


class TruthSource:
    """What only a simulator knows, at the instant of the look."""

    name = SIMULATOR_TRUTH

    def __init__(self, link: SimLink) -> None:
        self._link = link
        self.known = Known()

    def look(self) -> None:
        """Ask the simulator."""
        truth, known = self._link.robot.physics.truth(), self.known
        known.base_velocity[:] = truth.velocity_body_m_s
        known.base_height[0] = truth.position_m[2]
        known.foot_force[:] = truth.foot_force_n.ravel()
        known.contact_force[:] = truth.foot_force_n[:, 2]
        known.contact[:] = truth.foot_force_n[:, 2] > CONTACT_N
        known.made_ns = self._link.now_ns


class OdometrySource:
    """The leg odometry, fed with every physics step of a link; its ticks end where control's begin."""

    name = LEG_ODOMETRY

    def __init__(self, link: SimLink, odometry: LegOdometry | None = None) -> None:
        self._link = link
        self._odometry = odometry or make_odometry(link.robot.physics.model.robot)
        self._made_ns = 0
        self.known = Known()
        link.after_step = self._hear
        self._hear()

    def look(self) -> None:
        """Copy the newest estimate."""
        estimate, known = self._odometry.estimate, self.known
        known.contact[:], known.contact_force[:] = estimate.contact, estimate.force_n
        known.base_velocity[:] = estimate.velocity_m_s
        known.made_ns = self._made_ns

    def _hear(self) -> None:
        sensors, now_ns = self._link.robot.physics.sensors, self._link.now_ns
        q, dq, tau = sensors.joints
        pelvis = sensors.imu[0]
        self._odometry.add(now_ns * 1e-9, q, dq, tau, pelvis[:4], pelvis[4:7], pelvis[7:])
        if self._odometry.due and self._odometry.tick().contact[0] >= 0:
            self._made_ns = now_ns


def lock_step_sources(link: SimLink, wanted: set[str]) -> list[Source]:
    """The sources by their names; those that a simulator has not are left out."""
    made: list[Source] = []
    if LEG_ODOMETRY in wanted:
        made.append(OdometrySource(link))
    if SIMULATOR_TRUTH in wanted:
        made.append(TruthSource(link))
    return made
