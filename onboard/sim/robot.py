"""A simulated G1 as seen from its topics: what it reports, which commands it obeys, which it refuses.

As strict as the robot: a command with a wrong length or checksum, with another robot's
`mode_machine`, with a disabled motor or with a number that is not finite changes nothing, and is
counted by reason. While the built-in controller is in charge every command is ignored; released,
the robot is limp until a command comes.
"""

import logging
from collections import Counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onboard.configs.sim import SimConfig, per_joint
from onboard.runtime.link import Float32Array
from onboard.runtime.wire import LowCmdDecoder
from onboard.sim.faults import Faults
from onboard.sim.model import ExplicitPd, Float64Array, explicit_pd
from onboard.sim.physics import Physics
from onboard.sim.remote import Remote
from onboard.sim.thermal import Thermal

LOGGER = logging.getLogger("onboard.sim")
ACCEPTED = "accepted"
IGNORED = "built-in controller in charge"
REFUSALS = ("length", "crc", "mode_machine", "motor_mode", "not_finite")
THERMAL_STEPS = 10


class Report(Protocol):
    """Where `sense` writes: a `State`, or the encoder of a LowState message."""

    q: Float32Array
    dq: Float32Array
    tau_est: Float32Array
    temperature: NDArray[np.int16]
    motor_fault: NDArray[np.uint32]
    quat_wxyz: Float32Array
    gyro_body: Float32Array
    accel_body: Float32Array
    remote: NDArray[np.uint8]


class SimRobot:
    """One simulated robot.

    Attributes:
        physics: its body and its surroundings.
        remote: its wireless remote.
        faults: what goes wrong between it and its readers.
        thermal: its motors' temperatures.
        motor_fault: (29,) uint32, motorstate bits to report.
        verdicts: how many commands met each fate: `ACCEPTED`, `IGNORED` or one of `REFUSALS`.
        controller: name of the built-in controller in charge, "" when released.
        damped_by_silence: how often commands stopped for so long that it damped itself.
        explicit_pd: worst gains in force so far, judged as an explicit PD.
    """

    def __init__(self, config: SimConfig) -> None:
        self.config = config
        self.physics = Physics(config)
        robot = self.physics.model.robot
        self.remote = Remote()
        self.faults = Faults()
        self.verdicts: Counter[str] = Counter()
        self._decoder = LowCmdDecoder()
        self._builtin_kp = per_joint(config.builtin.kp, robot, "builtin.kp")
        self._builtin_kd = per_joint(config.builtin.kd, robot, "builtin.kd")
        self._silence_kd = per_joint(config.silence.damping_kd, robot, "silence.damping_kd")
        self._silence_steps = round(config.silence.after_s / config.timestep_s)
        self._quat_order = [1, 2, 3, 0] if config.gap.quat_order == "xyzw" else [0, 1, 2, 3]
        self._damps_itself = config.silence.action == "damp"
        self.reset()

    def reset(self, q: NDArray[np.floating] | None = None, **start: NDArray[np.floating]) -> None:
        """Start anew, as configured or in another state (see `Physics.reset`); counts are kept."""
        self.physics.reset(q, **start)
        model = self.physics.model
        self.thermal = Thermal(model.robot.effort.astype(np.float64), self.config.ambient_c)
        self.motor_fault: NDArray[np.uint32] = np.zeros(len(model.robot.joints), np.uint32)
        self.controller = ""
        self.damped_by_silence = 0
        self._quiet_steps = -1  # no command yet
        self._judged_kd: Float64Array = np.zeros(len(model.robot.joints))
        self.explicit_pd = ExplicitPd(0.0, model.robot.joint_names[0])
        if self.config.builtin.active:
            self._take_charge(self.config.builtin.name, self.physics.pose if q is None else q)

    @property
    def tick(self) -> int:
        """LowState's counter: simulated milliseconds."""
        return round(self.physics.time_s * 1000)

    def select_mode(self, name: str) -> None:
        """Put a built-in controller in charge; it holds the joints where they are."""
        self._take_charge(name, self.physics.sensors.joints[0])

    def release_mode(self) -> None:
        """Release the built-in controller: the robot goes limp."""
        if self.controller:
            self.controller = ""
            self._quiet_steps = -1
            self.physics.motors.set(0.0, 0.0, 0.0)

    def receive(self, raw: bytes | bytearray) -> str:
        """Take one LowCmd as it came, CDR bytes with header; its verdict, which is also counted."""
        verdict = self._judge(raw)
        self.verdicts[verdict] += 1
        if verdict == ACCEPTED:
            cmd = self._decoder
            self.physics.motors.set(cmd.q, cmd.kp, cmd.kd, cmd.dq, cmd.tau)
            self._quiet_steps = 0
            if not np.array_equal(cmd.kd, self._judged_kd):
                self.judge_gains(cmd.kd)
        return verdict

    def advance(self, steps: int = 1) -> None:
        """Let physics steps pass."""
        physics = self.physics
        for _ in range(steps):
            if self._quiet_steps >= 0:
                self._quiet_steps += 1
                if self._damps_itself and self._quiet_steps == self._silence_steps + 1:
                    physics.motors.set(0.0, 0.0, self._silence_kd)
                    self.damped_by_silence += 1
            physics.step()
            if physics.steps % THERMAL_STEPS == 0:
                self.thermal.step(physics.data.actuator_force, THERMAL_STEPS * self.config.timestep_s)

    def sense(self, out: Report) -> None:
        """Write what the robot reports now."""
        sensors = self.physics.sensors
        pelvis = sensors.imu[0]
        out.q[...], out.dq[...], out.tau_est[...] = sensors.joints
        out.temperature[...] = self.thermal.celsius
        out.motor_fault[...] = self.motor_fault
        out.quat_wxyz[...] = pelvis[self._quat_order]
        out.gyro_body[...] = pelvis[4:7]
        out.accel_body[...] = pelvis[7:]
        out.remote[...] = np.frombuffer(self.remote.encode(self.physics.time_s), np.uint8)
        self.faults.spoil(out)

    @property
    def torso_imu(self) -> Float64Array:
        """(10,) quaternion (in the order that the gap says), gyro, acceleration of the secondary IMU."""
        torso: Float64Array = self.physics.sensors.imu[1][[*self._quat_order, 4, 5, 6, 7, 8, 9]]
        return torso

    @property
    def mode_machine(self) -> int:
        """As reported; a fault can make it differ from the one that commands must echo."""
        fault = self.faults.mode_machine
        return self.config.mode_machine if fault is None else fault

    def judge_gains(self, kd: NDArray[np.floating]) -> ExplicitPd:
        """Judge damping gains as if PD were explicit; the worst are kept, the first unstable ones logged."""
        self._judged_kd = np.array(kd, dtype=np.float64)
        verdict = explicit_pd(self.physics.model, self.physics.data, self._judged_kd)
        if verdict.unstable and not self.explicit_pd.unstable:
            LOGGER.warning("%s", verdict.warning(self.config.timestep_s))
        if verdict.eigenvalue > self.explicit_pd.eigenvalue:
            self.explicit_pd = verdict
        return verdict

    def _take_charge(self, name: str, pose: NDArray[np.floating]) -> None:
        self.controller = name
        self._quiet_steps = -1
        self.physics.motors.set(pose, self._builtin_kp, self._builtin_kd)
        self.judge_gains(self._builtin_kd)

    def _judge(self, raw: bytes | bytearray) -> str:
        if self.controller:
            return IGNORED
        cmd = self._decoder
        if not cmd.decode(bytes(raw)):
            return cmd.fault
        if cmd.mode_machine != self.config.mode_machine:
            return "mode_machine"
        if not cmd.motor_mode().all():
            return "motor_mode"
        finite = all(np.isfinite(values).all() for values in (cmd.q, cmd.dq, cmd.tau, cmd.kp, cmd.kd))
        return ACCEPTED if finite else "not_finite"
