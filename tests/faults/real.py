"""Faults injected into a whole run on real DDS: its processes, its disk, its clock, its company."""

import contextlib
import signal
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from benchmarks.gateway import first_press_ns
from benchmarks.reactions import react
from onboard.configs.events import Mode
from onboard.configs.faults import Fault
from onboard.logging.rollout import Rollout
from onboard.runtime import idl
from onboard.runtime.clock import wall_clock_ns
from tests.faults.lock_step import Observed
from tests.faults.stages import REFUSED, STAGES, Stage
from tests.runtime.real_run import RAMP, WALK, RealRun, real_run

WALK_S = 0.5
LOOK_ON_S = 1.0
REACTION_S = 0.3
ATTEMPTS = 3
MARGIN_S = 2.0
"""How long after its time limit a warning is still waited for."""


class NeverWalkedError(AssertionError):
    """The run ended before the fault."""


def observe(name: str, fault: Fault, folder: Path) -> Observed:
    """Inject a fault into a robot that walks, or before the run where it must be refused.

    Where the robot never came to walk (on a machine that is too busy for 50 Hz a run ends early), the run is
    tried again, and the log says so: the fault was not to blame.
    """
    if fault.tier == "refuse":
        return observe_refusal(name, folder)
    for attempt in range(1, ATTEMPTS):
        place = folder / str(attempt)
        place.mkdir()
        with contextlib.suppress(NeverWalkedError):
            seen = observe_walk(name, fault, place)
            return seen if attempt == 1 else seen._replace(log=f"{seen.log}; attempt {attempt}")
    return observe_walk(name, fault, folder)


def observe_walk(name: str, fault: Fault, folder: Path) -> Observed:
    """Walk, inject, look on to the end of the run."""
    with ExitStack() as stack:
        stage = stack.enter_context(STAGES[name](folder))
        run = stack.enter_context(_run(folder, WALK, stage))
        states = run.tap.dds.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=1024)
        _walk(run)
        states.take_all()
        ours = {frame.writer for frame in run.tap.listen()}
        fault_ns = wall_clock_ns()
        stage.inject(run)
        fault_ns = max(fault_ns, run.signalled_ns)  # to find the process takes a while on a busy machine
        tier, reaction_ms = _FOLLOW[fault.tier](run, fault, fault_ns)
        stage.ease(run)
        if fault.tier in ("none", "warn"):
            run.signal(signal.SIGINT)
        pressed_ns = first_press_ns(states) if name == "remote_stop" else None
        code, result = run.end()
        if fault.tier == "damp":
            since_ns = fault_ns if stage.since_fault else pressed_ns
            frames = [frame for frame in run.tap.frames if frame.writer in ours or not stage.foreign]
            reaction = react(frames, fault_ns, since_ns)
            clean = reaction is not None and not reaction.sent_after
            tier, reaction_ms = ("damp", reaction.ms) if clean and reaction else ("none", None)
        if stage.measured_ms is not None:
            reaction_ms = stage.measured_ms()
        return Observed(tier, reaction_ms, _words(result, run.errors()), code)


def observe_refusal(name: str, folder: Path) -> Observed:
    """A run that must not start: what it says, and whether it said anything to the robot."""
    with ExitStack() as stack:
        stage = stack.enter_context(REFUSED[name](folder))
        run = stack.enter_context(_run(folder, RAMP, stage))
        stage.inject(run)
        code, _ = run.end()
        most = 1 if stage.foreign else 0  # writers heard
        silent = len({frame.writer for frame in run.tap.listen()}) <= most
        lines = run.errors().strip().splitlines() or [""]
        return Observed("refuse" if silent and code else "none", None, lines[-1], code)


def _walk(run: RealRun) -> None:
    try:
        run.until_mode(Mode.POLICY)
        until = time.monotonic() + WALK_S
        run.until(lambda: time.monotonic() > until)
    except AssertionError as error:
        raise NeverWalkedError(str(error)) from error


def _run(folder: Path, script: str, stage: Stage) -> AbstractContextManager[RealRun]:
    return real_run(
        folder,
        script,
        *stage.options,
        program=stage.program,
        environment=stage.run_environment,
        sim_environment=stage.sim_environment,
        stdin=stage.stdin,
    )


def _words(result: dict[str, Any], errors: str) -> str:
    """What the run says at its end, and whether its rollout is whole."""
    words = [str(result.get("end", "")), *result.get("faults", []), *result.get("events", [])]
    if "onboard log recover" in errors:
        words.append("onboard log recover")
    if result.get("rollout"):
        with Rollout(Path(result["rollout"])) as rollout:
            number, received = rollout.column("number"), rollout.column("recv_ns")
            whole = number.tolist() == list(range(1, len(number) + 1))
            words += ["every row"] if whole and (received[1:] >= received[:-1]).all() else []
    return " ".join(words)


def _follow_damp(_run: RealRun, _fault: Fault, _fault_ns: int) -> tuple[str, float | None]:
    time.sleep(REACTION_S)
    return "damp", None


def _follow_settle(run: RealRun, _fault: Fault, fault_ns: int) -> tuple[str, float | None]:
    """The velocity command goes to zero, or the policy is left for hold."""
    run.until(lambda: run.mode is not Mode.POLICY or run.velocity == (0.0, 0.0, 0.0))
    reaction_ms = (wall_clock_ns() - fault_ns) / 1e6
    run.until(lambda: run.mode is not Mode.POLICY)
    return ("settle" if run.mode is Mode.HOLD else "damp"), reaction_ms


def _follow_none(run: RealRun, _fault: Fault, _fault_ns: int) -> tuple[str, float | None]:
    """The robot walks on."""
    until = time.monotonic() + LOOK_ON_S
    run.until(lambda: time.monotonic() > until or run.mode is not Mode.POLICY)
    return ("none" if run.mode is Mode.POLICY else "damp"), None


def _follow_warn(run: RealRun, fault: Fault, fault_ns: int) -> tuple[str, float | None]:
    """The event is raised and the robot walks on."""
    until = time.monotonic() + (fault.limit_ms or 0.0) / 1e3 + MARGIN_S
    run.until(lambda: run.mode is not Mode.POLICY or fault.log in run.events or time.monotonic() > until)
    if run.mode is not Mode.POLICY:
        return "damp", None
    return ("warn", (wall_clock_ns() - fault_ns) / 1e6) if fault.log in run.events else ("none", None)


_FOLLOW = {"warn": _follow_warn, "damp": _follow_damp, "settle": _follow_settle, "none": _follow_none}
