"""Walks for judging the leg odometry: a policy in the simulator, with pushes, and sensor noise.

A walk is recorded at the full rate without noise; noise is added afterwards, so that the same walk
can be heard through several sensors.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.sim import load_sim
from onboard.policies.command import MotionCommand
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from onboard.sim.robot import SimRobot

Float64Array = NDArray[np.float64]

FALLEN_M = 0.45
"""Height of the pelvis below which the robot lies."""

HANGING_M = 1.0
SETTLE_STEPS = 1500


@dataclass(frozen=True)
class Noise:
    """Standard deviations, white for each sample, but for the torques' share and the constant errors."""

    q_rad: float = 0.001
    dq_rad_s: float = 0.1
    tau_nm: float = 1.0
    tau_share: float = 0.05
    """Fixed error of each joint's torque."""
    attitude_rad: float = 0.003
    gyro_rad_s: float = 0.02
    accel_m_s2: float = 0.2
    accel_bias_m_s2: float = 0.0
    """Constant, in a random direction."""
    tilt_rad: float = 0.0
    """Constant error of the attitude about a random axis."""


NOISES = {
    "clean": Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "white": Noise(),
    "biased accelerometer": Noise(accel_bias_m_s2=0.2),
    "tilted": Noise(tilt_rad=0.01),
}
"""Sensors by name; `white` is what the estimator is judged with."""


@dataclass(frozen=True)
class Walk:
    """One recorded walk; n samples at the simulator's rate.

    Attributes:
        step_s: between two samples.
        q, dq, tau: (n, 29).
        quat_wxyz, gyro, accel: (n, 4), (n, 3), (n, 3) of the pelvis IMU.
        force_n: (n, 2) true vertical force on the left and the right foot.
        velocity: (n, 3) m/s, true, pelvis frame.
        fell: the robot ended on the floor.
    """

    step_s: float
    q: Float64Array
    dq: Float64Array
    tau: Float64Array
    quat_wxyz: Float64Array
    gyro: Float64Array
    accel: Float64Array
    force_n: Float64Array
    velocity: Float64Array
    fell: bool


@dataclass(frozen=True)
class WalkPlan:
    """What a walk consists of.

    Attributes:
        velocity: vx, vy, wz, m/s and rad/s, after `stand_s`.
        seconds: in all.
        pushes: how many, 50 to 100 N for 0.1 s, in random horizontal directions.
        hanging: on the gantry, feet in the air.
    """

    velocity: tuple[float, float, float] = (0.5, 0.0, 0.0)
    seconds: float = 20.0
    stand_s: float = 4.0
    pushes: int = 5
    hanging: bool = False


def record_walk(policy: Policy, plan: WalkPlan, seed: int) -> Walk:
    """Let a policy walk in the simulator; its privileged terms get the truth."""
    config = load_sim("g1", ["builtin.active=false", f"robot={policy.bundle.robot.name}"])
    robot = SimRobot(config)
    robot.reset(policy.start_pose)
    if plan.hanging:
        _lift(robot, policy)
    period = round(1.0 / policy.bundle.contract.rate_hz / config.timestep_s)
    ticks = round(plan.seconds / (period * config.timestep_s))
    rng = np.random.default_rng(seed)
    pushed = set(rng.integers(int(0.1 * ticks), int(0.95 * ticks), plan.pushes).tolist())
    state, command = State(), policy.neutral_command()
    robot.sense(state)
    policy.reset(state)
    rows: list[Float64Array] = []
    for tick in range(ticks):
        moving = tick * period * config.timestep_s >= plan.stand_s
        command.set_velocity(*(plan.velocity if moving else (0.0, 0.0, 0.0)))
        if tick in pushed:
            angle, force = rng.uniform(0, 2 * np.pi), rng.uniform(50, 100)
            robot.physics.push((force * np.cos(angle), force * np.sin(angle), 0.0), 0.1)
        _act(robot, policy, state, command, tick)
        rows += [_sample(robot) for _ in range(period)]
    return _walk(np.array(rows), config.timestep_s, float(robot.physics.truth().position_m[2]) < FALLEN_M)


def with_noise(walk: Walk, noise: Noise, seed: int) -> Walk:
    """The same walk heard through worse sensors."""
    rng = np.random.default_rng(seed)

    def white(values: Float64Array, deviation: float) -> Float64Array:
        return values + rng.normal(0.0, deviation, values.shape)

    bias, tilt = (size * _direction(rng) for size in (noise.accel_bias_m_s2, noise.tilt_rad))
    return Walk(
        walk.step_s,
        q=white(walk.q, noise.q_rad),
        dq=white(walk.dq, noise.dq_rad_s),
        tau=white(walk.tau * (1 + rng.normal(0, noise.tau_share, walk.tau.shape[1])), noise.tau_nm),
        quat_wxyz=white(_turned(walk.quat_wxyz, tilt), 0.5 * noise.attitude_rad),
        gyro=white(walk.gyro, noise.gyro_rad_s),
        accel=white(walk.accel, noise.accel_m_s2) + bias,
        force_n=walk.force_n,
        velocity=walk.velocity,
        fell=walk.fell,
    )


def _direction(rng: np.random.Generator) -> Float64Array:
    """A random unit vector."""
    vector = rng.normal(size=3)
    return np.asarray(vector / np.linalg.norm(vector), np.float64)


def _turned(quats_wxyz: Float64Array, by_rad: Float64Array) -> Float64Array:
    """Attitudes (n, 4) seen by a body that is mounted turned by a small rotation vector (3,)."""
    w, x, y, z = quats_wxyz.T
    a, b, c = 0.5 * by_rad
    return np.stack(
        [
            w - x * a - y * b - z * c,
            x + w * a + y * c - z * b,
            y + w * b + z * a - x * c,
            z + w * c + x * b - y * a,
        ],
        axis=1,
    )


def _lift(robot: SimRobot, policy: Policy) -> None:
    """Hang the robot up and let it come to rest."""
    robot.physics.gantry.attach(HANGING_M)
    robot.physics.motors.set(policy.start_pose, policy.kp, policy.kd)
    robot.advance(SETTLE_STEPS)


def _act(robot: SimRobot, policy: Policy, state: State, command: MotionCommand, tick: int) -> None:
    """One tick of the policy, without a runtime around it."""
    robot.sense(state)
    torso = robot.torso_imu
    state.torso_quat_wxyz[:], state.torso_gyro[:] = torso[:4], torso[4:7]
    policy.provide_base_velocity(robot.physics.truth().velocity_body_m_s.tolist())
    policy.observe(state, command, tick)
    action = policy.infer()
    robot.physics.motors.set(policy.target(action), policy.kp, policy.kd)
    policy.commit(action)


def _sample(robot: SimRobot) -> Float64Array:
    """Let one step pass; what the robot reports then, and the truth."""
    robot.advance()
    sensors, truth = robot.physics.sensors, robot.physics.truth()
    return np.concatenate(
        [sensors.joints.ravel(), sensors.imu[0], truth.foot_force_n[:, 2], truth.velocity_body_m_s]
    )


def _walk(rows: Float64Array, step_s: float, fell: bool) -> Walk:
    ends = np.cumsum([29, 29, 29, 4, 3, 3, 2])
    q, dq, tau, quat, gyro, accel, force, velocity = np.split(rows, ends, axis=1)
    return Walk(step_s, q, dq, tau, quat, gyro, accel, force, velocity, fell)
