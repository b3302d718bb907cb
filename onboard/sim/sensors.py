"""What the robot reports of itself: joints and both IMUs, late where the gap says so."""

import mujoco
import numpy as np

from onboard.configs.sim import SimConfig
from onboard.sim.gap import Delay, latency_steps
from onboard.sim.model import FREE_Q, FREE_V, Float64Array, SimModel

IMU_VALUES = 10
"""Of one IMU: quaternion w, x, y, z, gyro, acceleration; the MJCF's sensors stand in this order."""


class Sensors:
    """Reads MuJoCo's state after each step.

    `joints` is (3, 29): q, dq, tau_est. `imu` is (2, 10): pelvis and torso, each quaternion (world
    from body), gyro and acceleration in the body's frame. Both are overwritten by the next step.
    """

    def __init__(self, model: SimModel, data: mujoco.MjData, config: SimConfig) -> None:
        self._q, self._dq = data.qpos[FREE_Q:], data.qvel[FREE_V:]
        self._tau = data.actuator_force
        self._imu: Float64Array = data.sensordata.reshape(2, IMU_VALUES)
        self._joints: Float64Array = np.zeros((3, len(model.robot.joints)))
        delay = latency_steps(config, model.robot, "state_latency_s")
        self._joint_delay = Delay(delay, 3) if delay.any() else None
        steps = round(config.gap.imu_latency_s / config.timestep_s)
        self._imu_delay = Delay(np.full(IMU_VALUES, steps), 2) if steps else None

    @property
    def joints(self) -> Float64Array:
        """(3, 29) q, dq, tau_est as reported now."""
        return self._now() if self._joint_delay is None else self._joint_delay.delayed

    @property
    def imu(self) -> Float64Array:
        """(2, 10) pelvis and torso as reported now."""
        return self._imu if self._imu_delay is None else self._imu_delay.delayed

    def reset(self) -> None:
        """As if the present instant had lasted for ever."""
        if self._joint_delay is not None:
            self._joint_delay.fill(self._now())
        if self._imu_delay is not None:
            self._imu_delay.fill(self._imu)

    def step(self) -> None:
        """Call after every physics step."""
        if self._joint_delay is not None:
            self._joint_delay.push(self._now())
        if self._imu_delay is not None:
            self._imu_delay.push(self._imu)

    def _now(self) -> Float64Array:
        self._joints[0], self._joints[1], self._joints[2] = self._q, self._dq, self._tau
        return self._joints
