"""Everything that any term can read, in one float32 vector that is refreshed once a tick.

The observation plans of all graphs index into this vector, so a tick costs a few copies here and one
gather per graph, however many terms there are.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.policies import fillers
from onboard.policies.command import MotionCommand
from onboard.policies.contract import Contract
from onboard.policies.fillers import Filler
from onboard.policies.layout import ahead_name
from onboard.policies.motion import MotionPlayer
from onboard.policies.phase import GaitClock
from onboard.runtime.link import State

Float32Array = NDArray[np.float32]

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
    "asked_action": N_JOINTS,
    "asked_target": N_JOINTS,
    "asked_error": N_JOINTS,
}
"""Signals of fixed width, in the order of the vector. Joint signals are in SDK motor order."""

REFERENCE = ("ref_q", "ref_dq", "ref_velocity_xy", "ref_height", "ref_roll_pitch", "ref_yaw_rate", "anchor")
"""Signals of the reference that can be looked at ahead of time; together a row of it, then the anchor."""

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
        phase: (2,) gait clock, rad.
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
        self._gait = GaitClock(contract.gait, 1.0 / contract.rate_hz) if contract.gait else None
        wanted = frozenset(used)
        self._slices = _layout(contract, wanted, constants, outputs)
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
        self._fillers = self._choose(wanted, robot.imu.pelvis_m)

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

    def _reference_row(self, ahead: int) -> Float32Array:
        """Everything that a row of the reference holds, in its order."""
        first, last = (self._slices[ahead_name(name, ahead)] for name in (REFERENCE[0], REFERENCE[-2]))
        return self.values[first.start : last.stop]

    def _choose(self, used: frozenset[str], imu_m: tuple[float, ...]) -> list[Filler]:
        view, torso = self.view, self._contract.imu == "torso"
        start = self._slices["velocity"].start
        whole_command = self.values[start : self._slices["waist"].stop]
        rows: tuple[tuple[frozenset[str], Filler], ...] = (
            (frozenset({"q"}), fillers.joint_positions(view("q"))),
            (frozenset({"dq"}), fillers.joint_velocities(view("dq"))),
            (frozenset({"gyro"}), fillers.gyro(view("gyro"), torso)),
            (frozenset({"gravity"}), fillers.gravity(view("gravity"), torso)),
            (frozenset({"roll_pitch"}), fillers.roll_pitch(view("roll_pitch"), torso)),
            (_COMMAND, fillers.command(whole_command)),
            (
                frozenset({"base_lin_vel_imu"}),
                fillers.imu_velocity(view("base_lin_vel_imu"), view("base_lin_vel"), imu_m),
            ),
        )
        chosen = [fill for names, fill in rows if names & used]
        if self._gait is not None:
            sine, cosine, share = view("gait_sin"), view("gait_cos"), view("gait_phase")
            chosen.append(fillers.gait(self._gait, sine, cosine, share, self.phase[: len(share)]))
        if self._motion is not None:
            chosen.append(
                fillers.reference(self._motion, self._reference_row(0), view("motion_phase"), view("anchor"))
            )
            chosen += [
                fillers.reference_ahead(
                    self._motion, self._reference_row(ahead), view(ahead_name("anchor", ahead)), ahead
                )
                for ahead in _aheads(used)
            ]
        return chosen


def _aheads(used: Iterable[str]) -> list[int]:
    """How many ticks ahead the reference is looked at, without the present."""
    return sorted({int(name.partition("@")[2]) for name in used if "@" in name})


def _layout(
    contract: Contract,
    used: Iterable[str],
    constants: Mapping[str, tuple[float, ...]],
    outputs: Mapping[str, int],
) -> dict[str, slice]:
    """Signal name to its part of the vector; parts that are copied together lie together."""
    feet = len(contract.gait.offsets_rad) if contract.gait else 0
    widths = dict(_FIXED)
    widths |= {name: feet for name in ("gait_sin", "gait_cos", "gait_phase")}
    widths |= {f"action:{n}": len(g.action.joints) for n, g in contract.graphs.items() if g.action}
    for ahead in _aheads(used):
        widths |= {ahead_name(name, ahead): _FIXED[name] for name in REFERENCE}
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
