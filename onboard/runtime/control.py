"""The control process: state in, target out, 50 times a second.

    python -m onboard.runtime.control --shm FILE --config JSON --fingerprint HEX --wake FD [--realtime]

It never publishes, never prints while the loop runs, never opens a file there, and never waits for
another process.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
import numpy as np

from onboard.configs.errors import SafetyRefusalError
from onboard.configs.robot import RobotConfig
from onboard.configs.run import RunConfig
from onboard.policies.estimators.provider import FROM_RECORDER
from onboard.runtime import realtime
from onboard.runtime.assembly import Plan, build_loop, make_plan
from onboard.runtime.children import child_main
from onboard.runtime.clock import GridClock
from onboard.runtime.dds import DdsDomain
from onboard.runtime.dds_link import DdsLink
from onboard.runtime.loop import ControlLoop
from onboard.runtime.ports import CONTROL, OPERATOR, open_shared
from onboard.runtime.rehearsal import LastMoment, Rehearsal
from onboard.runtime.shm import Shared
from onboard.runtime.watch import SharedWatch


class GatewaySlot:
    """Where commands go: into the slot, then the gateway is woken."""

    def __init__(self, shared: Shared, wake: int) -> None:
        self._ring = shared["command"]
        self._wake = wake

    def __call__(self, command: np.ndarray) -> None:
        """Hand one `COMMAND` over."""
        self._ring.push(command)
        os.eventfd_write(self._wake, 1)


class StatusWriter:
    """Publishes control's status after every tick."""

    def __init__(self, shared: Shared, rights: realtime.RealtimeReport) -> None:
        self._ring = shared["control"]
        self._row = np.zeros((), CONTROL)
        self._row["realtime"], self._row["rights"] = rights.fifo, rights.text.encode()
        self._row["ready"] = 1

    def announce(self) -> None:
        """Tell the parent that everything is loaded."""
        self._ring.push(self._row)

    def __call__(self, loop: ControlLoop) -> None:
        """Tell the others about the tick that ended."""
        row, recorder, status = self._row, loop.recorder, loop.machine.status
        tick = recorder.row
        row["heartbeat_ns"] = loop.clock.now_ns()
        for name in ("tick", "mode", "tier", "safety_flag", "state_age_s", "skipped_ticks"):
            row[name] = tick[name]
        row["events"], row["events_seen"] = tick["safety_events"], recorder.events_seen
        row["policy_rows"], row["session"] = recorder.policy_rows, status.session
        row["skipped_now"] = recorder.skipped_now
        row["tick_us"], row["wake_late_us"] = recorder.stages.tick_us, loop.clock.late_ns / 1000
        row["velocity"] = loop.pilot.command.velocity
        row["finished"] = loop.finished
        row["reason"] = status.reason.value.encode()
        self._ring.push(row)


def main(argv: list[str] | None = None) -> int:
    """Entry of the process."""
    parser = argparse.ArgumentParser(prog="onboard.runtime.control", description=__doc__)
    parser.add_argument("--shm", required=True)
    parser.add_argument("--config", required=True, help="RunConfig as JSON")
    parser.add_argument("--fingerprint", required=True, help="of the plan as the parent read it")
    parser.add_argument("--wake", type=int, required=True, help="eventfd that wakes the gateway")
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args(argv)
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP):
        signal.signal(ignored, signal.SIG_IGN)  # the parent decides
    config = msgspec.json.decode(options.config, type=RunConfig)
    shared = open_shared(Path(options.shm))
    with DdsDomain(config.domain, config.interface) as dds:
        _fly(config, shared, dds, options)
    return 0


def _fly(config: RunConfig, shared: Shared, dds: DdsDomain, options: argparse.Namespace) -> None:
    plan = make_plan(config)
    check_fingerprint(plan, options.fingerprint)
    link = DdsLink(dds, None if config.dry else GatewaySlot(shared, options.wake))
    clock = GridClock(config.period_ns, int(config.timing.spin_us * 1000))
    loop = build_loop(
        plan,
        plan.policies(),
        link=link,
        clock=clock,
        port=shared["operator"],
        watch=SharedWatch(shared, plan.safety, has_gateway=not config.dry),
        sink=shared["record"],
        sources=[FROM_RECORDER[name](shared["recorder"]) for name in plan.at_hand],
    )
    link.open()
    check_machine(plan.robot, link.latest().mode_machine)
    watch = SharedWatch(shared, plan.safety, has_gateway=not config.dry)
    rehearse = Rehearsal(loop, plan, shared["operator"], watch, link.warm)
    for _ in range(20):
        rehearse()
    realtime.freeze_heap()
    rights = realtime.NOT_ASKED
    if options.realtime:
        rights = realtime.setup_realtime(realtime.PRIORITY_CONTROL, realtime.spare_cpu(1))
    prewarm = LastMoment(clock, rehearse)
    report = StatusWriter(shared, rights)
    report.announce()
    if not _may_begin(shared):
        return

    def after_tick(loop: ControlLoop) -> None:
        report(loop)
        if config.timing.prewarm:
            prewarm()

    try:
        loop.run(after_tick)
    finally:
        link.close()


def check_fingerprint(plan: Plan, expected: str) -> None:
    """Make sure that what is flown is what the parent checked and wrote into the rollout.

    Raises:
        SafetyRefusalError: a file changed between the two readings.
    """
    if plan.fingerprint != expected:
        raise SafetyRefusalError(
            "a file of this run (robot, safety table, policy or residual) was changed while the run was "
            "starting, so it is not what was checked; start it again"
        )


def check_machine(robot: RobotConfig, reported: int) -> None:
    """Make sure that the description is of the robot that answers.

    Raises:
        SafetyRefusalError: the robot reports a type that the description is not for.
    """
    if reported not in robot.mode_machine:
        known = ", ".join(str(number) for number in robot.mode_machine)
        raise SafetyRefusalError(
            f"the robot reports mode_machine {reported}, the description {robot.name} is for {known}; "
            "give the description of this robot with --robot (a shipped name or your own YAML file)"
        )


def _may_begin(shared: Shared) -> bool:
    """Wait until the parent has the motors; False when the parent is gone."""
    parent, port = os.getppid(), np.zeros((), OPERATOR)
    while os.getppid() == parent:
        shared["operator"].latest(port)
        if port["begin"]:
            return True
        time.sleep(0.002)
    return False


if __name__ == "__main__":
    sys.exit(child_main(main))
