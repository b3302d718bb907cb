"""The gateway process: the only publisher of rt/lowcmd.

    python -m onboard.runtime.gateway --shm FILE --robot NAME --domain N --interface NAME --wake FD

Wakes on a new target (eventfd) and every 5 ms, reads the slot, the remote and the operator's port,
lets `gateway_core` decide, and publishes. It loads no policy and writes no file. Its own heartbeat
and the true send times go into shared memory.

Before it says that it is ready it listens on rt/lowcmd for 200 ms; somebody else commanding the
robot is counted, and the parent refuses to start.
"""

import argparse
import math
import os
import select
import signal
import sys
import time
from pathlib import Path

import numpy as np

from onboard.configs.robot import N_JOINTS, RobotConfig, load_robot
from onboard.runtime import realtime
from onboard.runtime.children import child_main
from onboard.runtime.dds import DdsDomain
from onboard.runtime.gateway_core import Core, GatewayConfig, GatewayState, Inputs, make_config, step
from onboard.runtime.idl import LowCmd, LowState
from onboard.runtime.link import COMMAND, State
from onboard.runtime.ports import GATEWAY, OPERATOR, SENT, open_shared
from onboard.runtime.remote import keys
from onboard.runtime.shm import Shared
from onboard.runtime.wire import LowCmdWriter, LowStateDecoder

LISTEN_NS = 200_000_000
EXPIRY_MS_REALTIME = 50.0
EXPIRY_MS_ORDINARY = 100.0


class Robot:
    """The gateway's own eyes and its voice on DDS."""

    def __init__(self, dds: DdsDomain, robot: RobotConfig) -> None:
        self._states = dds.reader("rt/lowstate", LowState)
        self._others = dds.reader("rt/lowcmd", LowCmd, depth=8, ignore_own=True)
        self._writer = dds.writer("rt/lowcmd", LowCmd)
        self._decoder = LowStateDecoder()
        self._encoder = LowCmdWriter(robot.valid)
        self._zeros = np.zeros(N_JOINTS, np.float32)
        self.state = State()
        self.mode_machine = robot.mode_machine[-1]
        self.foreign = 0

    def matched(self) -> int:
        """Readers of our commands."""
        return self._writer.matched()

    def look(self) -> None:
        """Take the newest state and count what others publish."""
        sample = self._states.take()
        if sample is not None and self._decoder.decode(sample.raw, self.state):
            self.state.received = True
            self.mode_machine = self.state.mode_machine
        self.foreign += len(self._others.take_all())

    def keys(self) -> int:
        """The remote's buttons, 0 before the first state."""
        return keys(self.state.remote.data)

    def tilt_rad(self) -> float:
        """Angle between the pelvis' z axis and up; 0 without a usable orientation."""
        _, x, y, _ = (float(value) for value in self.state.quat_wxyz)
        cosine = 1.0 - 2.0 * (x * x + y * y)
        return math.acos(max(-1.0, min(1.0, cosine))) if self.state.received and cosine == cosine else 0.0

    def pass_on(self, command: np.ndarray) -> None:
        """Publish a target."""
        self._writer.write(
            self._encoder.fill(command["q"], command["kp"], command["kd"], int(command["mode_machine"]))
        )

    def damp(self, kd: np.ndarray) -> None:
        """Publish a damping frame; needs no state."""
        self._writer.write(self._encoder.fill(self._zeros, self._zeros, kd, self.mode_machine))

    def limp(self) -> None:
        """Publish a frame without any torque."""
        self.damp(self._zeros)


class Gateway:
    """Joins the slot, the remote and the core; `cycle` is one wake-up."""

    def __init__(
        self, shared: Shared, robot: Robot, config: GatewayConfig, rights: realtime.RealtimeReport
    ) -> None:
        self._shared = shared
        self._robot = robot
        self._config = config
        self._command = np.zeros((), COMMAND)
        self._operator = np.zeros((), OPERATOR)
        self._sent = np.zeros((), SENT)
        self._status = np.zeros((), GATEWAY)
        self._status["realtime"], self._status["rights"] = rights.fifo, rights.text.encode()
        self._parent = os.getppid()
        self._published_number = 0
        self._repeat_at_ns = 0
        self.core = Core()

    def cycle(self) -> None:
        """Look, decide, publish what is due, report."""
        self._robot.look()
        now = time.monotonic_ns()
        before = self.core
        self.core = step(before, self._inputs(now), self._config)
        if self.core.state is GatewayState.DAMPING and before.state is not GatewayState.DAMPING:
            self._status["latched_ns"] = now
        fresh = self.core.number != self._published_number or self.core.state is not before.state
        if fresh or now >= self._repeat_at_ns:
            self._publish(now, fresh)
        self._report(now)

    def seconds_to_repeat(self) -> float:
        """How long the wait for a new target may last."""
        return max(0.0, (self._repeat_at_ns - time.monotonic_ns()) / 1e9)

    def _inputs(self, now: int) -> Inputs:
        ring = self._shared["command"]
        command = self._command if ring.latest(self._command) else None
        self._shared["operator"].latest(self._operator)
        operator = self._operator
        return Inputs(
            now_ns=now,
            command=command,
            corrupt=ring.head > 0 and command is None,
            keys=self._robot.keys(),
            tilt_rad=self._robot.tilt_rad(),
            starts=int(operator["starts"]),
            damps=int(operator["damps"]),
            limps=int(operator["limps"]),
            # A dead parent is seen by its id, at once; the heartbeat is for one that hangs.
            parent_ns=int(operator["heartbeat_ns"]) if os.getppid() == self._parent else 0,
            foreign=self._robot.foreign,
            control_done=bool(operator["control_done"]),
        )

    def _publish(self, now: int, fresh: bool) -> None:
        due = self._repeat_at_ns + self._config.repeat_ns
        self._repeat_at_ns = due if due > now else now + self._config.repeat_ns
        state = self.core.state
        if state is GatewayState.PASSING:
            self._robot.pass_on(self._command)
            self._status["last_made_ns"] = self._command["made_ns"]
        elif state is GatewayState.DAMPING:
            self._robot.damp(self._config.damping_kd)
        elif state is GatewayState.LIMP:
            self._robot.limp()
        else:
            return
        sent = self._sent
        sent["send_ns"] = time.monotonic_ns()
        sent["number"], sent["session"] = self.core.number, self.core.session
        sent["state"], sent["reason"], sent["repeat"] = state, self.core.reason, not fresh
        self._shared["sent"].push(sent)
        self._published_number = self.core.number
        self._status["published"] += 1

    def _report(self, now: int) -> None:
        status, core = self._status, self.core
        status["heartbeat_ns"], status["ready"] = now, 1
        status["number"], status["session"] = core.number, core.session
        status["state"], status["reason"] = core.state, core.reason
        status["mode_machine"] = self._robot.mode_machine
        status["foreign"], status["matched"] = self._robot.foreign, self._robot.matched()
        self._shared["gateway"].push(status)


def main(argv: list[str] | None = None) -> int:
    """Entry of the process."""
    parser = argparse.ArgumentParser(prog="onboard.runtime.gateway", description=__doc__)
    parser.add_argument("--shm", required=True)
    parser.add_argument("--robot", required=True)
    parser.add_argument("--damping-kd", required=True, help="29 numbers with commas, N·m·s/rad")
    parser.add_argument("--tilt-rad", type=float, required=True)
    parser.add_argument("--range-margin-rad", type=float, required=True)
    parser.add_argument("--kp-max", type=float, required=True)
    parser.add_argument("--kd-max", type=float, required=True)
    parser.add_argument("--domain", type=int, required=True)
    parser.add_argument("--interface", required=True)
    parser.add_argument("--wake", type=int, required=True, help="eventfd that control writes to")
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args(argv)
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)  # the parent decides
    return _serve(options)


def _serve(options: argparse.Namespace) -> int:
    description = load_robot(options.robot)
    shared = open_shared(Path(options.shm))
    with DdsDomain(options.domain, options.interface) as dds:
        robot = Robot(dds, description)
        _listen(robot)
        realtime.freeze_heap()
        rights = realtime.NOT_ASKED
        if options.realtime:
            rights = realtime.setup_realtime(realtime.PRIORITY_GATEWAY, realtime.spare_cpu(0))
        config = make_config(
            description,
            np.array([float(value) for value in options.damping_kd.split(",")], np.float32),
            expiry_ms=EXPIRY_MS_REALTIME if rights.fifo else EXPIRY_MS_ORDINARY,
            tilt_limit_rad=options.tilt_rad,
            range_margin_rad=options.range_margin_rad,
            kp_max=options.kp_max,
            kd_max=options.kd_max,
        )
        gateway = Gateway(shared, robot, config, rights)
        poller = select.poll()
        poller.register(options.wake, select.POLLIN)
        while gateway.core.state is not GatewayState.DONE:
            gateway.cycle()
            if poller.poll(1000.0 * gateway.seconds_to_repeat()):
                os.eventfd_read(options.wake)
    return 0


def _listen(robot: Robot) -> None:
    """Hear for 200 ms whether somebody else commands the robot."""
    until = time.monotonic_ns() + LISTEN_NS
    while time.monotonic_ns() < until:
        robot.look()
        time.sleep(0.005)


if __name__ == "__main__":
    sys.exit(child_main(main))
