"""A trial in lock-step that leaves a rollout, with the same estimates in it as one of a run over DDS."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from onboard.cli.trial import Trial, Variation
from onboard.configs.script import ScriptConfig
from onboard.logging.direct import DirectRecorder
from onboard.runtime.assembly import Plan, record_type, run_info
from onboard.runtime.link import State
from onboard.sim.sim_link import SimLink


class RecordedTrial:
    """One trial with its recorder.

    Args:
        plan: of the run; `lowstate` in it keeps every physics step too.
        script: what the operator does.
        sim: overrides of the simulator's configuration.
        out: folder of the rollout.
        hanging: the gantry holds the robot to the end.
        seed: of a disturbed start, None for the nominal one.
    """

    def __init__(
        self,
        plan: Plan,
        script: ScriptConfig,
        sim: tuple[str, ...],
        out: Path,
        *,
        hanging: bool = False,
        seed: int | None = None,
    ) -> None:
        policies = plan.policies()
        info = run_info(plan, policies)
        info.config["sim"] = "\n".join(sim)
        self.recorder = DirectRecorder(
            out, info, record_type(policies), self._gateway_state, lowstate=plan.config.lowstate
        )
        variation = Variation(seed, sim=sim)
        self.trial = Trial(plan, script, variation, self.recorder, hanging=hanging, estimate=True)
        if plan.config.lowstate:
            self._stream = FullRate(self.trial.link, self.recorder)

    def run(self, progress: Callable[[float], object]) -> dict[str, Any]:
        """Fly, close and convert; the result has the keys of `onboard run`."""
        self.trial.run(progress)
        loop, console = self.trial.loop, self.trial.console
        figures = self.trial.result(judge_speed=False)
        rollout = self.recorder.finish(figures["end"] or loop.machine.status.reason.value)
        failed = bool(figures["tripped"]) or (console.failed and not figures["end"])
        return {
            "ok": not failed,
            "end": figures["end"],
            "exit_code": 3 if failed else 0,
            "rollout": str(rollout),
            "rows": loop.recorder.policy_rows,
            "skipped_ticks": loop.recorder.skipped_ticks,
            "events": figures["events"],
            "tripped": figures["tripped"],
            "seconds": figures["seconds"],
            "speedup": figures["speedup"],
            **dict.fromkeys(("tick_us", "wake_late_us", "state_age_ms")),
        }

    def _gateway_state(self) -> int:
        return int(self.trial.link.core.state)


class FullRate:
    """Hears every physics step of a link and hands it to the recorder."""

    def __init__(self, link: SimLink, recorder: DirectRecorder) -> None:
        self._link = link
        self._recorder = recorder
        self._state = State()
        self._before = link.after_step
        self._last_dq = self._state.dq.copy()
        link.after_step = self._hear

    def _hear(self) -> None:
        if self._before is not None:
            self._before()
        link, state, sample = self._link, self._state, self._recorder.sample
        link.robot.sense(state)
        sample["source_time_ns"] = sample["recv_ns"] = link.now_ns
        sample["robot_tick"] = link.robot.tick
        for name in ("q", "dq", "tau_est", "quat_wxyz", "gyro_body", "accel_body"):
            sample[name] = getattr(state, name)
        sample["motor_temperature"] = state.temperature
        sample["ddq"] = (state.dq - self._last_dq) / link.robot.config.timestep_s
        self._last_dq[:] = state.dq
        self._recorder.add_sample()
