"""Everything that any term can read, in one float32 vector that is refreshed once a tick.

The observation plans of all graphs index into this vector, so a tick costs a few copies here and one
gather per graph, however many terms there are.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.policies.command import MotionCommand
from onboard.policies.contract import Contract
from onboard.policies.motion import MotionPlayer
from onboard.policies.phase import TURN, GaitClock
from onboard.policies.rotations import gravity_in_body, roll_pitch_of
from onboard.runtime.link import State

Float32Array = NDArray[np.float32]
Filler = Callable[[State, MotionCommand, int], None]

_FIXED = {
    "q": N_JOINTS,
    "dq": N_JOINTS,
    "gyro": 3,
    "gravity": 3,
    "roll_pitch": 2,
    "velocity": 3,
    "height": 1,
    "stand": 1,
    "waist": 3,
    "hold": N_JOINTS,
    "ref_q": N_JOINTS,
    "ref_dq": N_JOINTS,
    "ref_velocity_xy": 2,
    "ref_height": 1,
    "ref_roll_pitch": 2,
    "ref_yaw_rate": 1,
    "anchor": 6,
    "motion_phase": 1,
    "base_lin_vel": 3,
    "base_lin_vel_imu": 3,
    "base_height": 1,
    "foot_force": 6,
    "contact": 2,
    "anchor_position": 3,
}
"""Signals of fixed width, in the order of the vector. Joint signals are in SDK motor order."""

_COMMAND = frozenset({"velocity", "velocity_xy", "velocity_yaw", "height", "stand", "waist"})

PROVIDED = ("base_lin_vel", "base_height", "foot_force", "contact", "anchor_position")
"""Signals that a provider writes; NaN until it has."""


class Signals:
    """The vector of one policy and what refreshes it.

    Attributes:
        values: the whole vector.
        hold: (29,) view, rad: what joints are asked to hold; from the contract until overwritten.
        actions: per graph, (A,) view: its last raw output.
        provided: per privileged signal, the view that its provider writes.
    """

    def __init__(
        self,
        contract: Contract,
        robot: RobotConfig,
        used: Iterable[str],
        motion: MotionPlayer | None,
        constants: Mapping[str, tuple[float, ...]],
        outputs: Mapping[str, int],
    ) -> None:
        """Lay the vector out.

        Args:
            contract: checked.
            robot: for the joints' slots.
            used: signals that some term reads; others are not refreshed.
            motion: the reference, where there is one.
            constants: signal name to fixed numbers.
            outputs: signal name to width, for outputs of graphs that others read.
        """
        self._contract = contract
        self._motion = motion
        self._imu_m = robot.imu.pelvis_m
        self._gait = GaitClock(contract.gait, 1.0 / contract.rate_hz) if contract.gait else None
        self._slices = _layout(contract, constants, outputs)
        self.values: Float32Array = np.zeros(max(part.stop for part in self._slices.values()), np.float32)
        for name, numbers in constants.items():
            self.view(name)[:] = numbers
        self.hold = self.view("hold")
        slots = [robot.slot(joint) for joint in contract.joints]
        self.hold[slots] = contract.hold_rad
        self.actions = {
            name: self.view(f"action:{name}") for name, graph in contract.graphs.items() if graph.action
        }
        self.provided = {name: self.view(name) for name in PROVIDED}
        for view in self.provided.values():
            view[:] = np.nan
        self.phase: Float32Array = np.zeros(2, np.float32)
        self._fillers = self._choose(frozenset(used))

    def view(self, signal: str) -> Float32Array:
        """The part of the vector that holds one signal."""
        return self.values[self._slices[signal]]

    def span(self, signal: str) -> range:
        """Positions of one signal in the vector."""
        part = self._slices[signal]
        return range(part.start, part.stop)

    def reset(self, state: State, motion_index: int) -> None:
        """Start anew from `state`: last actions zero, clocks at their origin, the reference aligned."""
        for view in self.actions.values():
            view[:] = 0.0
        if self._gait is not None:
            self._gait.reset()
        if self._motion is not None:
            self._motion.reset(state, motion_index)

    def update(self, state: State, command: MotionCommand, step: int) -> None:
        """Refresh every signal in use for one tick; `step` is grid periods since the reset."""
        for fill in self._fillers:
            fill(state, command, step)

    def commit(self) -> None:
        """The tick counted: clocks keep what they saw. Last actions are the caller's to store."""
        if self._gait is not None:
            self._gait.commit()

    def _choose(self, used: frozenset[str]) -> list[Filler]:
        fillers: list[Filler] = []
        rows: tuple[tuple[frozenset[str], Callable[[], Filler]], ...] = (
            (frozenset({"q"}), self._joint_positions),
            (frozenset({"dq"}), self._joint_velocities),
            (frozenset({"gyro"}), self._gyro),
            (frozenset({"gravity"}), self._gravity),
            (frozenset({"roll_pitch"}), self._roll_pitch),
            (_COMMAND, self._command),
            (frozenset({"base_lin_vel_imu"}), self._imu_velocity),
        )
        for names, make in rows:
            if names & used:
                fillers.append(make())
        if self._gait is not None:
            fillers.append(self._gait_clock(self._gait))
        if self._motion is not None:
            fillers.append(self._reference(self._motion, "anchor" in used))
        return fillers

    def _joint_positions(self) -> Filler:
        view = self.view("q")
        return lambda state, _command, _step: np.copyto(view, state.q)

    def _joint_velocities(self) -> Filler:
        view = self.view("dq")
        return lambda state, _command, _step: np.copyto(view, state.dq)

    def _gyro(self) -> Filler:
        view = self.view("gyro")
        if self._contract.imu == "torso":
            return lambda state, _command, _step: np.copyto(view, state.torso_gyro)
        return lambda state, _command, _step: np.copyto(view, state.gyro_body)

    def _gravity(self) -> Filler:
        view, torso = self.view("gravity"), self._contract.imu == "torso"

        def fill(state: State, _command: MotionCommand, _step: int) -> None:
            view[:] = gravity_in_body((state.torso_quat_wxyz if torso else state.quat_wxyz).tolist())

        return fill

    def _roll_pitch(self) -> Filler:
        view, torso = self.view("roll_pitch"), self._contract.imu == "torso"

        def fill(state: State, _command: MotionCommand, _step: int) -> None:
            view[:] = roll_pitch_of((state.torso_quat_wxyz if torso else state.quat_wxyz).tolist())

        return fill

    def _imu_velocity(self) -> Filler:
        pelvis, view = self.view("base_lin_vel"), self.view("base_lin_vel_imu")
        x, y, z = self._imu_m

        def fill(state: State, _command: MotionCommand, _step: int) -> None:
            vx, vy, vz = pelvis.tolist()
            wx, wy, wz = state.gyro_body.tolist()
            view[:] = (vx + wy * z - wz * y, vy + wz * x - wx * z, vz + wx * y - wy * x)

        return fill

    def _command(self) -> Filler:
        start = self._slices["velocity"].start
        view = self.values[start : self._slices["waist"].stop]
        return lambda _state, command, _step: np.copyto(view, command.values)

    def _gait_clock(self, gait: GaitClock) -> Filler:
        sine, cosine, share = self.view("gait_sin"), self.view("gait_cos"), self.view("gait_phase")
        phase = self.phase[: len(share)]

        def fill(_state: State, command: MotionCommand, step: int) -> None:
            gait.update(step, command)
            phase[:] = gait.angles_rad
            sine[:] = [math.sin(angle) for angle in gait.angles_rad]
            cosine[:] = [math.cos(angle) for angle in gait.angles_rad]
            share[:] = [angle % TURN / TURN for angle in gait.angles_rad]

        return fill

    def _reference(self, motion: MotionPlayer, with_anchor: bool) -> Filler:
        table = self.values[self._slices["ref_q"].start : self._slices["ref_yaw_rate"].stop]
        anchor, share = self.view("anchor"), self.view("motion_phase")

        def fill(state: State, _command: MotionCommand, step: int) -> None:
            motion.seek(step)
            share[0] = motion.phase
            if motion.has_frames:
                np.copyto(table, motion.row)
            if with_anchor:
                anchor[:] = motion.anchor_columns(state)

        return fill


def _layout(
    contract: Contract, constants: Mapping[str, tuple[float, ...]], outputs: Mapping[str, int]
) -> dict[str, slice]:
    """Signal name to its part of the vector; parts that are copied together lie together."""
    feet = len(contract.gait.offsets_rad) if contract.gait else 0
    widths = dict(_FIXED)
    widths |= {name: feet for name in ("gait_sin", "gait_cos", "gait_phase")}
    widths |= {f"action:{n}": len(g.action.joints) for n, g in contract.graphs.items() if g.action}
    widths |= {name: len(numbers) for name, numbers in constants.items()} | dict(outputs)
    slices: dict[str, slice] = {}
    start = 0
    for name, width in widths.items():
        slices[name] = slice(start, start + width)
        start += width
    velocity = slices["velocity"].start
    slices["velocity_xy"] = slice(velocity, velocity + 2)
    slices["velocity_yaw"] = slice(velocity + 2, velocity + 3)
    return slices
