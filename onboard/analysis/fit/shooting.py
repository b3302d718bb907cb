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
import itertools
import os
from collections.abc import Sequence
from types import TracebackType

import mujoco
import numpy as np
from mujoco.rollout import Rollout as Pool
from numpy.typing import NDArray

from onboard.analysis.fit.features import Features
from onboard.analysis.fit.free import on_the_floor
from onboard.analysis.fit.knobs import Float64Array, Settings
from onboard.analysis.fit.model import FitModel
from onboard.analysis.fit.recorded import Recorded
from onboard.analysis.fit.trajectory import LEAD_ROWS, Trajectory

_STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_QFRC_APPLIED)


class Shooter:
    """Simulates a set of trajectories; a context manager that owns threads.

    Args:
        model: what is simulated.
        trajectories: what was recorded.
        threads: of the pool; as many as this process may use by default.
        features: what a delta network sees, for settings that have one.
    """

    def __init__(
        self,
        model: FitModel,
        trajectories: Sequence[Trajectory],
        threads: int | None = None,
        features: Features | None = None,
    ) -> None:
        self.model = model
        self.trajectories = tuple(trajectories)
        self.rows = max(trajectory.rows for trajectory in trajectories)
        count = threads or len(os.sched_getaffinity(0))
        self._pool = Pool(nthread=count)
        self._data = [mujoco.MjData(model.mj) for _ in range(count)]
        self._recorded = Recorded(model.slots, self.trajectories, self.rows)
        self._base = self._base_at_start()
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
        logs, width, each = self._recorded, len(self.model.slots), len(self.trajectories)
        m, base_v = len(settings.latency_s), self.model.base_v
        every = settings.repeated(each)
        log = np.tile(np.arange(each), m)
        models = self._turned(every, log)
        state = np.zeros((len(log), mujoco.mj_stateSize(self.model.mj, _STATE)))
        # Views into the state, which begins with the time: what is read and written at every tick.
        ends = 1 + np.cumsum([0, self.model.base_q, width, base_v, width])
        base_q, q, base_dq, dq = (state[:, a:b] for a, b in itertools.pairwise(ends.tolist()))
        base_q[:], base_dq[:] = (values[log] for values in self._base)
        q[:], dq[:] = logs.q[log, LEAD_ROWS], logs.dq[log, LEAD_ROWS]
        frames = logs.frames(log, self._features)
        found = np.empty((self.rows, len(log), width))
        found[0] = q
        for row in range(self.rows - 1):
            now = LEAD_ROWS + row
            target = logs.in_force(row, log, every.latency_s)
            control = np.zeros((len(log), target.shape[1], width + base_v + width))
            control[..., :width] = target + _delta(every, target, q, dq)
            if self._features is not None and every.network is not None:
                frames = self._features.push(frames, target.mean(axis=1) - q, dq)
                control[..., self._features.columns] += self._features.delta(frames, every.network)[:, None]
            if self.model.held:
                base_q[:], base_dq[:] = logs.quat_wxyz[log, now], logs.gyro_body[log, now]
                control[..., width : width + base_v] = logs.moment_nm[log, now, None]
            states, _ = self._pool.rollout(models, self._data, state, control, control_spec=_CONTROL)
            state[:] = states[np.arange(len(log)), logs.steps[log, row] - 1]
            found[row + 1] = q
        positions: Float64Array = found.transpose(1, 0, 2).reshape(m, each, self.rows, width)
        return positions

    def _base_at_start(self) -> tuple[Float64Array, Float64Array]:
        """Position and velocity of every trajectory's pelvis as the model's state has them."""
        logs = self._recorded
        quat, gyro = logs.quat_wxyz[:, LEAD_ROWS], logs.gyro_body[:, LEAD_ROWS]
        if self.model.held:
            return quat, gyro
        return on_the_floor(self.model, logs.q[:, LEAD_ROWS], quat, gyro, logs.base_velocity)

    def _turned(self, every: Settings, log: NDArray[np.intp]) -> list[mujoco.MjModel]:
        """The model of each simulation, with its log's gains, turned by the knobs; equal ones are shared."""
        knobs, mj, base_v = every.joints, self.model.mj, self.model.base_v
        kp, kd = (knobs["gain"] * gains[log] for gains in (self._recorded.kp, self._recorded.kd))
        friction = mj.dof_frictionloss[base_v:] + knobs["friction_nm"]
        numbers = np.concatenate([kp, kd, friction, knobs["armature"] * mj.dof_armature[base_v:]], axis=1)
        different, which = np.unique(numbers, axis=0, return_inverse=True)
        while len(self._models) < len(different):
            self._models.append(copy.copy(mj))
        for model, row in zip(self._models, different, strict=False):
            kp, kd, friction, armature = np.split(row, 4)
            model.actuator_gainprm[:, 0] = kp
            model.actuator_biasprm[:, 1] = -kp
            model.actuator_biasprm[:, 2] = -kd
            model.dof_frictionloss[base_v:] = friction
            model.dof_armature[base_v:] = armature
        return [self._models[k] for k in which.ravel().tolist()]


def _delta(every: Settings, target: Float64Array, q: Float64Array, dq: Float64Array) -> Float64Array:
    """(simulations, steps, joints) of a state (simulations, joints) and the targets of the steps, rad."""
    a, b = every.joints["a"], every.joints["b"]
    delta: Float64Array = a[:, None] * (target - q[:, None]) + (b * dq)[:, None]
    return delta
