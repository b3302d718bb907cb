"""The simulated robot's topics: bytes out of its sensors, bytes into its motors."""

import math
import time

import numpy as np

from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.external_pose import PoseSender
from onboard.runtime.wire import GROUND_TRUTH, HEADER, ImuEncoder, LowStateEncoder
from onboard.sim.faults import Fate
from onboard.sim.model import Float64Array
from onboard.sim.robot import SimRobot

TRUTH_PERIODS = 5
"""Ground truth goes out with every so-many-th LowState."""
COMMAND_DEPTH = 32
IMU_CELSIUS = 45


class Topics:
    """Publishes what a robot reports and hands it what it is told.

    Args:
        domain: where; closed by its owner, and the readers and writers with it.
        robot: whose topics.
        pose: takes the ground truth too, as motion capture would tell it; None for nobody.
    """

    def __init__(self, domain: DdsDomain, robot: SimRobot, pose: PoseSender | None = None) -> None:
        self._robot = robot
        self._pose = pose
        self._commands = domain.reader(idl.LOW_CMD_TOPIC, idl.LowCmd, depth=COMMAND_DEPTH)
        self._states = domain.writer(idl.LOW_STATE_TOPIC, idl.LowState)
        self._torso = domain.writer(idl.TORSO_IMU_TOPIC, idl.ImuState)
        self._truth = domain.writer(idl.GROUND_TRUTH_TOPIC, idl.GroundTruth)
        self._state_encoder = LowStateEncoder(robot.mode_machine)
        self._state_encoder.frame.fields["imu_temperature"] = IMU_CELSIUS
        self._torso_encoder = ImuEncoder()
        self._truth_frame = np.zeros((), GROUND_TRUTH)
        self._truth_frame["header"] = HEADER
        self._sealed = False
        self._late: bytearray | None = None

    def obey(self) -> None:
        """Give the robot every command that has come."""
        for sample in self._commands.take_all():
            self._robot.receive(sample.raw)

    def publish(self, period: int) -> None:
        """Report the present instant; `period` counts the calls."""
        self._publish_state()
        imu = self._robot.torso_imu
        encoder = self._torso_encoder
        encoder.quat_wxyz[...], encoder.gyro[...], encoder.accel[...] = imu[:4], imu[4:7], imu[7:]
        encoder.rpy[...] = roll_pitch_yaw(self._robot.physics.sensors.imu[1])
        self._torso.write(encoder.buffer)
        if period % TRUTH_PERIODS == 0:
            self._publish_truth()

    def _publish_state(self) -> None:
        robot, encoder = self._robot, self._state_encoder
        late, self._late = self._late, None
        fate = Fate.GOOD if late else robot.faults.next()
        if fate is Fate.LOST:
            return
        if fate is not Fate.FROZEN or not self._sealed:
            robot.sense(encoder)
            encoder.rpy[...] = roll_pitch_yaw(robot.physics.sensors.imu[0])
            encoder.frame.fields["mode_machine"] = robot.mode_machine
            encoder.frame.fields["mode_pr"] = robot.faults.mode_pr
            encoder.seal(robot.faults.tick(robot.tick))
            self._sealed = True
        if fate is Fate.CORRUPT:
            damaged = bytearray(encoder.frame.buffer)
            damaged[-1] ^= 0x80
            self._states.write(damaged)
        elif fate is Fate.REORDERED:
            self._late = bytearray(encoder.frame.buffer)
        else:
            self._states.write(encoder.frame.buffer)
        if fate is Fate.DUPLICATED:
            self._states.write(encoder.frame.buffer)
        if late is not None:
            self._states.write(late)

    def _publish_truth(self) -> None:
        truth, frame = self._robot.physics.truth(), self._truth_frame
        frame["tick"] = self._robot.tick & 0xFFFFFFFF
        frame["position"], frame["quaternion"] = truth.position_m, truth.quat_wxyz
        frame["linear_velocity"] = truth.velocity_m_s
        frame["angular_velocity"] = truth.angular_velocity_rad_s
        frame["contact_force"] = truth.foot_force_n
        self._truth.write(frame.tobytes())
        if self._pose is not None:
            self._pose.send(time.monotonic_ns(), truth.position_m, truth.quat_wxyz, truth.velocity_body_m_s)


def roll_pitch_yaw(imu: Float64Array) -> tuple[float, float, float]:
    """Roll, pitch and yaw of an IMU's quaternion, rad."""
    w, x, y, z = (float(value) for value in imu[:4])
    return (
        math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
        math.asin(max(-1.0, min(1.0, 2 * (w * y - z * x)))),
        math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
    )
