"""A gantry that holds the pelvis upright at a height: a frame in the scene, welded to it softly."""

import mujoco
import numpy as np

from onboard.configs import sim as config_sim
from onboard.sim.model import Float64Array, SimModel

TURN_RATE_RAD_S = 1.0
"""How fast it brings a tilted robot upright."""


class Gantry:
    """Raises, lowers and releases the pelvis.

    Attributes:
        attached: it holds the robot.
        height_m: where it goes with the pelvis' origin.
        roll_rad, pitch_rad: how far it tilts the pelvis; nose down and right side down are positive.
    """

    def __init__(self, model: SimModel, data: mujoco.MjData, config: config_sim.Gantry) -> None:
        self._weld = model.gantry
        self._data = data
        self._step_m = config.speed_m_s * model.mj.opt.timestep
        self._step_rad = TURN_RATE_RAD_S * model.mj.opt.timestep
        self._default_m = config.height_m
        self.height_m = config.height_m
        self.roll_rad = self.pitch_rad = 0.0
        self._yaw_rad = 0.0

    @property
    def attached(self) -> bool:
        """It holds the robot."""
        return bool(self._data.eq_active[self._weld])

    def attach(self, height_m: float | None = None) -> None:
        """Take the robot where it is, bring it upright, and go to a height (the configured one)."""
        pose = self._data.qpos
        self._data.mocap_pos[0] = pose[:3]
        self._data.mocap_quat[0] = pose[3:7]
        w, x, y, z = pose[3:7]
        self._yaw_rad = float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
        self.tilt(0.0, 0.0)
        self._data.eq_active[self._weld] = True
        self.height_m = self._default_m if height_m is None else height_m

    def tilt(self, roll_rad: float, pitch_rad: float) -> None:
        """Go to a tilt, about the heading in which the robot was taken."""
        self.roll_rad, self.pitch_rad = roll_rad, pitch_rad

    def release(self) -> None:
        """Let go at once."""
        self._data.eq_active[self._weld] = False

    def move(self) -> None:
        """One step towards height and attitude; call before every physics step."""
        if not self._data.eq_active[self._weld]:
            return
        position, quat = self._data.mocap_pos[0], self._data.mocap_quat[0]
        position[2] += np.clip(self.height_m - position[2], -self._step_m, self._step_m)
        wanted: Float64Array = np.zeros(4)
        mujoco.mju_euler2Quat(wanted, np.array([self._yaw_rad, self.pitch_rad, self.roll_rad]), "zyx")
        wanted *= 1.0 if wanted @ quat >= 0 else -1.0
        angle = 2 * np.arccos(min(1.0, float(quat @ wanted)))
        share = 1.0 if angle <= self._step_rad else self._step_rad / angle
        quat += share * (wanted - quat)
        quat /= np.linalg.norm(quat)
