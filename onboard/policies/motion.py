"""Reference motions at run time: which frame a tick sees, and the reference seen from the robot."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.policies.contract import Motion
from onboard.policies.rotations import (
    Quat,
    about_z,
    conjugate,
    first_two_columns,
    multiply,
    torso_from_pelvis,
    yaw_of,
)
from onboard.runtime.link import State

WAIST = ("waist_yaw_joint", "waist_roll_joint", "waist_pitch_joint")
ROOT_WIDTH = 6
"""vx, vy in the root's heading (m/s), height (m), roll, pitch (rad), yaw rate (rad/s)."""


@dataclass(frozen=True)
class MotionFrames:
    """A reference at the control rate.

    Attributes:
        joint_pos, joint_vel: (T, 29) float32, SDK motor order, rad and rad/s.
        anchor_quat: (T, 4) float64, world from anchor body, w x y z.
        root: (T, 6) float32, see `ROOT_WIDTH`; NaN where the source has no root.
    """

    joint_pos: NDArray[np.float32]
    joint_vel: NDArray[np.float32]
    anchor_quat: NDArray[np.float64]
    root: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.joint_pos)


class MotionPlayer:
    """Walks through a reference by grid periods and looks at it from the robot.

    Attributes:
        index: frame of the last `seek`.
        done: the last frame has been reached and the motion does not loop.
        phase: share of the motion that has passed, 0 to 1.
        row: (64,) float32 of the frame: joint positions, velocities, root.
    """

    def __init__(
        self, motion: Motion, frames: MotionFrames | None, robot: RobotConfig, period_s: float
    ) -> None:
        self._motion = motion
        self._slots = tuple(robot.joint_names.index(name) for name in WAIST)
        length_s = motion.length_s if frames is None else (len(frames) - 1) * period_s
        self._steps_per_motion = max(length_s or 0.0, period_s) / period_s
        self._table = np.zeros((0, 2 * N_JOINTS + ROOT_WIDTH), np.float32)
        self._anchors: list[list[float]] = []
        if frames is not None:
            self._table = np.hstack([frames.joint_pos, frames.joint_vel, frames.root]).astype(np.float32)
            self._anchors = frames.anchor_quat.tolist()
        self._turn: Quat = (1.0, 0.0, 0.0, 0.0)
        self._start = 0
        self.index = 0
        self.done = False
        self.phase = 0.0
        self.row = self._table[0] if len(self._table) else np.zeros(0, np.float32)

    @property
    def has_frames(self) -> bool:
        """There are reference joints, not only a clock."""
        return len(self._table) > 0

    def reset(self, state: State, start_index: int) -> None:
        """Start at a frame, turned so that its heading is the robot's where the contract aligns it."""
        self._start = start_index
        self.seek(0)
        if self.has_frames and self._motion.align == "yaw":
            self._turn = about_z(yaw_of(self._robot_anchor(state)) - yaw_of(self._anchors[self.index]))

    def seek(self, step: int) -> None:
        """Go to the frame of a tick; `step` is grid periods since the reset."""
        position = self._start + step
        steps = self._steps_per_motion
        frames = len(self._table)
        if self._motion.at_end == "loop":
            self.phase = position % steps / steps
            self.index = position % frames if frames else position % round(steps)
        else:
            self.phase = min(1.0, position / steps)
            self.index = min(position, frames - 1) if frames else position
            self.done = position >= steps
        if frames:
            self.row = self._table[self.index]

    def row_ahead(self, ahead: int) -> NDArray[np.float32]:
        """(64,) row some ticks after the present one; beyond the end the last, or round again in a loop."""
        row: NDArray[np.float32] = self._table[self._index_ahead(ahead)]
        return row

    def anchor_columns(self, state: State, ahead: int = 0) -> tuple[float, ...]:
        """First two columns of the reference anchor's rotation in the robot's anchor frame, row by row."""
        reference = multiply(self._turn, self._anchors[self._index_ahead(ahead)])
        return first_two_columns(multiply(conjugate(self._robot_anchor(state)), reference))

    def _index_ahead(self, ahead: int) -> int:
        frames = len(self._table)
        later = self.index + ahead
        return later % frames if self._motion.at_end == "loop" else min(later, frames - 1)

    def _robot_anchor(self, state: State) -> Quat:
        w, x, y, z = state.quat_wxyz.tolist()
        if self._motion.anchor == "pelvis":
            return w, x, y, z
        yaw, roll, pitch = (float(state.q[slot]) for slot in self._slots)
        return torso_from_pelvis((w, x, y, z), yaw, roll, pitch)
