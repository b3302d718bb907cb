"""The parent of one run: starts gateway, recorder and control, watches them, and ends them in order.

    start     gateway (listens for other commanders), recorder, control
    run       every 5 ms: heartbeat, keys or script into the operator's port, look at everybody
    gateway dead or silent     kill it for certain, then damp through the standby writer
    control hung               kill it; the gateway has damped when the last target expired
    control dead               press damp for the gateway at once; end the run
    recorder dead or hung      a new one takes over from the ring
    end       control stops in order, the gateway's damping ends, the recorder closes and converts

Nothing here may block for long: the gateway damps when the parent's heartbeat is 200 ms old.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

import msgspec
import numpy as np

from onboard.configs.errors import LinkError, OnboardError
from onboard.configs.events import Mode, names
from onboard.logging.layout import SafetyFlag
from onboard.runtime import realtime
from onboard.runtime.assembly import Plan
from onboard.runtime.children import GONE_S, Child
from onboard.runtime.console import Console
from onboard.runtime.dds import DdsDomain
from onboard.runtime.gateway_core import GatewayState, Reason
from onboard.runtime.ports import CONTROL, GATEWAY, OPERATOR, RECORDER
from onboard.runtime.shm import Shared
from onboard.runtime.standby import Standby

MS = 1_000_000
CONTROL_MODULE = "onboard.runtime.control"
PERIOD_S = 0.005
START_S = 20.0
"""How long a child may take to get ready; importing on a slow machine is most of it."""
STOP_S = 15.0
"""Settle 3 s, hold 1 s, damp 1 s, and room."""
CONVERT_S = 120.0
"""Without a sign of life for so long while it closes and converts, the recorder is given up."""
CONVERT_SAID_S = 3.0
"""When that takes longer the operator is told."""
CONTROL_HUNG_S = 1.0
"""Without a tick for so long control is killed; the gateway has damped long before."""
RECORDER_HUNG_S = 10.0
"""Without a sign of life for so long the recorder is replaced; control's ring holds 30 s of rows."""
RECORDER_RESTARTS = 4
GATEWAY_LOST_MS_REALTIME = 50
GATEWAY_LOST_MS_ORDINARY = 100
GATEWAY_CONFIRM_MS_REALTIME = 10
GATEWAY_CONFIRM_MS_ORDINARY = 20
"""How long the gateway must stay silent beyond its limit before it is killed."""
KILLED_S = 0.003
"""From its SIGKILL to the standby's first frame: what the gateway was in the midst of sending is out."""


def gateway_arguments(plan: Plan) -> list[str]:
    """Command line of the gateway, less what it shares with control."""
    limits = plan.safety.gateway
    values = {
        "--robot": plan.config.robot,
        "--domain": plan.config.domain,
        "--interface": plan.config.interface,
        "--damping-kd": ",".join(f"{kd:g}" for kd in plan.damping_kd),
        "--tilt-rad": limits.tilt_rad,
        "--range-margin-rad": limits.range_margin_rad,
        "--kp-max": limits.kp_max,
        "--kd-max": limits.kd_max,
    }
    return [f"{name}={value}" for name, value in values.items()]


class Statuses:
    """The newest status of every child."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.control = np.zeros((), CONTROL)
        self.gateway = np.zeros((), GATEWAY)
        self.recorder = np.zeros((), RECORDER)

    def read(self) -> None:
        """Bring them up to date."""
        self._shared["control"].latest(self.control)
        self._shared["gateway"].latest(self.gateway)
        self._shared["recorder"].latest(self.recorder)

    @property
    def mode(self) -> Mode:
        """Control's mode."""
        return Mode(int(self.control["mode"]))


class Parent:
    """One run's processes. Use it as a context manager; `run` returns when everything has ended.

    Args:
        plan: the run.
        shared: the mapping, made by the caller, who also closes it.
        dds: for the standby writer.
        console: keys, script and signals.
        recorder_arguments: of the recorder's module.
        say: takes one line for the operator; must not block.

    Attributes:
        dds: as given.
        status: the newest status of every child.
        started: control was ready; before that nothing was commanded.
        flag: the first safety flag of a tick that was not nominal.
        flag_reason: what control said then.
        gateway_lost: the standby writer has taken over.
        faults: what went wrong with processes, in order.
    """

    def __init__(
        self,
        plan: Plan,
        shared: Shared,
        dds: DdsDomain,
        console: Console,
        recorder_arguments: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        config = plan.config
        self._plan = plan
        self._shared = shared
        self.dds = dds
        self._console = console
        self._recorder_arguments = list(recorder_arguments)
        self._say = say
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._operator = np.zeros((), OPERATOR)
        self._standby = None if config.dry else Standby(dds, plan.robot, plan.damping_kd)
        self._gateway: Child | None = None
        self._control: Child | None = None
        self._recorder: Child | None = None
        self._taken_over_ns = 0
        self._silent_since_ns = 0
        self._control_killed_ns = 0
        self._stop_asked_ns = 0
        self._hung_recorders: list[Child] = []
        self._recorder_restarts = 0
        self._recorder_since_ns = 0
        self.status = Statuses(shared)
        self.started = False
        self.flag = SafetyFlag.NORMAL
        self.flag_reason = ""
        self.faults: list[str] = []
        self.realtime = config.timing.realtime == "auto" and realtime.may_use_fifo()

    def __enter__(self) -> "Parent":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gone = [child for child in self._hung_recorders if child.exit_code is not None]
        for child in (self._control, self._gateway, self._recorder, *gone):
            if child is not None:
                child.close()
        os.close(self._wake)

    @property
    def stopping(self) -> bool:
        """The run was asked to end."""
        return bool(self._operator["stop_request"] or self._operator["damp_request"])

    @property
    def gateway_lost(self) -> bool:
        """The standby writer has taken over."""
        return self._taken_over_ns > 0

    def run(self, before_begin: Callable[["Parent"], None], each_cycle: Callable[["Parent"], None]) -> None:
        """Start, watch, end.

        Args:
            before_begin: called once everybody is ready, before the first command, in a thread; raises
                to refuse.
            each_cycle: called every few milliseconds while control runs, with the parent.

        Raises:
            LinkError: somebody else commands the robot; nothing was sent.
            OnboardError: a child did not start, with its own words, or `before_begin` refused.
        """
        with realtime.parent_rights(self.realtime):
            self._start()
            self._prepare(before_begin)
            self._say_rights()
            self.request("begin")
            self.started = True
            while not self._control_is_gone():
                self._cycle()
                each_cycle(self)
                time.sleep(PERIOD_S)
            self._end()

    def _say_rights(self) -> None:
        """Which real-time rights the system granted, and what follows where it did not."""
        for child, status in (("control", self.status.control), ("gateway", self.status.gateway)):
            self._say(f"{child}: {status['rights'].item().decode(errors='replace') or 'not started'}")
        if not (self.status.control["realtime"] and self.status.gateway["realtime"]):
            self._say("without SCHED_FIFO on both, a target expires after 100 ms instead of 50 ms")

    def _prepare(self, before_begin: Callable[["Parent"], None]) -> None:
        """Let `before_begin` take its time while the heartbeat goes on."""
        refusals: list[BaseException] = []

        def call() -> None:
            try:
                before_begin(self)
            except BaseException as error:  # handed to the main thread, whatever it is
                refusals.append(error)

        thread = threading.Thread(target=call, daemon=True, name="before begin")
        thread.start()
        while thread.is_alive():
            self._console.look_at_signals(self)
            self._beat()
            thread.join(PERIOD_S)
        if refusals:
            raise refusals[0]

    def press(self, action: str) -> None:
        """Press one of the operator's buttons."""
        self._operator[f"{action}s"] += 1

    def switch(self, index: int) -> None:
        """Ask for another policy."""
        self._operator["switch_to"] = index
        self._operator["switches"] += 1

    def request(self, name: str) -> None:
        """Raise one of the operator port's flags."""
        self._operator[name] = 1

    def _start(self) -> None:
        config = self._plan.config
        common = ["--shm", str(self._shared.path), "--wake", str(self._wake)]
        common += ["--realtime"] if self.realtime else []
        if not config.dry:
            arguments = ["-m", "onboard.runtime.gateway", *common, *gateway_arguments(self._plan)]
            self._gateway = Child("gateway", arguments, (self._wake,))
            self._await(self._gateway, "gateway")
            self._refuse_company()
        self._recorder = self._start_recorder()
        self._await(self._recorder, "recorder")
        text = msgspec.json.encode(config).decode()
        fingerprint = ["--fingerprint", self._plan.fingerprint]
        arguments = ["-m", CONTROL_MODULE, *common, "--config", text, *fingerprint]
        self._control = Child("control", arguments, (self._wake,))
        self._await(self._control, "control")

    def _refuse_company(self) -> None:
        heard = int(self.status.gateway["foreign"])
        if heard:
            raise LinkError(
                f"somebody else commands the robot: {heard} messages on rt/lowcmd within 0.2 s; "
                "stop that program before this one"
            )

    def _await(self, child: Child, ring: str) -> None:
        """Wait until a child says that it is ready, or raise with its own words."""
        until = time.monotonic_ns() + int(START_S * 1e9)
        while True:
            self._beat()
            self.status.read()
            if getattr(self.status, ring)["ready"]:
                return
            if child.exit_code is not None:
                raise OnboardError(f"the {child.name} process did not start: {child.complaint()}")
            if time.monotonic_ns() > until:
                raise OnboardError(f"the {child.name} process was not ready within {START_S:g} s")
            time.sleep(PERIOD_S)

    def _cycle(self) -> None:
        now = time.monotonic_ns()
        self.status.read()
        if self.status.control["heartbeat_ns"]:
            self._console.look(self, now, self.status.mode)
        else:
            self._console.look_at_signals(self)  # control has not ticked yet: a press would be lost
        self._note_flag()
        self._watch_gateway(now)
        self._watch_control(now)
        self._watch_recorder(now)
        self._watch_end(now)
        self._beat()

    def _note_flag(self) -> None:
        control = self.status.control
        if self.flag is SafetyFlag.NORMAL and control["safety_flag"]:
            self.flag = SafetyFlag(int(control["safety_flag"]))
            events = ", ".join(names(int(control["events"])))
            reason = control["reason"].item().decode(errors="replace")
            latch = Reason(int(self.status.gateway["reason"]))
            if latch not in (Reason.NONE, Reason.CONTROL):
                events = f"{events}; gateway: {latch.name.lower()}"
            self.flag_reason = f"{reason} ({events})" if events else reason
            self._say(self.flag_reason)

    def _beat(self) -> None:
        self._operator["heartbeat_ns"] = time.monotonic_ns()
        self._shared["operator"].push(self._operator)

    def set_velocity(self, velocity: Sequence[float]) -> None:
        """Take the velocity over from the remote's sticks; m/s, m/s, rad/s."""
        self._operator["velocity"], self._operator["velocity_valid"] = velocity, 1

    def _watch_gateway(self, now: int) -> None:
        """When it is dead or silent, make sure that it is dead, then damp in its place."""
        gateway = self._gateway
        done = int(self.status.gateway["state"]) == GatewayState.DONE
        if gateway is None or self._standby is None or done:
            return
        if not self._taken_over_ns:
            limit = GATEWAY_LOST_MS_REALTIME if self.realtime else GATEWAY_LOST_MS_ORDINARY
            confirm = GATEWAY_CONFIRM_MS_REALTIME if self.realtime else GATEWAY_CONFIRM_MS_ORDINARY
            silent = now - int(self.status.gateway["heartbeat_ns"]) > limit * MS
            # Confirmed: when the machine was held up, the gateway gets its turn before the verdict.
            self._silent_since_ns = (self._silent_since_ns or now) if silent else 0
            hung = silent and now - self._silent_since_ns >= confirm * MS
            ended = gateway.exit_code is not None
            if not (hung or ended):
                return
            gateway.kill(KILLED_S)
            self._taken_over_ns = now
            self.request("gateway_lost")
            self.request("damp_request")
            self._fault("the gateway died" if ended else "the gateway was silent and was killed")
        self._standby.damp(int(self.status.gateway["mode_machine"]))

    def _watch_control(self, now: int) -> None:
        """A control process that no longer ticks is killed, so that the run ends."""
        beat = int(self.status.control["heartbeat_ns"])
        hung = beat and now - beat > CONTROL_HUNG_S * 1e9 and not self.status.control["finished"]
        if hung and not self._control_killed_ns and not self._control_is_gone():
            self._kill_control(now)
            self._fault(f"control hung: no tick for {CONTROL_HUNG_S:g} s; it was killed")

    def _kill_control(self, now: int) -> None:
        """Without waiting for its end: meanwhile the gateway must hear our heartbeat."""
        assert self._control is not None
        self._control.kill(KILLED_S)
        self._control_killed_ns = now

    def _control_is_gone(self) -> bool:
        """It has ended, or was killed and what is left of it hangs in the kernel."""
        if self._control is None or self._control.exit_code is not None:
            return True
        killed_ns = self._control_killed_ns
        return killed_ns > 0 and time.monotonic_ns() - killed_ns > GONE_S * 1e9

    def _watch_recorder(self, now: int) -> None:
        """One that died or hangs is replaced; the successor finds in the ring what is not written yet."""
        recorder = self._recorder
        if recorder is None or self.status.recorder["closed"]:
            return
        if recorder.exit_code is not None:
            self._fault(f"the recorder died: {recorder.complaint()}; a new one takes over")
            recorder.close()
        elif self._recorder_hangs(now):
            recorder.kill(KILLED_S)
            self._hung_recorders.append(recorder)  # stuck in the kernel it may still be there for a while
            self._fault(f"the recorder gave no sign of life for {RECORDER_HUNG_S:g} s; a new one takes over")
        else:
            return
        self._recorder_restarts += 1
        self._recorder = self._start_recorder() if self._recorder_restarts <= RECORDER_RESTARTS else None

    def _recorder_hangs(self, now: int) -> bool:
        """While rows come; what it does at the end, closing and converting, may take its time."""
        if self._operator["recorder_stop"]:
            return False
        alive_ns = max(
            int(self.status.recorder["heartbeat_ns"]) + RECORDER_HUNG_S * 1e9,
            self._recorder_since_ns + START_S * 1e9,
        )
        return now > alive_ns

    def _start_recorder(self) -> Child:
        self._recorder_since_ns = time.monotonic_ns()
        return Child("recorder", self._recorder_arguments)

    def _watch_end(self, now: int) -> None:
        """A control process that does not follow a stop request is killed."""
        if not self.stopping or self._control_is_gone():
            return
        self._stop_asked_ns = self._stop_asked_ns or now
        if now - self._stop_asked_ns > STOP_S * 1e9 and not self._control_killed_ns:
            self._kill_control(now)

    def _end(self) -> None:
        """Control has ended, in order or not: see the others out."""
        self.status.read()
        self._note_flag()
        if not self.status.control["finished"] and self._control is not None:
            if not any(fault.startswith("control") for fault in self.faults):
                self._fault(f"control died: {self._control.complaint()}")
            self.press("damp")
        self.request("control_done")
        self._operator["end_reason"] = self.end_reason().encode()[:160]
        self._cycle_until(self._quiet, 10.0)
        self.request("recorder_stop")
        self._see_recorder_out()

    def _see_recorder_out(self) -> None:
        """Until it has closed and converted, however long that takes, as long as it gets on."""
        asked_ns = alive_ns = time.monotonic_ns()
        said = False
        while not self._recorded():
            now = time.monotonic_ns()
            alive_ns = max(alive_ns, int(self.status.recorder["heartbeat_ns"]))
            if now - alive_ns > CONVERT_S * 1e9:
                self._give_up_recorder()
                return
            if not said and now - asked_ns > CONVERT_SAID_S * 1e9:
                said = True
                self._say("the rollout is being written")
            self._cycle()
            time.sleep(PERIOD_S)

    def _give_up_recorder(self) -> None:
        """One that does not get on is killed; even that may have to wait for its disk."""
        assert self._recorder is not None
        self._recorder.kill(GONE_S)
        stuck = ", but a disk that gives no answer holds it" if self._recorder.exit_code is None else ""
        self._fault(f"the recorder got no further with the rollout for {CONVERT_S:g} s; it was killed{stuck}")

    def _cycle_until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        until = time.monotonic_ns() + int(timeout_s * 1e9)
        while not condition() and time.monotonic_ns() < until:
            self._cycle()
            time.sleep(PERIOD_S)

    def _quiet(self) -> bool:
        """The damping has lasted its second, whoever published it."""
        if self._taken_over_ns:
            return time.monotonic_ns() - self._taken_over_ns > 1000 * MS
        return self._gateway is None or self._gateway.exit_code is not None

    def _recorded(self) -> bool:
        return self._recorder is None or (
            self._recorder.exit_code is not None and bool(self.status.recorder["closed"])
        )

    def end_reason(self) -> str:
        """Why the run ended, in one line."""
        control = self.status.control["reason"].item().decode(errors="replace")
        fault = self.faults[-1] if self.faults else ""
        return fault or self.flag_reason or self._console.end or control

    def _fault(self, text: str) -> None:
        self.faults.append(text)
        self._say(text)
