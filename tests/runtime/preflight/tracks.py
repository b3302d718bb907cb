"""What the IMUs of a simulated robot say over a while, in lock-step."""

from collections.abc import Callable

import numpy as np

from onboard.configs.sim import load_sim
from onboard.runtime.link import State
from onboard.runtime.preflight.imu_track import WAIST, Imu, Track
from onboard.sim.console import parse
from onboard.sim.robot import SimRobot
from onboard.sim.topics import roll_pitch_yaw

HANGING = "gantry.attached=true"
LIMP = "builtin.active=false"


def simulated(*overrides: str) -> SimRobot:
    """A robot at rest, standing or hanging."""
    robot = SimRobot(load_sim("g1", list(overrides)))
    robot.advance(250 if HANGING in overrides and LIMP not in overrides else 2000)
    return robot


def heard(robot: SimRobot, seconds: float = 0.25) -> Track:
    """Its next samples, as `ImuEar.hear` hears them."""
    state, pelvis, torso, waist = State(), [], [], []
    for _ in range(round(seconds / 0.002)):
        robot.advance()
        robot.sense(state)
        rpy = [roll_pitch_yaw(imu) for imu in robot.physics.sensors.imu]
        time_s = robot.physics.time_s
        pelvis.append([time_s, *state.quat_wxyz, *state.gyro_body, *state.accel_body, *rpy[0]])
        torso.append([time_s, *robot.torso_imu, *rpy[1]])
        waist.append(state.q[WAIST].astype(float))
    return Track(_imu(pelvis), _imu(torso), np.array(waist), state)


class Hands:
    """Plays `ImuEar` for a guided tilt: the person tilts the robot as the prompts ask.

    Attributes:
        prompts: what was asked.
    """

    def __init__(self, robot: SimRobot, obey: Callable[[str], str | None]) -> None:
        self.robot = robot
        self.prompts: list[str] = []
        self._obey = obey

    def say(self, line: str) -> None:
        """A prompt."""
        self.prompts.append(line)
        command = self._obey(line)
        if command:
            parse(command)(self.robot)

    def hear(self, seconds: float) -> Track:
        """As the real one, in simulated time."""
        return heard(self.robot, seconds)

    def close(self) -> None:
        """Nothing to close."""


def follow(prompt: str) -> str:
    """What a person does who follows the prompts, a little askew."""
    if "FORWARD" in prompt:
        return "gantry tilt 0.28 0.04"
    return "gantry tilt 0.03 -0.25" if "LEFT" in prompt else "gantry tilt 0 0"


def _imu(rows: list[list[float]]) -> Imu:
    values = np.array(rows, float)
    return Imu(values[:, 0], values[:, 1:5], values[:, 5:8], values[:, 8:11], values[:, 11:14])
