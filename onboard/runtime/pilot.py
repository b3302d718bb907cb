"""What each mode asks the joints to do: one target with its gains, once a tick.

Ramp and hold use the robot's own stand gains: a policy's are too soft to carry a robot that it does
not balance. Between the two the gains blend, as the targets do.

The pilot owns the trajectories between modes and the policy's side of a tick. It changes nothing of
the policy outside mode `policy`, and inside it only when the gate accepted the tick (`commit`), so
that a bad tick leaves no trace in history, phase or last action.
"""

from collections.abc import Sequence

import numpy as np

from onboard.configs.events import Mode
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.configs.run import RunConfig
from onboard.policies.actor import Actor
from onboard.policies.estimators.provider import Provision
from onboard.policies.residual.delta import Asked
from onboard.policies.residual.slot import Slot
from onboard.runtime.link import Float32Array, State
from onboard.runtime.motions import FadeIn, HoldBlend, RampProfile
from onboard.runtime.operator_input import OperatorInput
from onboard.runtime.repertoire import Repertoire
from onboard.runtime.stages import Stages

RAMP_KP_START = 0.1
"""Share of the policy's stiffness at the beginning of a ramp."""


class Pilot:
    """Targets and gains by mode.

    Args:
        repertoire: the policies of this run.
        slots: each policy's residual slot.
        provision: of what the robot can't measure.
        robot: for its stand gains.
        damping_kd: (29,) gains of damping, N·m·s/rad.
        config: durations of ramp, hold and fade.

    Attributes:
        target: (29,) rad, what the mode asks for, before the gate's limits.
        kp, kd: (29,) gains to send.
        base: (n,) this tick's raw action, None where there is none.
        combined: (n,) the same with the residual applied; meaningless without `base`.
        kp_scale: share of the mode's full stiffness in force.
        ramp_done: the ramp's last target is the start pose.
        step: grid periods since the policy was entered, skipped ones included.
        episode: how often the policy was entered.
        failure: why the policy gave no target in this tick, "" when it did.
        command: the velocity and the rest that the policy follows.
    """

    def __init__(
        self,
        repertoire: Repertoire,
        slots: Sequence[Slot],
        provision: Provision,
        robot: RobotConfig,
        damping_kd: Float32Array,
        config: RunConfig,
    ) -> None:
        period_s = config.period_ns / 1e9
        motions = config.motions
        self.repertoire = repertoire
        self._slots = tuple(slots)
        self._provision = provision
        self.command = self.policy.neutral_command()
        self._ramp = RampProfile(period_s, motions.ramp_s, float(robot.speed.min()) * 0.05, RAMP_KP_START)
        self._hold = HoldBlend(period_s, motions.hold_blend_s)
        self._fade_in = FadeIn(period_s, motions.fade_in_s)
        self._switch_fade = FadeIn(period_s, motions.switch_s)
        self._fade = self._fade_in
        self._damping_kd = damping_kd
        self._zeros = np.zeros(N_JOINTS, np.float32)
        self._stand = (robot.stand_kp, robot.stand_kd)
        self._from = (np.zeros(N_JOINTS, np.float32), np.zeros(N_JOINTS, np.float32))
        self._gains = (np.zeros(N_JOINTS, np.float32), np.zeros(N_JOINTS, np.float32))
        self._mode = Mode.DAMP
        self._stages: Stages | None = None
        self._sent = self._zeros
        self.target: Float32Array = np.zeros(N_JOINTS, np.float32)
        self.kp: Float32Array = self._zeros
        self.kd: Float32Array = damping_kd
        self.kp_scale = 0.0
        self.step = 0
        self.episode = -1
        self.failure = ""
        self.base: Float32Array | None = None
        self.combined: Float32Array = self._zeros
        self._modes = {
            Mode.DAMP: self._damp,
            Mode.RAMP: self._ramp_on,
            Mode.HOLD: self._hold_on,
            Mode.POLICY: self._follow_policy,
            Mode.LIMP: self._limp,
        }

    @property
    def policy(self) -> Actor:
        """The policy in charge."""
        return self.repertoire.policy

    @property
    def slot(self) -> Slot:
        """The residual slot of the policy in charge."""
        return self._slots[self.repertoire.index]

    @property
    def fading(self) -> bool:
        """Targets and gains still blend into those of the policy in charge."""
        return self._mode is Mode.POLICY and self._fade.progress < 1.0

    @property
    def ramp_done(self) -> bool:
        """The ramp's last target is the start pose."""
        return self._mode is Mode.RAMP and self._ramp.done

    def fly(
        self,
        mode: Mode,
        state: State,
        asked: OperatorInput,
        sent: Float32Array,
        periods: int,
        stages: Stages | None = None,
    ) -> None:
        """Set target and gains for this tick.

        Args:
            mode: as the mode machine says.
            state: newest state.
            asked: the operator's wishes; the velocity already is what settling allows.
            sent: (29,) rad, the previous sent target.
            periods: grid periods since the last tick, 1 normally.
            stages: told where observing and inferring end.
        """
        self.failure, self.base, self._stages, self._sent = "", None, stages, sent
        entered = mode is not self._mode
        if entered:
            self._enter(mode, state, sent)
        self._mode = mode
        self._modes[mode](state, asked, 1 if entered else periods)
        if stages is not None:
            stages.mark_until("infer")

    def commit(self) -> None:
        """The gate accepted this tick's policy output: history and last action advance."""
        if self.base is not None:
            self.slot.commit()
            self.policy.commit(self.slot.feedback(self.base, self.combined))

    def _enter(self, mode: Mode, state: State, sent: Float32Array) -> None:
        for before, now in zip(self._from, (self.kp, self.kd), strict=True):
            before[:] = now
        if mode is Mode.RAMP:
            self._ramp.begin(state.q, self.policy.start_pose)
        elif mode is Mode.HOLD:
            self._hold.begin(sent, self.policy.start_pose if self._mode is Mode.RAMP else state.q)
        elif mode is Mode.POLICY:
            self.repertoire.begin()
            self._fade = self._fade_in
            self._start_policy(state, sent)
            self.step = -1

    def _start_policy(self, state: State, sent: Float32Array) -> None:
        """The policy in charge begins anew, from the sent target."""
        self._fade.begin(sent)
        self.policy.reset(state)
        self.slot.reset()
        self.command.values[3] = self.policy.neutral_command().height_m
        self.episode += 1
        self.step = 0

    def _switch(self, state: State, asked: OperatorInput, periods: int) -> None:
        """Let another policy take over where one was asked for, or where a motion is over."""
        if asked.switch is not None:
            self.repertoire.ask(asked.switch)
        if not self.repertoire.advance(periods):
            return
        for before, now in zip(self._from, (self.kp, self.kd), strict=True):
            before[:] = now
        self.repertoire.take_over(self._sent)
        self._fade = self._switch_fade
        self._start_policy(state, self._sent)

    def _damp(self, state: State, asked: OperatorInput, periods: int) -> None:
        self.target[:] = state.q
        self.kp, self.kd, self.kp_scale = self._zeros, self._damping_kd, 0.0

    def _limp(self, state: State, asked: OperatorInput, periods: int) -> None:
        self.target[:] = state.q
        self.kp, self.kd, self.kp_scale = self._zeros, self._zeros, 0.0

    def _ramp_on(self, state: State, asked: OperatorInput, periods: int) -> None:
        self.target[:] = self._ramp.step(periods)
        self.kp_scale = self._ramp.kp_scale
        kp, self.kd = self._stand
        self.kp = np.multiply(kp, self.kp_scale, out=self._gains[0])

    def _hold_on(self, state: State, asked: OperatorInput, periods: int) -> None:
        self.target[:] = self._hold.step(periods)
        self._blend_gains(self._stand, self._hold.progress)

    def _follow_policy(self, state: State, asked: OperatorInput, periods: int) -> None:
        self.step += periods
        self._switch(state, asked, periods)
        policy = self.policy
        vx, vy, wz = asked.velocity
        self.command.set_velocity(vx, vy, wz)
        try:
            self._provision.serve(self.repertoire.index)
            policy.observe(state, self.command, self.step)
            if self._stages is not None:
                self._stages.mark()
            base = policy.infer()
            self.combined = self.slot.combine(
                Asked(state, self.command, self.step, self._provision.contact), base
            )
            wanted = policy.target(self.combined)
        except Exception as error:  # whatever a policy does must not end the loop; the gate decides
            self.failure = f"{type(error).__name__}: {error}"
            return
        self.base = base
        self.target[:] = self._fade.step(wanted, periods)
        self._blend_gains(self.slot.gains(policy.kp, policy.kd), self._fade.progress)

    def _blend_gains(self, goal: tuple[Float32Array, Float32Array], progress: float) -> None:
        """From the gains in force when the mode began to those of the mode."""
        self.kp_scale = 1.0
        if progress >= 1.0:
            self.kp, self.kd = goal
            return
        for before, after, now in zip(self._from, goal, self._gains, strict=True):
            np.subtract(after, before, out=now)
            now *= progress
            now += before
        self.kp, self.kd = self._gains
