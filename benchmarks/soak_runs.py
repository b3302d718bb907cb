"""A long walk in lock-step and a long walk in real time, watched from beside."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import numpy as np

from benchmarks.memory import Series
from onboard.analysis.lock_step_sources import lock_step_sources
from onboard.cli.run_options import run_config
from onboard.cli.sim_process import SimProcess
from onboard.configs.events import Mode, names
from onboard.configs.script import ScriptConfig, Step
from onboard.configs.sim import load_sim
from onboard.logging.direct import DirectRecorder
from onboard.logging.rollout import Rollout
from onboard.runtime.assembly import build_loop, make_plan, record_type, run_info
from onboard.runtime.console import Console
from onboard.runtime.dds import DdsDomain
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.operator_input import LocalPort
from onboard.runtime.script import Script
from onboard.runtime.shm import Shared, default_folder
from onboard.runtime.watch import NoWatch
from onboard.sim.robot import SimRobot
from onboard.sim.sim_link import LockStepClock, SimLink
from tests.runtime.real_run import PATIENCE_S, RealRun, Tap

POLICY = "holosoma_loco_ppo"
EXPIRY_MS = 50.0
SAMPLES = 1000
ROUND = (((0.5, 0.0, 0.0), 20.0), ((0.3, 0.0, 0.4), 15.0), ((0.0, 0.2, 0.0), 10.0), ((0.0, 0.0, 0.0), 15.0))
"""Velocities (m/s, m/s, rad/s) and for how many seconds: forward, a curve, sideways, standing."""
CHILDREN = {
    "control": "onboard.runtime.control",
    "gateway": "onboard.runtime.gateway",
    "recorder": "onboard.runtime.recording",
}
INTERRUPTED = "interrupted, and judged as far as it went"
Say = Callable[[str], None]


class Interrupt:
    """SIGINT ends a walk early; what was seen until then is judged all the same."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Take the signal."""
        self.asked = True

    @contextmanager
    def listening(self) -> Iterator["Interrupt"]:
        """In charge of the signal for the length of the context."""
        before = signal.signal(signal.SIGINT, self)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)


def course(seconds: float) -> ScriptConfig:
    """Start, and walk the round again and again for so long."""
    steps = [Step(press="start", until="ramp"), Step(until="hold"), Step(press="go", until="policy")]
    left = seconds
    while left > 0.0:
        for velocity, for_s in ROUND:
            steps.append(Step(velocity=velocity, for_s=min(for_s, max(left, 0.0))))
            left -= for_s
    return ScriptConfig(tuple(steps))


def lock_step(seconds: float, say: Say) -> tuple[dict[str, Series], dict[str, Any]]:
    """Walk in this process on simulated time, with a journal; its memory, and what the rollout says."""
    plan = make_plan(run_config(policy=POLICY, gantry=True))
    policies = plan.policies()
    robot = SimRobot(load_sim("g1", ["builtin.active=false"]))
    robot.reset(policies[0].start_pose)
    robot.physics.gantry.attach(float(robot.physics.truth().position_m[2]))
    link = SimLink(robot, plan.gateway(EXPIRY_MS))
    port, console = LocalPort(link.operator), Console(Script(course(seconds)))
    series = Series(os.getpid())
    with tempfile.TemporaryDirectory() as folder, Interrupt().listening() as interrupt:
        recorder = DirectRecorder(
            Path(folder), run_info(plan, policies), record_type(policies), lambda: int(link.core.state)
        )
        loop = build_loop(
            plan,
            policies,
            link=link,
            clock=LockStepClock(link),
            port=port,
            watch=NoWatch(),
            sink=recorder,
            sources=lock_step_sources(link, plan.providers),
        )
        link.open()
        say(
            f"lock-step: {seconds:g} s to walk"
        )  # before the first sample: a terminal's first line takes memory
        every = max(1, round(seconds * 50 / SAMPLES))
        ticks, fallen_s, begin = 0, None, time.monotonic()
        while not loop.finished:
            loop.tick(loop.clock.wait())
            ticks += 1
            mode = Mode(int(loop.recorder.row["mode"]))
            if interrupt.asked:
                console.end = INTERRUPTED
                port.request("stop_request")
            else:
                console.look(port, link.now_ns, mode)
            if mode is Mode.POLICY and robot.physics.gantry.attached:
                robot.physics.gantry.release()
            if ticks % every == 0:
                series.sample(ticks / 50)
            if ticks % (every * SAMPLES // 20) == 0:
                say(f"lock-step: {ticks / 50:.0f} s walked in {time.monotonic() - begin:.0f} s")
            if fallen_s is None and console.failed:
                fallen_s = ticks / 50
        took_s = time.monotonic() - begin
        account = check_rows(recorder.finish(console.end), ticks)
    return {"lock-step": series}, {
        **account,
        "seconds": ticks / 50,
        "speedup": round(ticks / 50 / took_s, 1),
        "end": console.end,
        "events": names(loop.recorder.events_seen),
        "walked_through": fallen_s is None,
    }


def real_time(seconds: float, say: Say) -> tuple[dict[str, Series], dict[str, Any]]:
    """A whole run on DDS beside the simulator; memory of every process, and what the rollout says."""
    with tempfile.TemporaryDirectory() as name, free_domain_id() as domain, DdsDomain(domain, "lo") as dds:
        folder = Path(name)
        hanging = ["--domain", str(domain), "--gantry", "--start-pose", "crouch"]
        hanging += ["--set", "gantry.height_m=0"]
        with SimProcess(hanging, folder / "sim.json") as sim:
            script = msgspec.yaml.encode(course(seconds)).decode()
            run = RealRun(folder, script, sim, Tap(dds), "--lowstate")
            try:
                with Interrupt().listening() as interrupt:
                    return watch(run, sim, seconds, say, interrupt)
            finally:
                run.close()


def watch(
    run: RealRun, sim: SimProcess, seconds: float, say: Say, interrupt: Interrupt
) -> tuple[dict[str, Series], dict[str, Any]]:
    """Follow a run to its end: memory of every process, and what its rollout says."""
    run.until_mode(Mode.POLICY)
    sim.tell("gantry release")
    mapping = next(default_folder().glob(f"onboard-{run.pid}-*.shm"))
    shared = Shared.open(mapping, read_only=True)
    pids = {"parent": run.pid, **{name: run.child(module) for name, module in CHILDREN.items()}}
    series = {name: Series(pid) for name, pid in {**pids, "simulator": sim.pid}.items()}
    begin, told = time.monotonic(), 0.0
    while run.running and run.mode is Mode.POLICY:
        now = time.monotonic() - begin
        if interrupt.asked:
            run.signal(signal.SIGINT)
            break
        for each in series.values():
            each.sample(now)
        if now - told > max(10.0, seconds / 20):
            told = now
            say(f"real time: {now:.0f} s walked")
        time.sleep(max(0.25, seconds / SAMPLES))
    stopped_ns = time.monotonic_ns()
    code, result = run.end(PATIENCE_S + seconds)
    handed_over = shared["record"].head
    shared.close()
    if result.get("rollout") is None:
        raise RuntimeError(f"the run left no rollout: {run.errors()}")
    account = check_rows(Path(result["rollout"]), handed_over)
    return series, {
        **account,
        "seconds": round(time.monotonic() - begin, 1),
        "end": result["end"],
        "exit_code": code,
        "events": result["events"],
        "skipped_ticks": result["skipped_ticks"],
        "stopped_ns": stopped_ns,
        "walked_through": code == 0 and result["end"] in ("the script is over", "SIGINT"),
    }


def check_rows(path: Path, handed_over: int) -> dict[str, Any]:
    """Rows of a rollout against what control handed over; `whole` when not one is missing."""
    with Rollout(path) as rollout:
        tick, skipped = rollout.column("tick").astype(np.int64), rollout.column("skipped_ticks").astype(int)
        unexplained = int((np.diff(tick) != 1 + np.diff(skipped)).sum())
        lost = int(rollout.attributes["rows_lost"])
        complete = rollout.completeness == "complete"
    whole = complete and not lost and not unexplained and len(tick) == handed_over
    return {
        "rows": len(tick),
        "handed_over": handed_over,
        "lost": lost,
        "unexplained_gaps": unexplained,
        "whole": whole,
    }
