"""The robot's body in MuJoCo: start, steps, pushes, gantry, sensors and the truth behind them.

Deterministic: the same calls give the same numbers. A step is MuJoCo's second half (forces and
integration) followed by its first (positions and velocities), so that after a step everything
that depends on position and velocity belongs to the new instant, not to the one before.
"""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import ConfigError
from onboard.configs.sim import SimConfig
from onboard.sim.gantry import Gantry
from onboard.sim.model import FREE_Q, FREE_V, Float64Array, load_model, start_pose
from onboard.sim.motors import Motors
from onboard.sim.sensors import Sensors

UPRIGHT = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Truth:
    """What only a simulator knows; pelvis origin, world frame unless the name says otherwise."""

    time_s: float
    position_m: Float64Array
    quat_wxyz: Float64Array
    velocity_m_s: Float64Array
    angular_velocity_rad_s: Float64Array
    velocity_body_m_s: Float64Array
    foot_force_n: Float64Array
    """(2, 3) force of the surroundings on the left and the right foot."""


class Physics:
    """One robot on a floor.

    Attributes:
        model, data: MuJoCo's, with addresses.
        motors: what acts on the joints.
        gantry: what may hold the pelvis.
        pose: (29,) joint positions of the start pose, rad.
        sensors: what the robot reports of itself.
        steps: time steps since it was made.
    """

    def __init__(self, config: SimConfig) -> None:
        self.config = config
        self.model = load_model(config)
        self.data = mujoco.MjData(self.model.mj)
        self.pose = start_pose(config, self.model.robot)
        self.motors = Motors(self.model, self.data, config)
        self.gantry = Gantry(self.model, self.data, config.gantry)
        self.steps = 0
        self._pushes: dict[int, int] = {}
        self.sensors = Sensors(self.model, self.data, config)
        self.reset()

    @property
    def time_s(self) -> float:
        """Simulated time; a reset does not set it back, as a robot's clock is not set back."""
        return self.steps * self.config.timestep_s

    def reset(
        self,
        q: NDArray[np.floating] | None = None,
        dq: NDArray[np.floating] | None = None,
        quat_wxyz: tuple[float, float, float, float] | NDArray[np.floating] = UPRIGHT,
        angular_velocity_body_rad_s: tuple[float, float, float] | NDArray[np.floating] = (0.0, 0.0, 0.0),
    ) -> None:
        """Start anew: limp, with the lowest point of the feet on the floor, or held by the gantry.

        Args:
            q: (29,) joint positions, rad; the configured start pose by default.
            dq: (29,) joint velocities, rad/s; at rest by default.
            quat_wxyz: orientation of the pelvis in the world.
            angular_velocity_body_rad_s: of the pelvis.
        """
        mj, data = self.model.mj, self.data
        mujoco.mj_resetData(mj, data)
        self._pushes.clear()
        self.motors.reset()
        data.qpos[FREE_Q:] = self.pose if q is None else q
        data.qvel[FREE_V:] = 0.0 if dq is None else dq
        data.qpos[3:FREE_Q] = np.asarray(quat_wxyz, dtype=np.float64) / np.linalg.norm(quat_wxyz)
        data.qvel[3:FREE_V] = angular_velocity_body_rad_s
        mujoco.mj_kinematics(mj, data)
        soles = self.model.sole_geoms
        lowest = float((data.geom_xpos[soles, 2] - mj.geom_size[soles, 0]).min())
        data.qpos[2] -= lowest
        if self.config.gantry.attached:
            data.qpos[2] = max(float(data.qpos[2]), self.config.gantry.height_m)
            self.gantry.attach(float(data.qpos[2]))
        mujoco.mj_forward(mj, data)
        self.sensors.reset()

    def step(self, count: int = 1) -> None:
        """Advance by `count` time steps."""
        mj, data, motors = self.model.mj, self.data, self.motors
        for _ in range(count):
            motors.apply()
            self.gantry.move()
            mujoco.mj_step2(mj, data)
            motors.count()
            self.steps += 1
            mujoco.mj_step1(mj, data)
            if self._pushes:
                self._end_pushes()
            self.sensors.step()

    def push(self, force_n: tuple[float, float, float], duration_s: float, body: str = "torso_link") -> None:
        """Push a link at its centre of mass; force in the world frame. A new push of a link ends the old one.

        Raises:
            ConfigError: the robot has no such link.
        """
        try:
            number = self.model.mj.body(body).id
        except KeyError:
            names = ", ".join(self.model.mj.body(i).name for i in range(1, self.model.mj.nbody - 1))
            raise ConfigError(f"push: the robot has no link '{body}'; there are: {names}") from None
        self.data.xfrc_applied[number, :3] = force_n
        self._pushes[number] = max(1, round(duration_s / self.config.timestep_s))

    def truth(self) -> Truth:
        """Pose, velocities and ground forces of this instant."""
        data = self.data
        rotation = data.xmat[self.model.pelvis].reshape(3, 3)
        velocity = data.qvel[:3].copy()
        return Truth(
            time_s=self.time_s,
            position_m=data.qpos[:3].copy(),
            quat_wxyz=data.qpos[3:FREE_Q].copy(),
            velocity_m_s=velocity,
            angular_velocity_rad_s=rotation @ data.qvel[3:FREE_V],
            velocity_body_m_s=rotation.T @ velocity,
            foot_force_n=data.cfrc_ext[list(self.model.feet), 3:].copy(),
        )

    def tilt_rad(self) -> float:
        """Angle between the pelvis' z axis and up."""
        return float(np.arccos(np.clip(self.data.xmat[self.model.pelvis][8], -1.0, 1.0)))

    def _end_pushes(self) -> None:
        for body in list(self._pushes):
            self._pushes[body] -= 1
            if self._pushes[body] <= 0:
                self.data.xfrc_applied[body] = 0.0
                del self._pushes[body]
