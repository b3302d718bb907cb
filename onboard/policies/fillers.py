"""What refreshes the signals in a tick: one small function per source, chosen once by what terms read."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from onboard.policies.command import MotionCommand
from onboard.policies.motion import MotionPlayer
from onboard.policies.phase import TURN, GaitClock
from onboard.policies.rotations import gravity_in_body, roll_pitch_of
from onboard.runtime.link import State

Float32Array = NDArray[np.float32]
Filler = Callable[[State, MotionCommand, int], None]
"""Refreshes its views from the state, the command and the step (grid periods since the reset)."""


def joint_positions(view: Float32Array) -> Filler:
    """(29,) rad."""
    return lambda state, _command, _step: np.copyto(view, state.q)


def joint_velocities(view: Float32Array) -> Filler:
    """(29,) rad/s."""
    return lambda state, _command, _step: np.copyto(view, state.dq)


def gyro(view: Float32Array, torso: bool) -> Filler:
    """(3,) rad/s, of the pelvis or torso IMU."""
    if torso:
        return lambda state, _command, _step: np.copyto(view, state.torso_gyro)
    return lambda state, _command, _step: np.copyto(view, state.gyro_body)


def gravity(view: Float32Array, torso: bool) -> Filler:
    """(3,) unit vector in the frame of the pelvis or torso IMU's body."""

    def fill(state: State, _command: MotionCommand, _step: int) -> None:
        view[:] = gravity_in_body((state.torso_quat_wxyz if torso else state.quat_wxyz).tolist())

    return fill


def roll_pitch(view: Float32Array, torso: bool) -> Filler:
    """(2,) rad, of the pelvis or torso IMU's body."""

    def fill(state: State, _command: MotionCommand, _step: int) -> None:
        view[:] = roll_pitch_of((state.torso_quat_wxyz if torso else state.quat_wxyz).tolist())

    return fill


def command(view: Float32Array) -> Filler:
    """(8,) the whole command."""
    return lambda _state, asked, _step: np.copyto(view, asked.values)


def imu_velocity(view: Float32Array, pelvis: Float32Array, imu_m: tuple[float, ...]) -> Filler:
    """(3,) m/s: velocity of the pelvis IMU's site, from that of the pelvis and the gyro."""
    x, y, z = imu_m

    def fill(state: State, _command: MotionCommand, _step: int) -> None:
        vx, vy, vz = pelvis.tolist()
        wx, wy, wz = state.gyro_body.tolist()
        view[:] = (vx + wy * z - wz * y, vy + wz * x - wx * z, vz + wx * y - wy * x)

    return fill


def gait(
    clock: GaitClock, sine: Float32Array, cosine: Float32Array, share: Float32Array, phase: Float32Array
) -> Filler:
    """One number per foot each: sine, cosine, share of the period (0 to 1), and the angle, rad."""

    def fill(_state: State, asked: MotionCommand, step: int) -> None:
        clock.update(step, asked)
        angles = clock.angles_rad
        phase[:] = angles
        sine[:] = [math.sin(angle) for angle in angles]
        cosine[:] = [math.cos(angle) for angle in angles]
        share[:] = [angle % TURN / TURN for angle in angles]

    return fill


def reference(motion: MotionPlayer, row: Float32Array, share: Float32Array, anchor: Float32Array) -> Filler:
    """The reference's row, the share of it that has passed, and its anchor seen from the robot."""
    if not motion.has_frames:

        def tell_time(_state: State, _command: MotionCommand, step: int) -> None:
            motion.seek(step)
            share[0] = motion.phase

        return tell_time

    def fill(state: State, _command: MotionCommand, step: int) -> None:
        motion.seek(step)
        share[0] = motion.phase
        np.copyto(row, motion.row)
        anchor[:] = motion.anchor_columns(state)

    return fill


def reference_ahead(motion: MotionPlayer, row: Float32Array, anchor: Float32Array, ahead: int) -> Filler:
    """The same some ticks later; to be run after `reference`, which finds the present frame."""

    def fill(state: State, _command: MotionCommand, _step: int) -> None:
        np.copyto(row, motion.row_ahead(ahead))
        anchor[:] = motion.anchor_columns(state, ahead)

    return fill
