"""One policy in one simulator, in lock-step, from the start pose to the end of a script."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onboard.analysis.lock_step_sources import lock_step_sources
from onboard.analysis.trial_metrics import Moment, TrialMetrics
from onboard.configs.events import Event, Mode, Tier, bits, names
from onboard.configs.script import ScriptConfig, Step
from onboard.configs.sim import load_sim
from onboard.policies.contract import Motion
from onboard.policies.estimators.provider import LEG_ODOMETRY
from onboard.runtime.assembly import Plan, build_loop
from onboard.runtime.console import Console
from onboard.runtime.gateway import EXPIRY_MS_REALTIME
from onboard.runtime.loop import ControlLoop, Sink
from onboard.runtime.operator_input import LocalPort
from onboard.runtime.script import Script
from onboard.runtime.watch import NoWatch
from onboard.sim.robot import SimRobot
from onboard.sim.sim_link import LockStepClock, SimLink

WINDOW_S = (7.0, 15.0)
"""Stretch of the standard walk over which its speed is judged: 2 s after the start to the end."""
VX_TOLERANCE_M_S = 0.15
HANGING_M = 0.3
"""How much higher than standing a hanging robot is held: its feet are free."""
PUSH_S = 0.1
PUSH_EVERY_S = 3.0


@dataclass(frozen=True)
class Variation:
    """What differs from the nominal trial.

    Attributes:
        seed: of a perturbed start: joints ±0.05 rad, ±0.5 rad/s, tilt ±0.05 rad, gyro ±0.3 rad/s;
            None starts nominally.
        push_n: horizontal pushes of this force for 0.1 s every 3 s, direction by the seed; 0 for none.
        sim: overrides of the simulator's configuration.
    """

    seed: int | None = None
    push_n: float = 0.0
    sim: tuple[str, ...] = ()


def standard_walk(vx: float) -> ScriptConfig:
    """Stand 5 s, walk 10 s, stand 5 s."""
    return _script(
        Step(press="go", velocity=(0.0, 0.0, 0.0), until="policy", for_s=5.0),
        Step(velocity=(vx, 0.0, 0.0), for_s=10.0),
        Step(velocity=(0.0, 0.0, 0.0), for_s=5.0),
    )


def every_direction(vx: float, vy: float, wz: float) -> ScriptConfig:
    """Stand, walk forward, sideways, turn, each 5 s, and stop."""
    return _script(
        Step(press="go", velocity=(0.0, 0.0, 0.0), until="policy", for_s=3.0),
        Step(velocity=(vx, 0.0, 0.0), for_s=5.0),
        Step(velocity=(0.0, vy, 0.0), for_s=5.0),
        Step(velocity=(0.0, 0.0, wz), for_s=5.0),
        Step(velocity=(0.0, 0.0, 0.0), for_s=3.0),
    )


def whole_motion(seconds: float) -> ScriptConfig:
    """Start the motion and wait until it is over, which ends in hold or, without balance, in damping."""
    return _script(Step(press="go", until="policy", for_s=seconds))


def _script(*steps: Step) -> ScriptConfig:
    return ScriptConfig((Step(press="start", until="ramp"), Step(until="hold"), *steps))


class Trial:
    """Runs one trial; `result` then has its figures.

    Args:
        plan: of the run.
        script: what the operator does.
        variation: what differs from the nominal trial.
        sink: takes the records; None keeps none.
        hanging: the gantry holds the robot to the end, above the floor.
        estimate: contact and base velocity by the leg odometry, though nobody reads them.

    Attributes:
        trace: (time_s, vx, vx asked, height, tilt) of every tick in mode policy, for a plot.
    """

    def __init__(
        self,
        plan: Plan,
        script: ScriptConfig,
        variation: Variation,
        sink: Sink | None = None,
        *,
        hanging: bool = False,
        estimate: bool = False,
    ) -> None:
        policies = plan.policies()
        start = policies[0].start_pose
        config = load_sim("g1", ["builtin.active=false", f"robot={plan.config.robot}", *variation.sim])
        period_ns = plan.config.period_ns
        self.plan = plan
        self.robot = SimRobot(config)
        self.robot.reset(start)
        height_m = float(self.robot.physics.truth().position_m[2])
        self.robot.physics.gantry.attach(height_m + (HANGING_M if hanging else 0.0))
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
            sink=sink or _Nowhere(),
            sources=lock_step_sources(self.link, plan.providers | ({LEG_ODOMETRY} if estimate else set())),
        )
        self.metrics = TrialMetrics(WINDOW_S)
        self.trace: list[tuple[float, float, float, float, float]] = []
        self._variation = variation
        self._hanging = hanging
        self._random = np.random.default_rng(variation.seed)
        self._motion: Motion | None = plan.bundle.contract.motion
        self._policy_ticks = 0
        self._limited_ticks = 0
        self._tripped = 0
        self._speedup = 0.0

    def run(self, progress: Callable[[float], object]) -> None:
        """To the end of the script and of the stop sequence; `progress` gets the policy's seconds."""
        begin, simulated = time.perf_counter(), self.robot.physics.time_s
        self.link.open()
        self.loop.run(lambda loop: self._after(loop, progress))
        self._speedup = (self.robot.physics.time_s - simulated) / (time.perf_counter() - begin)

    def result(self, *, judge_speed: bool) -> dict[str, Any]:
        """The figures, see `TrialMetrics`; `ok` when nothing fell, tripped or disobeyed."""
        figures = self.metrics.result()
        tripped = [name for name in names(self._tripped) if self._severe(name)]
        error = figures["vx_abs_err"]
        obeyed = not judge_speed or (error is not None and error <= VX_TOLERANCE_M_S)
        through = not self.console.failed or self._motion_over
        return {
            "ok": not figures["fell"] and not tripped and through and obeyed,
            **figures,
            "torque_saturated": float(np.max(self.robot.physics.motors.saturated)),
            "speedup": self._speedup,
            "policy": self.plan.bundle.name,
            "seed": self._variation.seed,
            "end": "the motion is over" if self._motion_over else self.console.end,
            "tripped": tripped,
            "events": names(self.loop.recorder.events_seen),
            "limited_share": self._limited_ticks / max(1, self._policy_ticks),
            **self._residual_figures(),
        }

    def _residual_figures(self) -> dict[str, Any]:
        """What the residual did; nothing for a trial without one."""
        if self.plan.residual is None:
            return {}
        slot = self.loop.pilot.slot
        return {
            "arm": slot.arm.name.lower(),
            "residual_bounded_share": slot.tally.bounded / max(1, slot.tally.ticks),
            "residual_dropped": slot.tally.why,
        }

    @property
    def _motion_over(self) -> bool:
        return bool(self.loop.recorder.events_seen & bits(Event.MOTION_FINISHED))

    def _severe(self, name: str) -> bool:
        return self.plan.safety.events[name].severity > Tier.WARN and name != Event.MOTION_FINISHED.name

    def _after(self, loop: ControlLoop, progress: Callable[[float], object]) -> None:
        mode = Mode(int(loop.recorder.row["mode"]))
        self.console.look(self.port, self.link.now_ns, mode)
        ended = loop.machine.status.stopping and mode is not Mode.POLICY
        if not (self._motion_over or ended):
            # What a robot does once its policy has ended, hold or sink, is not the policy's.
            self._tripped |= loop.gate.events
        if mode is not Mode.POLICY or loop.machine.status.stopping:
            return
        if self.robot.physics.gantry.attached and not self._hanging:
            self._let_go()
        self._push()
        self._measure(loop)
        self._policy_ticks += 1
        progress(self._policy_s)

    @property
    def _policy_s(self) -> float:
        return self._policy_ticks * self.plan.config.period_ns / 1e9

    def _let_go(self) -> None:
        """Release the gantry, with a disturbed start where one is wanted."""
        physics = self.robot.physics
        physics.gantry.release()
        if self._variation.seed is None:
            return
        random, joints = self._random, physics.sensors.joints[0].copy()
        tilt = np.array([1.0, *(random.uniform(-0.025, 0.025, 2)), 0.0])
        physics.reset(
            joints + random.uniform(-0.05, 0.05, joints.size),
            dq=random.uniform(-0.5, 0.5, joints.size),
            quat_wxyz=tilt / np.linalg.norm(tilt),
            angular_velocity_body_rad_s=random.uniform(-0.3, 0.3, 3),
        )

    def _push(self) -> None:
        every = round(PUSH_EVERY_S * 1e9 / self.plan.config.period_ns)
        if self._variation.push_n and self._policy_ticks % every == every - 1:
            angle = self._random.uniform(0, 2 * np.pi)
            x, y = self._variation.push_n * np.array([np.cos(angle), np.sin(angle)])
            self.robot.physics.push((float(x), float(y), 0.0), PUSH_S)

    def _measure(self, loop: ControlLoop) -> None:
        truth, row = self.robot.physics.truth(), loop.recorder.row
        self._limited_ticks += bool(row["limit_mask"].any())
        reference = loop.pilot.policy.reference_q
        tilt = self.robot.physics.tilt_rad()
        self.trace.append(
            (
                self._policy_s,
                float(truth.velocity_body_m_s[0]),
                float(row["command"][0]),
                float(truth.position_m[2]),
                tilt,
            )
        )
        self.metrics.add(
            Moment(
                time_s=self._policy_s,
                position_m=truth.position_m,
                velocity_body_m_s=truth.velocity_body_m_s,
                tilt_rad=tilt,
                gyro=row["gyro_body"],
                dq=row["dq"],
                action=row["action_policy"],
                command=row["command"][:3],
                joint_error_rad=None if reference is None else row["q"] - reference,
            )
        )


class _Nowhere:
    """A trial keeps no record."""

    def push(self, record: np.ndarray) -> int:
        """Drop it."""
        return 0
