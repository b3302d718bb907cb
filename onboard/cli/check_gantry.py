"""`onboard check --gantry`: the probe as a run of its own, and what the operator sees of it."""

import time
from typing import NamedTuple

from onboard.cli.run_options import run_config
from onboard.cli.teller import Teller
from onboard.configs.bench import BenchProtocol
from onboard.configs.events import Mode
from onboard.configs.robot import load_robot
from onboard.runtime.assembly import make_plan
from onboard.runtime.console import Console
from onboard.runtime.launch import launch
from onboard.runtime.parent import Parent
from onboard.runtime.preflight.gantry import Flown, GantryChecks
from onboard.runtime.preflight.probe import probe_protocol, probe_script
from onboard.runtime.script import Script

LINE_PERIOD_NS = 500_000_000


class Where(NamedTuple):
    """The robot that hangs there, and where its rollout goes."""

    robot: str
    interface: str
    domain: int
    out: str
    release: bool


def gantry_checks(where: Where, chirp_joint: str) -> GantryChecks:
    """The checks that move a robot over DDS.

    Raises:
        ConfigError: an unknown joint, or a robot whose masses are not known.
    """
    robot = load_robot(where.robot)
    protocol = probe_protocol(robot, chirp_joint)
    return GantryChecks(protocol, robot, lambda: fly(where, protocol))


def fly(where: Where, protocol: BenchProtocol) -> Flown:
    """Play the protocol as every run is played: gateway, gate, limits, recorder, the remote's buttons."""
    config = run_config(
        policy=f"bench_{protocol.name}",
        bench=protocol,
        gantry=True,
        lowstate=True,
        note="onboard check --gantry",
        **where._asdict(),
    )
    plan = make_plan(config)
    console = Console(Script(probe_script(protocol)))
    teller = Teller()
    teller(f"gantry: the robot will move for {protocol.seconds:.0f} s; B on the remote damps, Ctrl-C stops")
    try:
        outcome = launch(plan, console, teller, ProbeLine(teller, protocol, config.period_ns))
    finally:
        teller.close()
    ok = outcome.exit_code == 0 and not console.failed and console.end == "the script is over"
    return Flown(ok, outcome.end, outcome.rollout)


class ProbeLine:
    """Two lines a second about what moves and what is left; called every few milliseconds."""

    def __init__(self, teller: Teller, protocol: BenchProtocol, period_ns: int) -> None:
        self._teller = teller
        self._protocol = protocol
        self._period_s = period_ns / 1e9
        self._due_ns = 0
        self._said = ""

    def __call__(self, parent: Parent) -> None:
        """Look at the parent's view of control."""
        now = time.monotonic_ns()
        if now < self._due_ns:
            return
        self._due_ns = now + LINE_PERIOD_NS
        mode = parent.status.mode
        line = mode.name.lower()
        if mode is Mode.POLICY:
            line = describe(self._protocol, float(parent.status.control["policy_rows"]) * self._period_s)
        if line != self._said:
            self._said = line
            self._teller(f"gantry: {line}")


def describe(protocol: BenchProtocol, done_s: float) -> str:
    """What moves at a time since the beginning, and how long the whole still takes."""
    end_s, left_s = 0.0, max(0.0, protocol.seconds - done_s)
    for number, segment in enumerate(protocol.segments, 1):
        end_s += protocol.rest_s + segment.for_s
        if done_s < end_s:
            moves = ", ".join(name.removesuffix("_joint") for name in segment.joints)
            return f"{number}/{len(protocol.segments)} {segment.signal} {moves}; {left_s:.0f} s left"
    return "at rest"
