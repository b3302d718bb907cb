"""Simulates many trajectories side by side: every recorded one, once for each set of knobs.

All simulations go through a control period together, in MuJoCo's own pool of threads, outside Python's
lock; between two periods the deltas of all of them are one numpy expression. A finite-difference
Jacobian is then one pass with a column more for each parameter.

A command takes effect `latency_s` after its tick, which rarely falls on a physics step. In the step in
between the target is the mean over that step of what was in force, which makes the outcome a smooth
function of the latency. The delta is the motor's: it compares the target that is in force with the state
that was read at the latest tick.
"""

import copy
import os
from collections.abc import Sequence
from types import TracebackType

import mujoco
import numpy as np
from mujoco.rollout import Rollout as Pool
from numpy.typing import NDArray

from onboard.analysis.fit.features import Features
from onboard.analysis.fit.held import BASE_Q, BASE_V, HeldModel
from onboard.analysis.fit.knobs import Float64Array, Settings
from onboard.analysis.fit.recorded import Recorded
from onboard.analysis.fit.trajectory import LEAD_ROWS, Trajectory

_STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_QFRC_APPLIED)
_Q = 1 + BASE_Q
"""The state begins with the time and the pelvis; the joints' positions follow, then the velocities."""


class Shooter:
    """Simulates a set of trajectories; a context manager that owns threads.

    Args:
        held: what is simulated.
        trajectories: what was recorded.
        threads: of the pool; as many as this process may use by default.
        features: what a delta network sees, for settings that have one.
    """

    def __init__(
        self,
        held: HeldModel,
        trajectories: Sequence[Trajectory],
        threads: int | None = None,
        features: Features | None = None,
    ) -> None:
        self.held = held
        self.trajectories = tuple(trajectories)
        self.rows = max(trajectory.rows for trajectory in trajectories)
        count = threads or len(os.sched_getaffinity(0))
        self._pool = Pool(nthread=count)
        self._data = [mujoco.MjData(held.mj) for _ in range(count)]
        self._recorded = Recorded(held.slots, self.trajectories, self.rows)
        self._models: list[mujoco.MjModel] = []
        self._features = features

    def __enter__(self) -> "Shooter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the threads."""
        self._pool.close()

    def simulate(self, settings: Settings) -> Float64Array:
        """Joint positions (m, trajectories, rows, joints of the model), rad; the first row is the log's.

        A trajectory shorter than the longest goes on with its last target; one that runs away
        stays where MuJoCo gave it up.
        """
        logs, width, each = self._recorded, len(self.held.slots), len(self.trajectories)
        m = len(settings.latency_s)
        every = settings.repeated(each)
        log = np.tile(np.arange(each), m)
        models = self._turned(every, log)
        state = np.zeros((len(log), mujoco.mj_stateSize(self.held.mj, _STATE)))
        # Views into the state: what is read and written at every tick.
        q, base_dq, dq = np.split(state[:, _Q:], [width, width + BASE_V], axis=1)
        q[:], dq[:] = logs.q[log, LEAD_ROWS], logs.dq[log, LEAD_ROWS]
        frames = logs.frames(log, self._features)
        found = np.empty((self.rows, len(log), width))
        found[0] = q
        for row in range(self.rows - 1):
            now = LEAD_ROWS + row
            state[:, 1:_Q], base_dq[:] = logs.quat_wxyz[log, now], logs.gyro_body[log, now]
            target = logs.in_force(row, log, every.latency_s)
            control = np.zeros((len(log), target.shape[1], width + BASE_V + width))
            control[..., :width] = target + _delta(every, target, q, dq)
            if self._features is not None and every.network is not None:
                frames = self._features.push(frames, target.mean(axis=1) - q, dq)
                control[..., self._features.columns] += self._features.delta(frames, every.network)[:, None]
            control[..., width : width + BASE_V] = logs.moment_nm[log, now, None]
            states, _ = self._pool.rollout(models, self._data, state, control, control_spec=_CONTROL)
            state[:] = states[np.arange(len(log)), logs.steps[log, row] - 1]
            found[row + 1] = q
        positions: Float64Array = found.transpose(1, 0, 2).reshape(m, each, self.rows, width)
        return positions

    def _turned(self, every: Settings, log: NDArray[np.intp]) -> list[mujoco.MjModel]:
        """One model a simulation: with the log's gains, turned by the knobs."""
        while len(self._models) < len(log):
            self._models.append(copy.copy(self.held.mj))
        models = self._models[: len(log)]
        knobs, inertia = every.joints, self.held.mj.dof_armature[BASE_V:]
        for e, model in enumerate(models):
            kp, kd = (knobs["gain"][e] * gains[log[e]] for gains in (self._recorded.kp, self._recorded.kd))
            model.actuator_gainprm[:, 0] = kp
            model.actuator_biasprm[:, 1] = -kp
            model.actuator_biasprm[:, 2] = -kd
            model.dof_frictionloss[BASE_V:] = knobs["friction_nm"][e]
            model.dof_armature[BASE_V:] = knobs["armature"][e] * inertia
        return models


def _delta(every: Settings, target: Float64Array, q: Float64Array, dq: Float64Array) -> Float64Array:
    """(simulations, steps, joints) of a state (simulations, joints) and the targets of the steps, rad."""
    a, b = every.joints["a"], every.joints["b"]
    delta: Float64Array = a[:, None] * (target - q[:, None]) + (b * dq)[:, None]
    return delta
