"""The simulated robot in this process, in lock-step: a link whose time passes when the clock says so.

Between two ticks the gateway's own checks run every 5 ms, as they do in its process, and what they
let through goes to the robot as the same bytes that would stand on the wire. So a target that is
out of range, expired or stopped by the emergency stop ends in the same damping here.
"""

import math
from collections.abc import Callable

import numpy as np

from onboard.configs.robot import N_JOINTS
from onboard.runtime.gateway_core import Core, GatewayConfig, GatewayState, Inputs, step
from onboard.runtime.link import COMMAND, State
from onboard.runtime.ports import OPERATOR
from onboard.runtime.remote import keys
from onboard.runtime.wire import LowCmdWriter
from onboard.sim.faults import Fate
from onboard.sim.robot import SimRobot

EPOCH_NS = 1_000_000_000
"""This clock's reading at the start of the simulation; 0 means "never" in many records."""


class SimLink:
    """A `Link` to a simulated robot.

    Args:
        robot: the robot; whoever made it decides about its start, its gantry and its faults.
        gateway: limits of the gateway's checks.
        period_ns: of the control loop.
        tamper: may change the state after it was filled, before control sees it.

    Attributes:
        robot: as given.
        core: the gateway's memory: its state and the reason for its latch.
        operator: the parent's port, 0-d `OPERATOR`; its heartbeat beats by itself while
            `parent_alive`.
        foreign: commands of other publishers that the gateway has heard; raise it to play one.
        after_step: called after every physics step, for whoever must hear every sample.
    """

    def __init__(
        self,
        robot: SimRobot,
        gateway: GatewayConfig,
        period_ns: int = 20_000_000,
        tamper: Callable[[State], None] | None = None,
    ) -> None:
        self.robot = robot
        self.core = Core()
        self.operator = np.zeros((), OPERATOR)
        self.parent_alive = True
        self.foreign = 0
        self.after_step: Callable[[], None] | None = None
        self._config = gateway
        self._period_ns = period_ns
        self._step_ns = round(robot.config.timestep_s * 1e9)
        self._tamper = tamper
        self._state = State()
        self._late: State | None = None
        self._overtaken = False
        self._again = False
        self._shown_ns = -1
        self._command = np.zeros((), COMMAND)
        self._has_command = False
        self._writer = LowCmdWriter(robot.physics.model.robot.valid)
        self._zeros = np.zeros(N_JOINTS, np.float32)

    @property
    def now_ns(self) -> int:
        """Simulated time."""
        return EPOCH_NS + self.robot.physics.steps * self._step_ns

    def open(self) -> None:
        """Take the first state."""
        self.latest()

    def latest(self) -> State:
        """The newest good sample; see `State`."""
        state, now = self._state, self.now_ns
        state.new = False
        if now != self._shown_ns:
            self._shown_ns = now
            self._receive(state, now)
        state.age_s = (now - state.source_time_ns) / 1e9 if state.received else 0.0
        if self._tamper is not None:
            self._tamper(state)
        return state

    def send(self, command: np.ndarray) -> None:
        """Hand one `COMMAND` to the gateway's checks, which act on it at once."""
        self._command[...] = command
        self._has_command = True
        self._gateway()

    def close(self) -> None:
        """Nothing to release."""

    def pass_period(self) -> None:
        """Let one control period pass, with the gateway awake every `repeat_ns`."""
        begin = self.now_ns
        end = begin + self._period_ns
        wake = begin
        while wake < end:
            wake = min(wake + self._config.repeat_ns, end)
            self._advance(math.ceil((wake - self.now_ns) / self._step_ns))
            self._gateway()

    def _advance(self, steps: int) -> None:
        if self.after_step is None:
            self.robot.advance(steps)
            return
        for _ in range(steps):
            self.robot.advance()
            self.after_step()

    def _receive(self, state: State, now: int) -> None:
        faults = self.robot.faults
        if self._late is not None and self._overtaken:  # a reader of the newest finds it all the same
            self._late.crc_errors = state.crc_errors
            state.assign(self._late)
            state.received = state.new = True
            state.recv_ns, self._late = now, None
            return
        fate = Fate.FROZEN if self._again else Fate.GOOD if self._late else faults.next()
        self._again, self._overtaken = fate is Fate.DUPLICATED, self._late is not None
        if fate is Fate.LOST:
            return
        if fate is Fate.REORDERED:
            self._late = State()
            self._sense(self._late, now)
            return
        state.crc_ok = fate is not Fate.CORRUPT
        if fate is Fate.CORRUPT:
            state.crc_errors += 1
            return
        state.received = state.new = True
        state.recv_ns = state.source_time_ns = now
        if fate is not Fate.FROZEN:
            self._sense(state, now)

    def _sense(self, state: State, now: int) -> None:
        """What the robot reports at this instant."""
        state.source_time_ns = now
        self.robot.sense(state)
        state.robot_tick = self.robot.faults.tick(self.robot.tick)
        state.mode_machine = self.robot.mode_machine
        state.mode_pr = self.robot.faults.mode_pr
        torso = self.robot.torso_imu
        state.torso_quat_wxyz[...] = torso[:4]
        state.torso_gyro[...] = torso[4:7]

    def _gateway(self) -> None:
        """One wake-up of the gateway: look, decide, publish."""
        now = self.now_ns
        if self.parent_alive:
            self.operator["heartbeat_ns"] = now
        self.core = step(self.core, self._inputs(now), self._config)
        state, command = self.core.state, self._command
        if state is GatewayState.PASSING:
            q, kp, kd = command["q"], command["kp"], command["kd"]
            self.robot.receive(self._writer.fill(q, kp, kd, int(command["mode_machine"])))
        elif state in (GatewayState.DAMPING, GatewayState.LIMP):
            damping = self._config.damping_kd if state is GatewayState.DAMPING else self._zeros
            mode_machine = self.robot.mode_machine
            self.robot.receive(self._writer.fill(self._zeros, self._zeros, damping, mode_machine))

    def _inputs(self, now: int) -> Inputs:
        robot, operator = self.robot, self.operator
        _, x, y, _ = robot.physics.sensors.imu[0, :4]
        return Inputs(
            now_ns=now,
            command=self._command if self._has_command else None,
            corrupt=False,
            keys=keys(robot.remote.encode(robot.physics.time_s)),
            tilt_rad=math.acos(max(-1.0, min(1.0, 1.0 - 2.0 * (x * x + y * y)))),
            starts=int(operator["starts"]),
            damps=int(operator["damps"]),
            limps=int(operator["limps"]),
            parent_ns=int(operator["heartbeat_ns"]),
            foreign=self.foreign,
        )


class LockStepClock:
    """A `Clock` on which waiting is what makes the simulated time pass.

    Args:
        link: whose robot moves.
        period_ns: of the loop; the link's.
    """

    def __init__(self, link: SimLink, period_ns: int = 20_000_000) -> None:
        self.period_ns = period_ns
        self.late_ns = 0
        self._link = link
        self._stalled = 0

    def now_ns(self) -> int:
        """Simulated time."""
        return self._link.now_ns

    def start(self) -> None:
        """The grid's origin is where the simulation stands."""

    def stall(self, periods: int) -> None:
        """Make the next `wait` miss so many periods, as after an overrun."""
        self._stalled = periods

    def wait(self) -> int:
        """Let one period pass, and those of a stall before it; the number of the latter."""
        skipped, self._stalled = self._stalled, 0
        for _ in range(1 + skipped):
            self._link.pass_period()
        return skipped
