"""Bench runs of a simulated robot on a gantry, as arrays and as npz files; quick to make."""

from pathlib import Path

import numpy as np

from onboard.analysis.fit.trajectory import Float64Array, Trajectory
from onboard.configs.robot import N_JOINTS, load_robot
from onboard.configs.sim import load_sim
from onboard.sim.physics import Physics

ROBOT = load_robot("g1_29dof")
SLOTS = np.array([0, 1, 3, 4])
"""Hip pitch, hip roll, knee and ankle pitch of the left leg."""
JOINTS = tuple(ROBOT.joint_names[slot] for slot in SLOTS)
KP, KD = (40.0, 60.0, 100.0, 28.5), (2.5, 3.5, 4.0, 1.8)
WEAK = ('gap.gain={"*": 0.6}', 'gap.command_latency_s={"*": 0.02}')
STEPS = 10
FIRST, SECOND = (0.8, 1.1, 1.5, 1.9), (1.3, 0.7, 1.0, 1.4)
"""Frequencies of two excitations, Hz."""


def gains() -> tuple[Float64Array, Float64Array]:
    kp, kd = (values.astype(np.float64) for values in (ROBOT.stand_kp, ROBOT.stand_kd))
    kp[SLOTS], kd[SLOTS] = KP, KD
    return kp, kd


def record(
    frequencies_hz: tuple[float, ...], gap: tuple[str, ...] = WEAK, seconds: float = 2.0
) -> dict[str, Float64Array]:
    """Arrays as the npz exporter names them."""
    physics = Physics(load_sim(overrides=["gantry.attached=true", "gantry.height_m=1.2", *gap]))
    kp, kd = gains()
    middle = physics.pose.copy()
    middle[SLOTS] = -0.3, 0.2, 0.7, -0.3
    physics.motors.set(middle, kp, kd)
    physics.step(400)
    rows = []
    for k in range(round(seconds / 0.02)):
        target = middle.copy()
        phase = 2 * np.pi * np.array(frequencies_hz) * k * 0.02
        target[SLOTS] += min(1.0, k / 20) * 0.3 * np.sin(phase)
        (q, dq, tau), imu = physics.sensors.joints, physics.sensors.imu[0]
        rows.append([np.array(x, np.float64) for x in (k * 0.02, q, dq, target, tau, imu[:4], imu[4:7])])
        physics.motors.set(target, kp, kd)
        physics.step(STEPS)
    names = ("t", "q", "dq", "target", "tau", "quat", "gyro")
    columns = {name: np.array([row[k] for row in rows]) for k, name in enumerate(names)}
    return {**columns, "kp": kp, "kd": kd}


def write(path: Path, columns: dict[str, Float64Array]) -> Path:
    np.savez(path, **columns)  # type: ignore[arg-type]  # its stub has one keyword of another type
    return path


def trajectory(columns: dict[str, Float64Array], name: str = "bench") -> Trajectory:
    return Trajectory(
        name=name,
        sha256="",
        t_s=columns["t"],
        q=columns["q"],
        dq=columns["dq"],
        target=columns["target"],
        kp=columns["kp"],
        kd=columns["kd"],
        quat_wxyz=columns["quat"],
        gyro_body=columns["gyro"],
        base_velocity=np.full((len(columns["t"]), 3), np.nan),
        contact=np.zeros((len(columns["t"]), 2), np.int8),
    )


def still(rows: int = 20) -> Trajectory:
    """A trajectory in which nothing happens, whose target counts the rows."""
    zeros = np.zeros((rows, N_JOINTS))
    kp, kd = gains()
    return trajectory(
        {
            "t": np.linspace(0.0, 0.02 * (rows - 1), rows),
            "q": zeros,
            "dq": zeros,
            "target": zeros + np.arange(rows)[:, None],
            "kp": kp,
            "kd": kd,
            "quat": np.tile([1.0, 0, 0, 0], (rows, 1)),
            "gyro": np.zeros((rows, 3)),
        }
    )
