"""Faults injected into a whole run on real DDS: its processes are killed, stopped or signalled."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.gateway import CONTROL, FAULTY, FAULTY_RUN, GATEWAY, first_press_ns
from benchmarks.reactions import react
from onboard.configs.events import Mode
from onboard.configs.faults import Fault
from onboard.runtime import idl
from onboard.runtime.clock import wall_clock_ns
from tests.faults.lock_step import Observed
from tests.runtime.real_run import WALK, RealRun, real_run

RECORDER = "onboard.runtime.recording"
WALK_S = 0.5
BETWEEN_INTERRUPTS_S = 0.05
LOOK_ON_S = 1.0
HELD_UP_S = 0.8


def to(module: str, number: signal.Signals) -> Callable[[RealRun], None]:
    """An injection that sends one signal; "" is the parent."""
    return lambda run: run.signal(number, module)


def interrupt_twice(run: RealRun) -> None:
    """SIGINT, a little later the next."""
    run.signal(signal.SIGINT)
    time.sleep(BETWEEN_INTERRUPTS_S)
    run.signal(signal.SIGINT)


def stop_by_remote_alone(run: RealRun) -> None:
    """Control can't hear the button."""
    os.kill(run.child(CONTROL), signal.SIGSTOP)
    run.sim.tell("press damp 0.2")


def hold_up_the_parent(run: RealRun) -> None:
    """The parent is stopped, and goes on when all is over."""
    run.signal(signal.SIGSTOP)
    threading.Timer(HELD_UP_S, run.signal, [signal.SIGCONT]).start()


INJECT: dict[str, Callable[[RealRun], None]] = {
    "control_kill": to(CONTROL, signal.SIGKILL),
    "control_stop": to(CONTROL, signal.SIGSTOP),
    "control_loop": to(FAULTY, signal.SIGUSR1),
    "control_gil": to(FAULTY, signal.SIGUSR2),
    "gateway_kill": to(GATEWAY, signal.SIGKILL),
    "gateway_stop": to(GATEWAY, signal.SIGSTOP),
    "parent_kill": to("", signal.SIGKILL),
    "recorder_kill": to(RECORDER, signal.SIGKILL),
    "recorder_stop": to(RECORDER, signal.SIGSTOP),
    "parent_stop": hold_up_the_parent,
    "shared_memory_unlinked": lambda run: run.mapping.unlink(),
    "remote_stop": stop_by_remote_alone,
    "sigint": to("", signal.SIGINT),
    "sigint_twice": interrupt_twice,
    "sigterm": to("", signal.SIGTERM),
    "sighup": to("", signal.SIGHUP),
}
FROM_THE_FAULT = {"parent_kill", "parent_stop", "sigint_twice", "sighup"}
"""Targets go on after these, so the time is counted from the fault, not from the last target."""


def observe(name: str, fault: Fault, folder: Path) -> Observed:
    """Walk, inject, look on to the end of the run."""
    program = FAULTY_RUN if name in ("control_loop", "control_gil") else "onboard"
    with real_run(folder, WALK, program=program) as run:
        states = run.tap.dds.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=1024)
        run.until_mode(Mode.POLICY)
        until = time.monotonic() + WALK_S
        run.until(lambda: time.monotonic() > until)
        states.take_all()
        fault_ns = wall_clock_ns()
        INJECT[name](run)
        tier, reaction_ms = _FOLLOW[fault.tier](run, fault, fault_ns)
        pressed_ns = first_press_ns(states) if name == "remote_stop" else None
        code, result = run.end()
        if tier == "damp":
            since_ns = fault_ns if name in FROM_THE_FAULT else pressed_ns
            reaction = react(run.tap.frames, fault_ns, since_ns)
            clean = reaction is not None and not reaction.sent_after
            tier, reaction_ms = ("damp", reaction.ms) if clean and reaction else ("none", None)
        words = [str(result.get("end", "")), *result.get("faults", []), *result.get("events", [])]
        return Observed(tier, reaction_ms, " ".join(words), code)


def _follow_damp(run: RealRun, _fault: Fault, _fault_ns: int) -> tuple[str, float | None]:
    time.sleep(0.3)
    return "damp", None


def _follow_settle(run: RealRun, _fault: Fault, fault_ns: int) -> tuple[str, float | None]:
    """The velocity command goes to zero, or the policy is left for hold."""
    run.until(lambda: run.mode is not Mode.POLICY or run.velocity == (0.0, 0.0, 0.0))
    reaction_ms = (wall_clock_ns() - fault_ns) / 1e6
    run.until(lambda: run.mode is not Mode.POLICY)
    return ("settle" if run.mode is Mode.HOLD else "damp"), reaction_ms


def _follow_none(run: RealRun, _fault: Fault, _fault_ns: int) -> tuple[str, float | None]:
    """The robot walks on; then the operator ends the run."""
    until = time.monotonic() + LOOK_ON_S
    run.until(lambda: time.monotonic() > until or run.mode is not Mode.POLICY)
    tier = "none" if run.mode is Mode.POLICY else "damp"
    run.signal(signal.SIGINT)
    return tier, None


def _follow_warn(run: RealRun, fault: Fault, fault_ns: int) -> tuple[str, float | None]:
    """The event is raised and the robot walks on; then what was stopped goes on, and the run is ended."""
    run.until(lambda: run.mode is not Mode.POLICY or fault.log in run.events)
    reaction_ms = (wall_clock_ns() - fault_ns) / 1e6
    tier = "warn" if run.mode is Mode.POLICY else "damp"
    run.signal(signal.SIGCONT, RECORDER)
    run.signal(signal.SIGINT)
    return tier, reaction_ms


_FOLLOW = {"warn": _follow_warn, "damp": _follow_damp, "settle": _follow_settle, "none": _follow_none}
