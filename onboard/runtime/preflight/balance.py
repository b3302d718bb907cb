"""What torque a joint's motion took, from positions, velocities and the IMU, without a torque sensor.

For a joint with axis a at p, over the links behind it with masses m, centres of mass c, velocities v
against the pelvis' origin and spins h, and the specific force s of the pelvis (gravity and sway, as its
accelerometer shows them):

    torque = d/dt a·Σ[cross(c - p, m·v) + h] + d/dt(armature·dq) + a·Σ m·cross(c - p, s)

The first term is linear in all joints' velocities and in the pelvis' turn, so it is a row of the mass
matrix, taken at the mean pose of the stretch: steps of a few hundredths of a radian barely change it.
Second-order terms (centrifugal, Coriolis) are left out for the same reason.
"""

import numpy as np

from onboard.configs.bodies import has_bodies, load_bodies
from onboard.configs.errors import ConfigError
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.policies.estimators.kinematics import Float64Array, Kinematics, Pose, cross

GRAVITY_POINTS = 24
"""Instants of a stretch at which the lever of gravity is computed; between them it is interpolated."""


class Balance:
    """Knows the masses of one robot.

    Args:
        robot: whose links are in a shipped table.

    Raises:
        ConfigError: there is no table of the robot's links.
    """

    def __init__(self, robot: RobotConfig) -> None:
        if not has_bodies(robot.name):
            raise ConfigError(
                f"the masses of {robot.name}'s links are not known, so how its joints move can't be judged: "
                "check without --gantry, or write configs/bodies for it"
            )
        self._kinematics = Kinematics(load_bodies(robot.name))
        self._armature = robot.armature

    def impulse(
        self,
        joint: int,
        time_s: Float64Array,
        q: Float64Array,
        dq: Float64Array,
        gyro: Float64Array,
        accel: Float64Array,
    ) -> Float64Array:
        """(n,) N·m·s that the joint's motor and friction gave since the first sample.

        Args:
            joint: SDK motor index.
            time_s: (n,) ascending.
            q: (n, 29) rad.
            dq: (n, 29) rad/s.
            gyro: (n, 3) rad/s, of the pelvis in its own frame.
            accel: (n, 3) m/s², specific force of the pelvis in its own frame.
        """
        row = self._mass_row(joint, q.mean(0))
        momentum = np.concatenate([dq, gyro], axis=1) @ row
        out: Float64Array = momentum - momentum[0] + integral(time_s, self._load(joint, q, accel))
        return out

    def load(self, q: Float64Array, accel: Float64Array) -> Float64Array:
        """(29,) N·m that a still robot's motors need against gravity.

        Args:
            q: (29,) rad.
            accel: (3,) m/s², specific force of the pelvis in its own frame.
        """
        pose = self._kinematics.pose(q)
        return np.array([self._lever(joint, pose) @ accel for joint in range(N_JOINTS)])

    def _mass_row(self, joint: int, q: Float64Array) -> Float64Array:
        """(32,) kg·m²: momentum about the joint's axis per joint velocity and per pelvis rate."""
        pose = self._kinematics.pose(q)
        unit = np.eye(N_JOINTS + 3)
        row = np.array([self._momentum(joint, pose, rate[:N_JOINTS], rate[N_JOINTS:]) for rate in unit])
        row[joint] += self._armature[joint]
        return row

    def _momentum(self, joint: int, pose: Pose, dq: Float64Array, gyro: Float64Array) -> float:
        kinematics, link = self._kinematics, 1 + joint
        motion = kinematics.motion(pose, dq, gyro)
        arm = pose.com - pose.origin[link]
        parts = cross(arm, kinematics.mass[:, None] * motion.com_velocity) + motion.momentum
        return float(kinematics.moves[:, link] @ parts @ pose.axis[link])

    def _load(self, joint: int, q: Float64Array, accel: Float64Array) -> Float64Array:
        """(n,) N·m against gravity and sway."""
        at = np.unique(np.linspace(0, len(q) - 1, GRAVITY_POINTS).round().astype(int))
        levers = np.array([self._lever(joint, self._kinematics.pose(q[k])) for k in at])
        every = np.stack([np.interp(np.arange(len(q)), at, lever) for lever in levers.T], axis=1)
        out: Float64Array = (every * accel).sum(1)
        return out

    def _lever(self, joint: int, pose: Pose) -> Float64Array:
        """(3,) N·m per m/s² of specific force."""
        kinematics, link = self._kinematics, 1 + joint
        arm = (kinematics.mass * kinematics.moves[:, link]) @ (pose.com - pose.origin[link])
        lever: Float64Array = cross(pose.axis[link], arm)
        return lever


def integral(time_s: Float64Array, values: Float64Array) -> Float64Array:
    """(n,) trapezoidal integral since the first sample."""
    steps = np.diff(time_s) * 0.5 * (values[1:] + values[:-1])
    out: Float64Array = np.concatenate([[0.0], np.cumsum(steps)])
    return out
