"""Observations: one graph's inputs, rebuilt every tick from the signals.

Built once into a plan of indices and factors. Per tick and graph: gather the present frame from the
signals, subtract offsets, scale, clip; then gather all inputs from the window of past frames. The same
states and commands give the same bits, whatever ran before.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import RobotConfig
from onboard.policies.contract import Contract
from onboard.policies.history import FrameWindow
from onboard.policies.inputs import Input
from onboard.policies.layout import Placed, signal_of
from onboard.policies.signals import Signals
from onboard.policies.terms import kind_of

Float32Array = NDArray[np.float32]


class Observer:
    """Builds the term inputs of one graph."""

    def __init__(
        self,
        contract: Contract,
        graph: str,
        robot: RobotConfig,
        signals: Signals,
        placed: list[Placed],
        buffers: Mapping[str, Float32Array],
    ) -> None:
        """Make the plan.

        Args:
            contract: checked.
            graph: whose inputs are built.
            robot: for the joints' slots.
            signals: what the terms read.
            placed: every term with its slice (`onboard.policies.layout.place`).
            buffers: per term input, the (N,) array that `build` writes.
        """
        frame = _Frame(contract, graph, robot, signals)
        columns = [frame.columns(item) for item in placed]
        window = FrameWindow(1 + max((item.age for item in placed), default=0), len(frame.source))
        self._window = window
        self._signals = signals.values
        self._source = np.array(frame.source, np.intp)
        self._offset = np.array(frame.offset, np.float32)
        self._scale = np.array(frame.scale, np.float32)
        self._bounds = frame.bounds()
        self._repeat_first = np.array(frame.first_frame, np.bool_)
        self._fresh = True
        positions: dict[str, list[int]] = {name: [] for name in buffers}
        for item, span in zip(placed, columns, strict=True):
            positions[item.input] += [window.index(item.age, column) for column in span]
        self._gathers = [(np.array(positions[name], np.intp), buffer) for name, buffer in buffers.items()]
        inputs = contract.graphs[graph].inputs
        self._finishers = [_Finisher(inputs[name], buffer) for name, buffer in buffers.items()]
        self._finishers = [finisher for finisher in self._finishers if finisher.needed]

    def build(self) -> None:
        """Write every input for this tick into its buffer; until `advance`, again and again if need be."""
        frame = self._window.present
        self._signals.take(self._source, out=frame, mode="clip")
        np.subtract(frame, self._offset, out=frame)
        np.multiply(frame, self._scale, out=frame)
        if self._bounds is not None:
            np.maximum(frame, self._bounds[0], out=frame)
            np.minimum(frame, self._bounds[1], out=frame)
        if self._fresh and self._window.depth > 1:
            self._window.repeat_present(self._repeat_first)
        flat = self._window.flat
        for positions, buffer in self._gathers:
            flat.take(positions, out=buffer, mode="clip")
        for finisher in self._finishers:
            finisher.run()

    def advance(self) -> None:
        """The tick counted: its frame becomes history."""
        self._fresh = False
        if self._window.depth > 1:
            self._window.advance()

    def reset(self) -> None:
        """Forget all frames."""
        self._window.clear()
        self._fresh = True


class _Frame:
    """The present frame while the plan is made: one entry per number, equal terms only once."""

    def __init__(self, contract: Contract, graph: str, robot: RobotConfig, signals: Signals) -> None:
        self._contract, self._graph, self._robot, self._signals = contract, graph, robot, signals
        self._default = dict(zip(contract.joints, contract.default_rad, strict=True))
        self._known: dict[tuple[object, bool], range] = {}
        self.source: list[int] = []
        self.offset: list[float] = []
        self.scale: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.first_frame: list[bool] = []

    def columns(self, item: Placed) -> range:
        """Columns of one placed term, added when they are new."""
        key = (item.term, item.first_frame)
        if key not in self._known:
            self._known[key] = self._add(item)
        return self._known[key]

    def bounds(self) -> tuple[Float32Array, Float32Array] | None:
        """Bounds of the scaled values; None where no term is clipped."""
        lower, upper = np.array(self.lower, np.float32), np.array(self.upper, np.float32)
        return (lower, upper) if np.isfinite(lower).any() or np.isfinite(upper).any() else None

    def _add(self, item: Placed) -> range:
        term, kind = item.term, kind_of(item.term, self._contract.name)
        first, width = len(self.source), item.stop - item.start
        span = self._signals.span(signal_of(term, self._graph))
        offset = [0.0] * width
        if kind.width == "joints":
            joints = term.joints or self._contract.observed_joints
            span_of_joints = [span[self._robot.slot(joint)] for joint in joints]
            self.source += span_of_joints
            if kind.relative:
                offset = [self._default[joint] for joint in joints]
        else:
            self.source += span
        self.offset += offset
        scale = np.broadcast_to(np.array(term.scale, np.float32), (width,))
        self.scale += scale.tolist()
        lower, upper = term.clip if term.clip is not None else (-np.inf, np.inf)
        ends = np.array([[lower] * width, [upper] * width], np.float32)
        if term.clip is not None and term.clip_first:
            ends = np.sort(ends * scale, axis=0)
        self.lower += ends[0].tolist()
        self.upper += ends[1].tolist()
        self.first_frame += [item.first_frame] * width
        return range(first, first + width)


class _Finisher:
    """What is done to one assembled input: normalise, clip."""

    def __init__(self, spec: Input, buffer: Float32Array) -> None:
        self._buffer = buffer
        self._clip = spec.clip
        self._statistics = None
        self._limit = None
        if spec.normaliser is not None:
            mean = np.array(spec.normaliser.mean, np.float32)
            deviation = np.array(spec.normaliser.deviation, np.float64) + spec.normaliser.epsilon
            self._statistics = mean, deviation.astype(np.float32)
            self._limit = spec.normaliser.clip
        self.needed = self._statistics is not None or self._clip is not None

    def run(self) -> None:
        buffer = self._buffer
        if self._statistics is not None:
            np.subtract(buffer, self._statistics[0], out=buffer)
            np.divide(buffer, self._statistics[1], out=buffer)
        if self._limit is not None:
            np.clip(buffer, -self._limit, self._limit, out=buffer)
        if self._clip is not None:
            np.clip(buffer, self._clip[0], self._clip[1], out=buffer)
