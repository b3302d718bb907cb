"""A policy at run time: observe, infer, target, commit.

Nothing that a tick computes is remembered before `commit`, so a tick whose output was bad, or that ran
outside mode `policy`, leaves no trace: histories, last action, recurrent state and gait clocks stay.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.policies.action import ActionMap
from onboard.policies.bundle import PolicyBundle
from onboard.policies.command import MotionCommand
from onboard.policies.graph import GraphRunner
from onboard.policies.layout import constant_name, place, signal_of, terms_of
from onboard.policies.motion import MotionPlayer
from onboard.policies.signals import Signals
from onboard.runtime.link import State

Float32Array = NDArray[np.float32]


class Policy:
    """Built once from a bundle; every array it returns is its own and is overwritten by the next tick.

    Attributes:
        bundle: what it was built from.
        kp, kd: (29,) gains, N·m/rad and N·m·s/rad, SDK order, 0 where the robot has no joint.
        start_pose: (29,) rad, where the robot should be when the policy starts.
        obs: (N,) all inputs of all graphs, one after the other.
        raw: (A,) the raw actions of all graphs, one after the other.
        extras: logged outputs, `graph.output` to its array.
        phase: (2,) rad, gait clock, left and right; zeros where the policy has none.
        hold: (29,) rad, what undriven joints hold and `hold_pos` terms show; may be overwritten.
        provided: privileged signals by name; their provider writes them before `observe`.
    """

    def __init__(self, bundle: PolicyBundle, robot: RobotConfig) -> None:
        contract = bundle.contract
        self.bundle = bundle
        self._motion = _player(bundle, robot)
        self._signals = _signals(bundle, robot, self._motion)
        self._reference_q: Float32Array = self._signals.view("ref_q")
        self.hold, self.provided, self.phase = self._signals.hold, self._signals.provided, self._signals.phase
        self._map = ActionMap(contract, robot, self.hold, self._reference_q)
        self.obs, self._graphs = _graphs(bundle, robot, self._signals)
        self._runners = list(self._graphs.values())
        self.raw: Float32Array = np.zeros(self._map.width, np.float32)
        self._parts = self._raw_parts()
        self.extras = {
            f"{name}.{output}": self._graphs[name].outputs[output]
            for name, graph in contract.graphs.items()
            for output in graph.logged
        }
        slots = [robot.slot(joint) for joint in contract.joints]
        self.kp, self.kd = _by_slot(slots, contract.kp), _by_slot(slots, contract.kd)
        self.start_pose = _by_slot(slots, bundle.start_rad)
        self._target = self.start_pose.copy()
        self._scratch = self.start_pose.copy()
        self._last = (State(), self.neutral_command(), 0)

    @property
    def motion_index(self) -> int:
        """Frame of the reference motion that the last observation used; -1 without a motion."""
        return self._motion.index if self._motion is not None else -1

    @property
    def has_motion(self) -> bool:
        """It follows a reference motion."""
        return self._motion is not None

    @property
    def reference_q(self) -> Float32Array | None:
        """(29,) rad, reference joint positions of the last observation; None without such a reference."""
        return self._reference_q if self.bundle.motion_frames is not None else None

    @property
    def motion_done(self) -> bool:
        """The reference motion has come to its end and does not loop."""
        return self._motion is not None and self._motion.done

    @property
    def hands_over(self) -> bool:
        """The motion has ended and, by the contract, the policy that ran before takes over."""
        motion = self.bundle.contract.motion
        return self.motion_done and motion is not None and motion.at_end == "hand_over"

    def neutral_command(self) -> MotionCommand:
        """A command that asks for nothing: zero velocity, the contract's height."""
        return MotionCommand(self.bundle.contract.commands.height_m)

    def reset(self, state: State, motion_index: int = 0) -> None:
        """Start anew: histories as the contract fills them, last action zero, clocks at their origin.

        Args:
            state: the robot now; the reference motion is aligned with it.
            motion_index: frame that the reference starts at.
        """
        self._signals.reset(state, motion_index)
        for runner in self._runners:
            runner.reset()
        self._last = (state, self.neutral_command(), 0)

    def observe(self, state: State, command: MotionCommand, step: int) -> Float32Array:
        """Build the observation (N,) of one tick.

        Args:
            state: newest state.
            command: the operator's.
            step: grid periods since the reset, skipped ones included.
        """
        self._last = (state, command, step)
        self._signals.update(state, command, step)
        index = self.motion_index
        for runner in self._runners:
            runner.observe(step, index)
        return self.obs

    def infer(self) -> Float32Array:
        """Run the graphs on the last observation; returns the raw action (A,).

        Raises:
            PolicyError: the runtime failed inside a graph.
        """
        for runner in self._runners:
            runner.run()
        for part, output in self._parts:
            part[:] = output
        return self.raw

    def target(self, base: Float32Array) -> Float32Array:
        """Joint targets (29,), rad, SDK order, for a raw action (A,); the contract's own clips applied."""
        return self._map.apply(base, self._target)

    def commit(self, base: Float32Array) -> None:
        """The tick counted: histories advance, `base` (A,) becomes the last action.

        Raises:
            ValueError: `base` has another length than the raw action.
        """
        if base.shape != self.raw.shape:
            raise ValueError(f"the raw action has shape {self.raw.shape}, found {base.shape}")
        self._signals.commit()
        start = 0
        for view in self._signals.actions.values():
            view[:] = base[start : start + len(view)]
            start += len(view)
        for runner in self._runners:
            runner.commit()

    def warm(self) -> None:
        """Go through the code and the models once so that they are in the caches; changes nothing."""
        products = [
            self.obs,
            self.raw,
            self.phase,
            *(array for r in self._runners for array in r.outputs.values()),
        ]
        kept = [array.copy() for array in products]
        self._signals.update(*self._last)
        for runner in self._runners:
            runner.warm()
        self._map.apply(self.raw, self._scratch)
        for array, values in zip(products, kept, strict=True):
            array[:] = values

    def provide_base_velocity(self, velocity_body: Sequence[float]) -> None:
        """Hand over the velocity of the pelvis in its own frame (3,), m/s, for the terms that need it.

        The velocity of the IMU's site follows from it with the gyro of the next observed state.
        """
        self.provided["base_lin_vel"][:] = velocity_body

    def _raw_parts(self) -> list[tuple[Float32Array, NDArray[np.generic]]]:
        """For every graph with an action: its part of `raw` and the output that it is copied from."""
        parts = []
        start = 0
        for name, graph in self.bundle.contract.graphs.items():
            if graph.action is not None:
                stop = start + len(graph.action.joints)
                parts.append((self.raw[start:stop], self._graphs[name].outputs[graph.action.output]))
                start = stop
        return parts


def _player(bundle: PolicyBundle, robot: RobotConfig) -> MotionPlayer | None:
    contract = bundle.contract
    if contract.motion is None:
        return None
    return MotionPlayer(contract.motion, bundle.motion_frames, robot, 1.0 / contract.rate_hz)


def _signals(bundle: PolicyBundle, robot: RobotConfig, motion: MotionPlayer | None) -> Signals:
    contract = bundle.contract
    terms = [(term, name) for name in contract.graphs for term in terms_of(contract, name)]
    return Signals(
        contract,
        robot,
        used={signal_of(term, graph) for term, graph in terms},
        motion=motion,
        constants={
            constant_name(term): contract.constants[term.source].values if term.source else term.values
            for term, _ in terms
            if term.term == "constant"
        },
        outputs={f"output:{source}": width for source, width in bundle.source_widths.items()},
    )


def _graphs(
    bundle: PolicyBundle, robot: RobotConfig, signals: Signals
) -> tuple[Float32Array, dict[str, GraphRunner]]:
    """The observation's memory and the graphs that fill it, one after the other."""
    contract = bundle.contract
    placed = {name: place(contract, name, bundle.source_widths) for name in contract.graphs}
    widths = {name: sum({item.input: item.stop for item in items}.values()) for name, items in placed.items()}
    obs: Float32Array = np.zeros(sum(widths.values()), np.float32)
    runners = {}
    start = 0
    for name, width in widths.items():
        part = obs[start : start + width]
        runners[name] = GraphRunner(contract, name, bundle.models[name], robot, signals, placed[name], part)
        start += width
    return obs, runners


def _by_slot(slots: list[int], values: tuple[float, ...]) -> Float32Array:
    full: Float32Array = np.zeros(N_JOINTS, np.float32)
    full[slots] = values
    return full
