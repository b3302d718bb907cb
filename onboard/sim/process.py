"""The simulated robot as a process of its own, on real DDS, paced by the clock.

    python -m onboard sim --domain 1

Publishes `rt/lowstate` and `rt/secondary_imu` at 500 Hz and `rt/sim/ground_truth` at 100 Hz, obeys
`rt/lowcmd`, answers the motion-switcher's calls. Its operator is a script, lines on standard input,
keys or a gamepad. One thread does everything in turn, period after period on an absolute 2 ms grid.
Where the machine held it up it catches up, as the robot's time does not stop; periods further behind
than that are left out and counted.
"""

import logging
import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from onboard.configs.errors import ConfigError, LinkError
from onboard.configs.external_pose import udp_address
from onboard.configs.sim import SimConfig, load_sim
from onboard.runtime.clock import GridClock
from onboard.runtime.dds import DdsDomain
from onboard.runtime.external_pose import PoseSender
from onboard.runtime.motion_switcher import MotionSwitcherResponder
from onboard.runtime.realtime import PRIORITY_ROBOT, setup_realtime
from onboard.sim import console
from onboard.sim.gamepad import Gamepad
from onboard.sim.hands import KeyInput, LineInput
from onboard.sim.robot import SimRobot
from onboard.sim.script import Script
from onboard.sim.summary import Summary, summarise
from onboard.sim.topics import Topics

LOGGER = logging.getLogger("onboard.sim")
PUBLISH_S = 0.002
HANDS_PERIODS = 10
"""Operator's input is looked at every so many periods."""
CATCH_UP_PERIODS = 50
"""Periods that are made up for at once after a hold-up."""


@dataclass(frozen=True)
class Options:
    """How to start the simulated robot."""

    domain: int = 1
    """DDS domain id; the real robot's is 0."""
    interface: str = "lo"
    """Network interface."""
    config: str = "g1"
    """Shipped simulator configuration or a YAML path."""
    overrides: tuple[str, ...] = ()
    """key=value of the configuration, dotted keys."""
    script: Path | None = None
    """Timed commands: lines of SECONDS COMMAND."""
    faults: tuple[tuple[float, str], ...] = ()
    """Further timed commands: seconds and command, in any order."""
    keys: bool = False
    """Single keys of this terminal instead of lines on standard input."""
    gamepad: Path | None = None
    """Joystick device such as /dev/input/js0."""
    pose_udp: str = ""
    """Address HOST:PORT that the true pose is sent to; "" for none."""
    viewer: bool = False
    """Show the robot in a window."""
    duration_s: float = math.inf
    """End after so much simulated time."""
    realtime: bool = False
    """Ask for SCHED_FIFO."""
    with_parent: bool = False
    """End when the process that started it is gone."""


class SimProcess:
    """The robot, its topics and its operator; `run` is the loop.

    Args:
        options: as given on the command line.
        domain: where to speak; closed by its owner.

    Raises:
        ConfigError: a wrong configuration or script.
        LinkError: no such gamepad, or no terminal for keys.
    """

    def __init__(self, options: Options, domain: DdsDomain) -> None:
        self.config: SimConfig = load_sim(options.config, list(options.overrides))
        self.robot = SimRobot(self.config)
        self._options = options
        self._script = Script.read(options.script) if options.script else None
        self._faults = Script([(at, console.parse(line)) for at, line in sorted(options.faults)])
        self._gamepad = Gamepad(options.gamepad) if options.gamepad else None
        self._pose = _pose_sender(options.pose_udp)
        self._topics = Topics(domain, self.robot, self._pose)
        self._switcher = MotionSwitcherResponder(domain, names=(self.config.builtin.name,))
        self._steps = max(1, round(PUBLISH_S / self.config.timestep_s))
        self._clock = GridClock(round(self._steps * self.config.timestep_s * 1e9))
        self._viewer = _open_viewer(self.robot) if options.viewer else None
        self._hands = KeyInput() if options.keys else LineInput()  # last: it changes the terminal
        self._end = ""
        self._periods = self._skipped = 0
        self._parent = os.getppid()

    def stop(self, reason: str) -> None:
        """End after the present period."""
        self._end = self._end or reason

    def run(self) -> Summary:
        """Live until the duration is over, the operator quits, or a signal comes."""
        began = time.monotonic()
        owed = 1
        self._clock.start()
        while not self._end:
            self._skipped += max(0, owed - CATCH_UP_PERIODS)
            for _ in range(min(owed, CATCH_UP_PERIODS)):
                self._period()
            owed = 1 + self._clock.wait()
        seconds = time.monotonic() - began
        return summarise(self.robot, self._end, seconds, self._periods, self._skipped)

    def close(self) -> None:
        """Give back terminal, gamepad and window."""
        self._hands.close()
        if self._pose is not None:
            self._pose.close()
        if self._gamepad is not None:
            self._gamepad.close()
        if self._viewer is not None:
            self._viewer.close()

    def _period(self) -> None:
        if self._periods % HANDS_PERIODS == 0:
            self._look_at_hands()
            self._answer_switcher()
            if self._options.with_parent and os.getppid() != self._parent:
                self.stop("parent gone")
        self._topics.obey()
        self.robot.advance(self._steps)
        self._topics.publish(self._periods)
        self._periods += 1
        if self.robot.physics.time_s >= self._options.duration_s:
            self.stop("duration")

    def _look_at_hands(self) -> None:
        if self._gamepad is not None:
            self._gamepad.update(self.robot.remote)
        time_s = self.robot.physics.time_s
        actions = [] if self._script is None else self._script.due(time_s)
        commands: list[console.Action | str] = [*actions, *self._faults.due(time_s), *self._hands.lines()]
        for command in commands:
            self._act(command)
        if self._viewer is not None:
            if not self._viewer.is_running():
                self.stop("window closed")
            self._viewer.sync()

    def _answer_switcher(self) -> None:
        switcher, robot = self._switcher, self.robot
        switcher.active = robot.controller
        if switcher.serve() and switcher.active != robot.controller:
            if switcher.active:
                robot.select_mode(switcher.active)
            else:
                robot.release_mode()

    def _act(self, command: console.Action | str) -> None:
        try:
            action = console.parse(command) if isinstance(command, str) else command
            action(self.robot)
        except console.QuitError:
            self.stop("quit")
        except ConfigError as error:
            LOGGER.warning("%s", error)


def serve(options: Options, say: Callable[[str], object]) -> Summary:
    """Run the simulated robot until its end; SIGINT and SIGTERM end it in order.

    Args:
        options: as given on the command line.
        say: takes the one line that tells people it has started.

    Raises:
        ConfigError, LinkError: it can't be started as asked.
    """
    with DdsDomain(options.domain, options.interface) as domain:
        process = SimProcess(options, domain)

        def on_signal(number: int, _: FrameType | None) -> None:
            process.stop(signal.Signals(number).name)

        before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            if options.realtime:
                setup_realtime(PRIORITY_ROBOT, None)
            say(_greeting(process, domain))
            return process.run()
        finally:
            process.close()
            for number, handler in before.items():
                signal.signal(number, handler)


def _greeting(process: SimProcess, domain: DdsDomain) -> str:
    config, robot = process.config, process.robot
    controller = f"built-in controller '{robot.controller}' active" if robot.controller else "released, limp"
    held = (
        f"on the gantry at {config.gantry.height_m:g} m" if robot.physics.gantry.attached else "on the floor"
    )
    return (
        f"simulated {config.robot} on domain {domain.id}, {domain.interface}: {controller}, pose "
        f"'{config.start_pose}', {held}; Ctrl-C ends it"
    )


def _pose_sender(address: str) -> PoseSender | None:
    """Sends to an address; None where there is none.

    Raises:
        ConfigError: it is no address.
    """
    if not address:
        return None
    try:
        return PoseSender(udp_address(address))
    except ValueError as error:
        raise ConfigError(f"--pose-udp {address}: {error}; give HOST:PORT, an IPv4 address") from error


def _open_viewer(robot: SimRobot) -> Any:  # noqa: ANN401 - MuJoCo has no types
    """A window that shows the robot.

    Raises:
        LinkError: no display, or MuJoCo's viewer is not installed.
    """
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        # Without one the window library ends the whole process.
        raise LinkError("--viewer needs a display, and there is none here; leave it out")
    try:
        import mujoco.viewer  # only on demand: it loads a window library

        return mujoco.viewer.launch_passive(robot.physics.model.mj, robot.physics.data)
    except (ImportError, RuntimeError, OSError) as error:
        raise LinkError(f"--viewer can't open a window ({error}); leave it out") from error
