"""The parent's standby writer: matched beforehand, silent until the gateway is gone for certain."""

import numpy as np

from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.runtime.dds import DdsDomain
from onboard.runtime.idl import LowCmd
from onboard.runtime.link import Float32Array
from onboard.runtime.wire import LowCmdWriter


class Standby:
    """Can damp, and nothing else."""

    def __init__(self, dds: DdsDomain, robot: RobotConfig, damping_kd: Float32Array) -> None:
        self._writer = dds.writer("rt/lowcmd", LowCmd)
        self._encoder = LowCmdWriter(robot.valid)
        self._zeros = np.zeros(N_JOINTS, np.float32)
        self._kd = damping_kd
        self.frames = 0

    def damp(self, mode_machine: int) -> None:
        """Publish one damping frame."""
        self._writer.write(self._encoder.fill(self._zeros, self._zeros, self._kd, mode_machine))
        self.frames += 1
