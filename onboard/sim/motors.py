"""The 29 motors: the law of a command, written into MuJoCo's actuators.

    torque = clip(gain * (tau + kp * (q_target - q) + kd * (dq_target - dq)), -limit, limit)

kp and kd sit in the actuators, not in a torque computed here, so that the implicit integrator sees
them: an explicit PD chatters with the gains of some policies (model.ExplicitPd).
"""

import mujoco
import numpy as np
from numpy.typing import NDArray

from onboard.configs.sim import SimConfig, per_joint, wired
from onboard.sim.gap import Delay, latency_steps, play
from onboard.sim.model import FREE_Q, Float64Array, SimModel

Q, DQ, TAU, KP, KD = range(5)
"""Rows of a command."""


class Motors:
    """Holds the command in force and counts steps at the torque limit.

    Attributes:
        command: (5, 29) rows Q, DQ, TAU, KP, KD as they reach the motors, before gain and latency.
        saturated_steps: (29,) steps that each joint spent at its torque limit.
        steps, steps_at_limit: all steps, and those with any joint at the limit.
    """

    def __init__(self, model: SimModel, data: mujoco.MjData, config: SimConfig) -> None:
        mj, robot, gap = model.mj, model.robot, config.gap
        n = len(robot.joints)
        self.command: Float64Array = np.zeros((5, n))
        self.saturated_steps = np.zeros(n, np.int64)
        self.steps = 0
        self.steps_at_limit = 0
        self._limit = model.effort_nm * (1 - 1e-9)
        self._gain = per_joint(gap.gain, robot, "gap.gain", 1.0)
        self._backlash = per_joint(gap.backlash_rad, robot, "gap.backlash_rad")
        self._has_backlash = bool(self._backlash.any())
        motor, self._sign = wired(gap.wiring, robot)
        self._joint: NDArray[np.intp] = np.argsort(motor)  # whose commands each motor obeys
        self._crossed = bool(gap.wiring)
        delay = latency_steps(config, robot, "command_latency_s")
        self._delay = Delay(delay, 5) if delay.any() else None
        self._changed = True
        self._target: Float64Array = np.zeros(n)
        # Views into MuJoCo's own memory; taking one costs more than using it.
        self._kp_out, self._bias = mj.actuator_gainprm[:, 0], mj.actuator_biasprm
        self._ctrl, self._force = data.ctrl, data.actuator_force
        self._q = data.qpos[FREE_Q:]
        self._size = np.empty(n)
        self._hit = np.empty(n, dtype=bool)

    def reset(self) -> None:
        """Limp, with nothing on its way; the counts start anew."""
        self.command[:] = 0
        if self._delay is not None:
            self._delay.fill(self.command)
        self.saturated_steps[:] = 0
        self.steps = self.steps_at_limit = 0
        self._changed = True

    def set(
        self,
        q: NDArray[np.floating] | float,
        kp: NDArray[np.floating] | float,
        kd: NDArray[np.floating] | float,
        dq: NDArray[np.floating] | float = 0.0,
        tau: NDArray[np.floating] | float = 0.0,
    ) -> None:
        """Put a command in force: (29,) each, or one number for all; rad, rad/s, N·m, N·m/rad, N·m·s/rad."""
        command = self.command
        command[Q], command[DQ], command[TAU], command[KP], command[KD] = q, dq, tau, kp, kd
        if self._crossed:
            command[: TAU + 1] *= self._sign
            command[:] = command[:, self._joint]
        self._changed = True

    def apply(self) -> None:
        """Write the command into the actuators; call before every physics step."""
        if self._delay is not None:
            self._write(self._delay.push(self.command))
        elif self._changed:
            self._write(self.command)
            self._changed = False
        if self._has_backlash:
            self._ctrl[:] = self._q + play(self._target - self._q, self._backlash)

    def count(self) -> None:
        """Book the step's torques; call after every physics step."""
        np.abs(self._force, out=self._size)
        np.greater_equal(self._size, self._limit, out=self._hit)
        self.steps += 1
        if self._hit.any():
            self.steps_at_limit += 1
            self.saturated_steps += self._hit

    @property
    def saturated(self) -> float:
        """Fraction of the steps so far with any joint at its torque limit."""
        return self.steps_at_limit / self.steps if self.steps else 0.0

    def _write(self, command: Float64Array) -> None:
        kp, kd = self._gain * command[KP], self._gain * command[KD]
        self._kp_out[:] = kp
        self._bias[:, 0] = kd * command[DQ] + self._gain * command[TAU]
        self._bias[:, 1] = -kp
        self._bias[:, 2] = -kd
        self._target[:] = command[Q]
        self._ctrl[:] = command[Q]
