"""Recorded motion that a simulation can be held against, whatever file it came from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

LEAD_ROWS = 5
"""Rows before the start that only tell what was commanded; they cover `knobs.MAX_LATENCY_S` at 50 Hz."""
EXCITED_RAD = 0.02
"""A joint whose target has a smaller standard deviation than this says nothing about its coefficients."""
ON_GROUND = 0.05
"""Share of rows with a foot on the ground above which a log is not one of a hanging robot."""
SWING_RAD_S = 1.0
"""RMS angular velocity of the pelvis above which nobody would call it held."""

ROWS = ("t_s", "q", "dq", "target", "quat_wxyz", "gyro_body", "base_velocity", "contact")
"""Columns of a trajectory with one entry a row."""

Float64Array = NDArray[np.float64]


@dataclass(frozen=True)
class Trajectory:
    """An unbroken stretch under one set of gains; row k's target acted from t[k] to t[k+1].

    Attributes:
        name: of the log and the stretch, for people.
        sha256: of the file.
        t_s: (n,) robot clock, s.
        q, dq, target: (n, 29) rad, rad/s, rad; SDK motor order.
        kp, kd: (29,) N·m/rad, N·m·s/rad.
        quat_wxyz: (n, 4) pelvis, world from body.
        gyro_body: (n, 3) pelvis, rad/s.
        base_velocity: (n, 3) pelvis in its own frame, m/s; NaN where unknown.
        contact: (n, 2) left and right foot: 1, 0, or -1 unknown.
        first: row whose state a simulation starts from; rows before only show earlier commands.
    """

    name: str
    sha256: str
    t_s: Float64Array
    q: Float64Array
    dq: Float64Array
    target: Float64Array
    kp: Float64Array
    kd: Float64Array
    quat_wxyz: Float64Array
    gyro_body: Float64Array
    base_velocity: Float64Array
    contact: NDArray[np.int8]
    first: int = 0

    @property
    def rows(self) -> int:
        """Rows that a simulation runs through, the start included."""
        return len(self.t_s) - self.first

    @property
    def seconds(self) -> float:
        """Length of what is simulated."""
        return float(self.t_s[-1] - self.t_s[self.first])

    @property
    def gyro_rms_rad_s(self) -> float:
        """How much the pelvis turned."""
        return float(np.sqrt(np.mean(np.sum(self.gyro_body**2, axis=1))))

    @property
    def on_ground(self) -> float:
        """Share of the rows in which a foot is known to stand on the ground."""
        return float((self.contact == 1).any(axis=1).mean())

    def cut(self, first: int, last: int) -> "Trajectory":
        """Rows first..last-1 as a trajectory that starts at `first`, earlier commands kept."""
        begin = max(first - LEAD_ROWS, 0)
        part = slice(begin, last)
        columns = {name: getattr(self, name)[part] for name in ROWS}
        return replace(self, **columns, first=first - begin)

    def windows(self, rows: int) -> Iterator["Trajectory"]:
        """Pieces of `rows` simulated rows each, every one starting at its own recorded state."""
        for first in range(self.first, len(self.t_s) - rows, rows):
            yield self.cut(first, first + rows + 1)


def split_time(trajectory: Trajectory, held_out: float) -> tuple[Trajectory, Trajectory]:
    """The first part to fit, the last `held_out` (a share) to test."""
    at = trajectory.first + round(trajectory.rows * (1 - held_out))
    return trajectory.cut(trajectory.first, at), trajectory.cut(at, len(trajectory.t_s))


def excited(trajectories: Sequence[Trajectory]) -> NDArray[np.intp]:
    """SDK motor indices of the joints that were moved on purpose."""
    spread = np.max(
        [trajectory.target[trajectory.first :].std(axis=0) for trajectory in trajectories], axis=0
    )
    return np.flatnonzero(spread >= EXCITED_RAD)
