"""What the ground does to each foot, from the balance of momentum over one tick.

For every leg joint, the torque that the link behind it needs for its change of momentum, less the
torque that the motor gave, is what the ground's force F and moment M on the foot must supply:

    Jᵀ (F, M) = Σ a·((c - p) x f + dL/dt) + armature·ddq - tau          f = m·(dv/dt + s)

over the links behind the joint, with axis a, joint p, centre of mass c, and s the mean specific
force (what an accelerometer reads) of the pelvis' origin. Means over the tick come from every
sample; differences between its two ends are exact integrals. Snapshots at 50 Hz, or torques taken
as static, are worse by a factor of two to four.

Six equations and six unknowns a leg, but badly conditioned near a stretched knee: a prior and the
torques' uncertainty make it a least-squares problem. The sum of both vertical forces is known much
better, from the change of the whole momentum, as long as nothing else carries the robot.

Vectors are in a world-aligned frame in the pelvis' origin.
"""

from dataclasses import dataclass

import numpy as np

from onboard.configs.bodies import BodyTable
from onboard.configs.odometry import Forces
from onboard.configs.robot import RobotConfig
from onboard.policies.estimators.kinematics import Float64Array, Kinematics, cross

LEGS = np.array([range(1, 7), range(7, 13)])
"""(2, 6) links of the left and the right leg, hip to foot; link 1 + j is behind joint j."""
FEET = LEGS[:, -1]
GRAVITY_M_S2 = 9.81
ANKLES = 4
"""First of the two ankle joints of a leg."""


@dataclass(frozen=True)
class Instant:
    """The robot at one end of a tick.

    Attributes:
        turn: (3, 3) world from pelvis.
        com, origin, axis: (30, 3) of links and joints.
        com_velocity: (30, 3) m/s against the pelvis' origin.
        momentum: (30, 3) kg·m²/s.
        q, dq: (29,) rad and rad/s.
        foot: (2, 3, 3) world from foot.
        sole: (2, 3) m, middle of each sole.
    """

    turn: Float64Array
    com: Float64Array
    origin: Float64Array
    axis: Float64Array
    com_velocity: Float64Array
    momentum: Float64Array
    q: Float64Array
    dq: Float64Array
    foot: Float64Array
    sole: Float64Array


@dataclass(frozen=True)
class GroundForce:
    """The ground's action on both feet, mean over the tick.

    Attributes:
        wrench: (2, 6) force, N, and moment about the middle of the sole, N·m, in each foot's frame.
        variance: (2, 6, 6) of it.
        up: (2, 3) the vertical in each foot's frame.
        needed_n: what the change of the whole momentum asks of both feet together, upwards.
    """

    wrench: Float64Array
    variance: Float64Array
    up: Float64Array
    needed_n: float

    @property
    def vertical_n(self) -> Float64Array:
        """(2,) vertical force on each foot."""
        vertical: Float64Array = (self.up * self.wrench[:, :3]).sum(1)
        return vertical


class MomentumBalance:
    """Solves the balance for one robot.

    Attributes:
        weight_n: of the robot.
        sole_m: (3,) middle of a sole in the foot's frame, on the ground.
    """

    def __init__(self, table: BodyTable, robot: RobotConfig, config: Forces) -> None:
        self.kinematics = Kinematics(table)
        self._config = config
        self._mass = self.kinematics.mass[:, None]
        self.weight_n = float(self._mass.sum()) * GRAVITY_M_S2
        outline: Float64Array = np.array(table.sole_m)
        low, high = outline.min(0), outline.max(0)
        self.sole_m: Float64Array = 0.5 * (low + high)
        self.sole_m[2] = low[2] - table.sole_radius_m
        self._armature = robot.armature[LEGS - 1]
        self._range = (robot.lower[LEGS - 1], robot.upper[LEGS - 1])
        self._prior = np.array([*config.force_n, *config.moment_nm]) ** 2
        self._torque_nm = np.full((2, 6), config.torque_nm)
        self._torque_nm[:, ANKLES:] = config.ankle_torque_nm

    def instant(self, q: Float64Array, dq: Float64Array, gyro: Float64Array, turn: Float64Array) -> Instant:
        """Place and move the links.

        Args:
            q: (29,) rad.
            dq: (29,) rad/s.
            gyro: (3,) rad/s, pelvis frame.
            turn: (3, 3) world from pelvis.
        """
        pose = self.kinematics.pose(q)
        motion = self.kinematics.motion(pose, dq, gyro)
        rows = np.stack([pose.com, pose.origin, pose.axis, motion.com_velocity, motion.momentum]) @ turn.T
        foot = turn @ pose.rotation[FEET]
        com, origin, axis, com_velocity, momentum = rows
        sole = origin[FEET] + foot @ self.sole_m
        return Instant(turn, com, origin, axis, com_velocity, momentum, q, dq, foot, sole)

    def solve(
        self, before: Instant, after: Instant, dt: float, tau: Float64Array, specific: Float64Array
    ) -> GroundForce:
        """The ground's action over a tick, by the joint torques alone.

        Args:
            before: one end of the tick.
            after: the other end.
            dt: between the two, s.
            tau: (29,) N·m, mean over the tick.
            specific: (3,) m/s², mean specific force of the pelvis' origin, world-aligned.
        """
        force = self._mass * ((after.com_velocity - before.com_velocity) / dt + specific)
        com, axis = 0.5 * (before.com + after.com), 0.5 * (before.axis + after.axis)[LEGS]
        joint = 0.5 * (before.origin + after.origin)[LEGS]
        moment = (cross(com, force) + (after.momentum - before.momentum) / dt)[LEGS]
        behind, pull = _from_the_foot(moment), _from_the_foot(force[LEGS])
        legs = LEGS - 1
        missing = (axis * (behind - cross(joint, pull))).sum(2) - tau[legs]
        missing += self._armature * (after.dq - before.dq)[legs] / dt
        foot, sole = 0.5 * (before.foot + after.foot), 0.5 * (before.sole + after.sole)
        arm = cross(axis, sole[:, None] - joint)
        equations = np.concatenate([arm @ foot, axis @ foot], axis=2)
        doubt = self._doubt_nm(tau[legs], after.q[legs])
        wrench, variance = self._most_likely(equations, missing, doubt)
        return GroundForce(wrench, variance, foot[:, 2].copy(), float(force[:, 2].sum()))

    def with_sum(self, ground: GroundForce) -> GroundForce:
        """The same, given that nothing but the feet carries the robot; no foot pulls."""
        noise = (self._config.sum_share * self.weight_n) ** 2
        change = (ground.variance[:, :, :3] @ ground.up[:, :, None])[:, :, 0]
        share = (ground.up * change[:, :3]).sum(1)
        vertical = ground.vertical_n
        gap = ground.needed_n - vertical.sum()
        raised = vertical + share * (gap / (share.sum() + noise))
        for foot in np.flatnonzero(raised < 0.0):
            other = 1 - foot
            gap = ground.needed_n - vertical[other]
            raised[foot] = 0.0
            raised[other] = max(0.0, vertical[other] + share[other] * gap / (share[other] + noise))
            break
        wrench = ground.wrench + change * ((raised - vertical) / share)[:, None]
        return GroundForce(wrench, ground.variance, ground.up, ground.needed_n)

    def _doubt_nm(self, tau: Float64Array, q: Float64Array) -> Float64Array:
        """(2, 6) deviation of the joint torques: an end stop pushes too, and no motor feels it."""
        config = self._config
        stopped = (q < self._range[0] + config.stop_rad) | (q > self._range[1] - config.stop_rad)
        doubt: Float64Array = self._torque_nm + config.torque_share * np.abs(tau) + config.stop_nm * stopped
        return doubt

    def _most_likely(
        self, equations: Float64Array, missing: Float64Array, doubt_nm: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Mean and variance of both wrenches, given the equations' uncertainty and the prior."""
        spread = equations * self._prior
        covariance = spread @ np.swapaxes(equations, 1, 2)
        covariance[:, range(6), range(6)] += doubt_nm * doubt_nm
        gain = np.swapaxes(np.linalg.solve(covariance, spread), 1, 2)
        wrench = (gain @ missing[:, :, None])[:, :, 0]
        return wrench, np.diag(self._prior) - gain @ spread


def _from_the_foot(rows: Float64Array) -> Float64Array:
    """Sums (2, 6, 3) over each link and those behind it."""
    return np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
