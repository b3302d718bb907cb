"""`onboard try`: a policy in the in-process simulator, in lock-step, faster than real time."""

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console as Terminal
from rich.progress import Progress
from rich.table import Table

from onboard.analysis.trial_metrics import Moment, TrialMetrics
from onboard.cli.options import parse, say, write_json
from onboard.cli.run_options import Policy as PolicyName
from onboard.cli.run_options import Repeated, run_config
from onboard.configs.events import Mode, Tier, names
from onboard.configs.script import ScriptConfig, Step, load_script
from onboard.configs.sim import load_sim
from onboard.runtime.assembly import Plan, build_loop, make_plan
from onboard.runtime.console import Console
from onboard.runtime.gateway import EXPIRY_MS_REALTIME
from onboard.runtime.loop import ControlLoop
from onboard.runtime.operator_input import LocalPort
from onboard.runtime.script import Script
from onboard.runtime.watch import NoWatch
from onboard.sim.robot import SimRobot
from onboard.sim.sim_link import LockStepClock, SimLink

EPILOG = """examples:
  onboard try holosoma_loco_ppo                     stand 5 s, walk 10 s at 0.5 m/s, stand 5 s
  onboard try my_policy/ --vx 0.3 --json out.json
  onboard try holosoma_loco_ppo --sim gap.command_latency_s='{"*": 0.02}'"""

WINDOW_S = (7.0, 15.0)
"""Stretch of the walk over which its speed is judged: 2 s after the start to the end."""


@dataclass(frozen=True)
class Args:
    """Run a policy in lock-step with the simulator; no DDS, no wall clock."""

    policy: PolicyName
    """Folder, ONNX file, or shipped name."""
    vx: float = 0.5
    """Forward speed of the walk, m/s."""
    script: str = ""
    """Operator script to play instead of the standard walk: shipped name or YAML path."""
    robot: str = "g1_29dof"
    """Robot description."""
    preset: str = ""
    """Preset for policies that do not say enough themselves."""
    set: Repeated = ()
    """key=value of the contract, dotted keys; may be given several times."""
    safety: Repeated = ()
    """key=value of the safety table."""
    sim: Repeated = ()
    """key=value of the simulator's configuration."""
    json: str = ""
    """Write the figures to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when the policy stayed up, nothing tripped and it followed the command."""
    args = parse(Args, "try", EPILOG, argv)
    config = run_config(
        policy=args.policy,
        robot=args.robot,
        preset=args.preset,
        policy_overrides=args.set,
        safety_overrides=args.safety,
        gantry=True,
    )
    plan = make_plan(config)
    script = load_script(args.script) if args.script else standard_walk(args.vx)
    trial = Trial(plan, script, args.sim)
    with Progress(console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task(f"try {plan.bundle.name}", total=sum(step.for_s for step in script.steps))
        trial.run(lambda seconds: progress.update(task, completed=seconds))
    result = trial.result(judge_speed=not args.script)
    _show(plan, result)
    if args.json:
        write_json(args.json, result)
    return 0 if result["ok"] else 1


def standard_walk(vx: float) -> ScriptConfig:
    """Stand 5 s, walk 10 s, stand 5 s."""
    return ScriptConfig(
        (
            Step(press="start", until="ramp"),
            Step(until="hold"),
            Step(press="go", velocity=(0.0, 0.0, 0.0), until="policy", for_s=5.0),
            Step(velocity=(vx, 0.0, 0.0), for_s=10.0),
            Step(velocity=(0.0, 0.0, 0.0), for_s=5.0),
        )
    )


class Trial:
    """One policy in one simulator, from the start pose to the end of a script."""

    def __init__(self, plan: Plan, script: ScriptConfig, sim_overrides: tuple[str, ...] = ()) -> None:
        self.plan = plan
        policies = plan.policies()
        policy = policies[0]
        sim_config = load_sim("g1", ["builtin.active=false", f"robot={plan.config.robot}", *sim_overrides])
        self.robot = SimRobot(sim_config)
        self.robot.reset(policy.start_pose)
        self.robot.physics.gantry.attach(float(self.robot.physics.truth().position_m[2]))
        period_ns = plan.config.period_ns
        self.link = SimLink(self.robot, plan.gateway(EXPIRY_MS_REALTIME), period_ns)
        self.port = LocalPort(self.link.operator)
        self.console = Console(Script(script))
        self.loop = build_loop(
            plan,
            policies,
            link=self.link,
            clock=LockStepClock(self.link, period_ns),
            port=self.port,
            watch=NoWatch(),
            sink=_Nowhere(),
        )
        self.metrics = TrialMetrics(WINDOW_S)
        self._policy_s = 0.0
        self._wall_s = 0.0
        self._simulated_s = 0.0

    def run(self, progress: Any = lambda seconds: None) -> None:  # noqa: ANN401 - a callable of seconds
        """To the end of the script and of the stop sequence."""
        begin, simulated = time.perf_counter(), self.robot.physics.time_s
        self.link.open()
        self.loop.run(lambda loop: self._after(loop, progress))
        self._wall_s = time.perf_counter() - begin
        self._simulated_s = self.robot.physics.time_s - simulated

    def result(self, *, judge_speed: bool) -> dict[str, Any]:
        """The figures, see `TrialMetrics`; `ok` when nothing fell, tripped or disobeyed."""
        figures = self.metrics.result()
        tripped = [name for name in names(self.loop.recorder.events_seen) if self._severe(name)]
        error = figures["vx_abs_err"]
        obeyed = not judge_speed or (error is not None and error <= 0.15)
        return {
            "ok": not figures["fell"] and not tripped and not self.console.failed and obeyed,
            **figures,
            "torque_saturated": float(np.max(self.robot.physics.motors.saturated)),
            "speedup": self._simulated_s / self._wall_s if self._wall_s else None,
            "policy": self.plan.bundle.name,
            "end": self.console.end,
            "tripped": tripped,
            "events": names(self.loop.recorder.events_seen),
            "limited_share": self._limited / max(1, self._ticks),
        }

    _limited = 0.0
    _ticks = 0

    def _severe(self, name: str) -> bool:
        return self.plan.safety.events[name].severity > Tier.WARN

    def _after(self, loop: ControlLoop, progress: Any) -> None:  # noqa: ANN401 - a callable of seconds
        mode = Mode(int(loop.recorder.row["mode"]))
        self.console.look(self.port, self.link.now_ns, mode)
        if mode is not Mode.POLICY or loop.machine.status.stopping:
            return
        if self.robot.physics.gantry.attached:
            self.robot.physics.gantry.release()
        self._policy_s = loop.pilot.step * self.plan.config.period_ns / 1e9
        self._measure(loop)
        progress(self._policy_s)

    def _measure(self, loop: ControlLoop) -> None:
        truth, row = self.robot.physics.truth(), loop.recorder.row
        self._ticks += 1
        self._limited += float(np.count_nonzero(row["limit_mask"])) / row["limit_mask"].size
        self.metrics.add(
            Moment(
                time_s=self._policy_s,
                position_m=truth.position_m,
                velocity_body_m_s=truth.velocity_body_m_s,
                tilt_rad=self.robot.physics.tilt_rad(),
                gyro=row["gyro_body"],
                dq=row["dq"],
                action=row["action_policy"],
                command=row["command"][:3],
                joint_error_rad=None,
            )
        )


class _Nowhere:
    """A trial keeps no record."""

    def push(self, record: np.ndarray) -> int:
        """Drop it."""
        return 0


def _show(plan: Plan, result: dict[str, Any]) -> None:
    table = Table(title=f"{plan.bundle.name}: {'ok' if result['ok'] else 'NOT ok'}", show_header=False)
    for key, value in result.items():
        if key in {"ok", "policy"}:
            continue
        text = ", ".join(value) or "none" if isinstance(value, list) else value
        table.add_row(key, f"{text:.3f}" if isinstance(text, float) else str(text))
    Terminal(file=sys.stderr).print(table)
    for note in plan.notes:
        say(f"note: {note}")
