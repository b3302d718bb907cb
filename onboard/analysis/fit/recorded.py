"""Trajectories of different length as arrays that can be walked through together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onboard.analysis.fit.features import Features
from onboard.analysis.fit.held import BASE_INERTIA_KG_M2
from onboard.analysis.fit.knobs import Float64Array
from onboard.analysis.fit.model import TIMESTEP_S
from onboard.analysis.fit.trajectory import LEAD_ROWS, Trajectory


class Recorded:
    """The recorded side of a simulation; row `LEAD_ROWS` of every array is where it starts.

    Args:
        slots: SDK motor indices of the model's joints.
        trajectories: what was recorded.
        rows: that are simulated; shorter trajectories go on with their last row.

    Attributes:
        q, dq, target: (trajectories, LEAD_ROWS + rows, joints) rad, rad/s, rad.
        kp, kd: (trajectories, joints).
        quat_wxyz, gyro_body: (trajectories, LEAD_ROWS + rows, 4 and 3) of the pelvis.
        base_velocity: (trajectories, 3) at the start, m/s, pelvis frame.
        moment_nm: (trajectories, LEAD_ROWS + rows - 1, 3) that turns the pelvis as recorded.
        steps: (trajectories, rows - 1) physics steps from each row to the next.
    """

    def __init__(self, slots: NDArray[np.intp], trajectories: Sequence[Trajectory], rows: int) -> None:
        wanted = np.arange(-LEAD_ROWS, rows)
        self.q = np.array([_padded(t, t.q, wanted)[:, slots] for t in trajectories])
        self.dq = np.array([_padded(t, t.dq, wanted)[:, slots] for t in trajectories])
        self.target = np.array([_padded(t, t.target, wanted)[:, slots] for t in trajectories])
        self.quat_wxyz = np.array([_padded(t, t.quat_wxyz, wanted) for t in trajectories])
        self.gyro_body = np.array([_padded(t, t.gyro_body, wanted) for t in trajectories])
        self.base_velocity = np.array([t.base_velocity[t.first] for t in trajectories])
        self.kp = np.array([t.kp[slots] for t in trajectories])
        self.kd = np.array([t.kd[slots] for t in trajectories])
        self._time_s = np.array([_times(t, wanted) for t in trajectories])
        on_grid = np.rint(self._time_s[:, LEAD_ROWS:] / TIMESTEP_S).astype(np.intp)
        self.steps = np.maximum(np.diff(on_grid), 1)
        turned = np.diff(self.gyro_body, axis=1) / np.diff(self._time_s)[..., None]
        self.moment_nm = BASE_INERTIA_KG_M2 * turned

    def frames(self, log: NDArray[np.intp], features: Features | None) -> Float64Array:
        """(simulations, frames, values) what a network saw before the start; empty without one."""
        if features is None:
            return np.zeros((len(log), 0, 0))
        frames = np.zeros((len(log), features.frames, 2 * len(features.columns)))
        for row in range(LEAD_ROWS):
            error = self.target[log, row] - self.q[log, row]
            frames = features.push(frames, error, self.dq[log, row])
        return frames

    def in_force(self, row: int, log: NDArray[np.intp], latency_s: Float64Array) -> Float64Array:
        """Targets during the physics steps that follow a row, means over each step.

        Args:
            row: simulated row, from 0.
            log: (simulations,) trajectory of each.
            latency_s: (simulations,) from a tick to its command's effect, at most `LEAD_ROWS` periods.

        Returns:
            (simulations, steps, joints) rad; as many steps as the longest of the trajectories takes.
        """
        newest = LEAD_ROWS + row
        made_s = self._time_s[:, row : newest + 1][:, ::-1] - self._time_s[:, newest : newest + 1]
        begin_s = made_s[log] + latency_s[:, None]
        end_s = np.concatenate([np.full((len(log), 1), np.inf), begin_s[:, :-1]], axis=1)
        begin_s[:, -1] = -np.inf
        step_s = TIMESTEP_S * np.arange(self.steps[:, row].max())[None, :, None]
        overlap_s = np.minimum(step_s + TIMESTEP_S, end_s[:, None]) - np.maximum(step_s, begin_s[:, None])
        shares = np.clip(overlap_s, 0.0, None) / TIMESTEP_S
        targets: Float64Array = shares @ self.target[:, row : newest + 1][log, ::-1]
        return targets


def _padded(trajectory: Trajectory, column: Float64Array, wanted: NDArray[np.intp]) -> Float64Array:
    """Rows relative to the start; the first and the last row stand in for what is not there."""
    return column[np.clip(trajectory.first + wanted, 0, len(column) - 1)]


def _times(trajectory: Trajectory, wanted: NDArray[np.intp]) -> Float64Array:
    """Time of each of those rows, going on evenly at both ends, s."""
    t_s, last = trajectory.t_s, len(trajectory.t_s) - 1
    rows = trajectory.first + wanted
    there = np.clip(rows, 0, last)
    times: Float64Array = t_s[there] + (rows - there) * (t_s[-1] - t_s[0]) / last
    return times
