"""How well the simulator predicts what was recorded, one control period and a whole stretch ahead."""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from onboard.analysis.replay_sim import Stretch, open_loop, set_start
from onboard.configs.sim import load_sim
from onboard.sim.physics import Physics

Float64Array = NDArray[np.float64]

STANCE_DEPTH_M = 0.0006
"""How deep the soles of a robot on the ground lie in the soft floor; predicts nominal walks best."""
EDGE_ROWS = 2
"""Rows on both sides of a change of contact that belong to touchdown or lift-off."""

PHASES = ("flight", "touchdown", "stance", "lift-off", "unknown")


@dataclass(frozen=True)
class Prediction:
    """Errors of a simulation against a stretch of n rows; NaN in row 0.

    Attributes:
        time_s: (n,) from its start.
        one_step_rad: (n, 29) joint position predicted from the row before, less the measured one.
        one_step_dq: (n, 29) the same of joint velocity, rad/s.
        whole_rad: (n, 29) of one simulation from the first row on, with the sent targets.
        phase: (n,) index into `PHASES`.
    """

    time_s: Float64Array
    one_step_rad: Float64Array
    one_step_dq: Float64Array
    whole_rad: Float64Array
    phase: NDArray[np.int64]

    def by_phase(self) -> dict[str, Float64Array]:
        """Phase to the RMS (29,) of the one-step error, rad; phases that do not occur are left out."""
        return {
            name: np.sqrt(np.nanmean(self.one_step_rad[self.phase == index] ** 2, axis=0))
            for index, name in enumerate(PHASES)
            if np.isfinite(self.one_step_rad[self.phase == index]).any()
        }


def predict(part: Stretch) -> Prediction:
    """Simulate a stretch of a rollout in both ways with the nominal robot."""
    one_step = _one_step(part)
    whole = open_loop(part)
    return Prediction(whole.time_s, *one_step, whole.joint_rad, contact_phase(part.columns["contact"]))


def contact_phase(contact: np.ndarray) -> NDArray[np.int64]:
    """(n,) index into `PHASES` of both feet's contact (n, 2): 1, 0, or -1 unknown.

    A change of either foot marks the rows around it; where two changes overlap, touchdown counts, as the
    harder of the two.
    """
    down = (contact == 1).astype(np.int64)
    phase = np.where(down.any(axis=1), PHASES.index("stance"), PHASES.index("flight"))
    change = np.diff(down, axis=0, prepend=down[:1])
    for sign, name in ((-1, "lift-off"), (1, "touchdown")):
        for row in np.flatnonzero((change == sign).any(axis=1)):
            phase[max(0, row - EDGE_ROWS) : row + EDGE_ROWS + 1] = PHASES.index(name)
    phase[(contact < 0).any(axis=1)] = PHASES.index("unknown")
    return phase


def _one_step(part: Stretch) -> tuple[Float64Array, Float64Array]:
    columns = part.columns
    physics = Physics(load_sim("g1", ["builtin.active=false", *part.simulator]))
    time_s = columns["time_s"]
    steps = np.maximum(np.rint(np.diff(time_s) / physics.config.timestep_s).astype(int), 1)
    errors = np.full((2, *columns["q"].shape), np.nan)
    for row, count in enumerate(steps.tolist()):
        set_start(physics, columns, row)
        if not part.held and (columns["contact"][row] != 0).any():
            physics.data.qpos[2] -= STANCE_DEPTH_M
            mujoco.mj_forward(physics.model.mj, physics.data)
        physics.motors.set(columns["action_sent"][row], part.kp[row], part.kd[row])
        physics.step(count)
        errors[0, row + 1] = physics.sensors.joints[0] - columns["q"][row + 1]
        errors[1, row + 1] = physics.sensors.joints[1] - columns["dq"][row + 1]
    return errors[0], errors[1]
