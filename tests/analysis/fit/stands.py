"""A simulated robot on one foot or two for moments at a time, as one npz: quick, and no policy is needed."""

import numpy as np

from onboard.analysis.fit.trajectory import Float64Array
from onboard.configs.sim import load_sim
from onboard.sim.physics import Physics
from tests.analysis.fit.bench import ROBOT, STEPS

ANKLE = "left_ankle_pitch_joint"
SLOT = ROBOT.slot(ANKLE)
CONTACT = {"left": (1, 0), "right": (0, 1), "both": (1, 1)}
LEAD, ROWS = 5, 20
"""Rows of a moment whose contact is left unknown, since commands of the one before still act; and all."""


def gains() -> tuple[Float64Array, Float64Array]:
    """Soft ankles, so that it shows how soft."""
    kp, kd = (values.astype(np.float64) for values in (ROBOT.stand_kp, ROBOT.stand_kd))
    kp[[4, 5, 10, 11]], kd[[4, 5, 10, 11]] = 28.5, 1.8
    return kp, kd


def stands(weak: dict[str, float], seed: int, moments: int = 6) -> dict[str, Float64Array]:
    """Arrays as the npz exporter names them: moments on the left foot, the right one, and both.

    Args:
        weak: by phase, factor on the torque of the left ankle's pitch.
        seed: of starts and signals.
        moments: of each phase.
    """
    random = np.random.default_rng(seed)
    rows: list[list[Float64Array]] = []
    for phase, feet in CONTACT.items():
        gap = f"gap.gain={{{ANKLE}: {weak.get(phase, 1.0)}}}"
        physics = Physics(load_sim(overrides=["builtin.active=false", gap]))
        for _ in range(moments):
            rows += _moment(physics, feet, random, 0.02 * len(rows))
    names = ("t", "q", "dq", "target", "tau", "quat", "gyro", "base_velocity", "contact")
    columns = {name: np.array([row[k] for row in rows]) for k, name in enumerate(names)}
    kp, kd = gains()
    return {**columns, "kp": kp, "kd": kd}


def _moment(
    physics: Physics, feet: tuple[int, int], random: np.random.Generator, t_s: float
) -> list[list[Float64Array]]:
    pose = physics.pose.copy()
    for lifted, knee in zip(feet, (3, 9), strict=True):
        if not lifted:
            pose[[knee - 3, knee, knee + 1]] = -0.6, 1.2, -0.6
    physics.reset(pose)
    kp, kd = gains()
    phase, hz = random.uniform(0, 2 * np.pi), random.uniform(1.0, 2.5)
    rows = []
    for k in range(ROWS):
        target = pose.copy()
        target[SLOT] += 0.25 * np.sin(2 * np.pi * hz * 0.02 * k + phase)
        (q, dq, tau), imu = physics.sensors.joints, physics.sensors.imu[0]
        contact = feet if k >= LEAD else (-1, -1)
        velocity = physics.truth().velocity_body_m_s
        values = (t_s + 0.02 * k, q, dq, target, tau, imu[:4], imu[4:7], velocity, contact)
        rows.append([np.array(value, np.float64) for value in values])
        physics.motors.set(target, kp, kd)
        physics.step(STEPS)
    return rows
