"""One graph of a policy at run time: its inputs, its session, the state that it carries."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import RobotConfig
from onboard.policies.contract import Contract, Graph
from onboard.policies.layout import Placed, graph_sources, terms_of
from onboard.policies.model import Model
from onboard.policies.observation import Observer
from onboard.policies.session import OnnxSession
from onboard.policies.signals import Signals

Float32Array = NDArray[np.float32]


class GraphRunner:
    """Observes, runs and remembers for one graph of the contract.

    Attributes:
        outputs: by ONNX output name, flat arrays, overwritten by `run`.
    """

    def __init__(
        self,
        contract: Contract,
        name: str,
        model: Model,
        robot: RobotConfig,
        signals: Signals,
        placed: list[Placed],
        obs: Float32Array,
    ) -> None:
        """Load the model and bind it.

        Args:
            contract: checked against the model.
            name: of the graph.
            model: its file.
            robot: for the joints' slots.
            signals: what its terms read, and where its outputs go that other graphs read.
            placed: its terms with their slices.
            obs: where its term inputs are built, one after the other.
        """
        graph = contract.graphs[name]
        self._every = graph.every
        buffers = _split(placed, obs)
        self._observer = Observer(contract, name, robot, signals, placed, buffers)
        arrays: dict[str, NDArray[Any]] = {
            key: np.zeros(port.size, port.dtype) for key, port in model.info.inputs.items()
        }
        same = {key: buffer for key, buffer in buffers.items() if arrays[key].dtype == np.float32}
        self._casts = [(buffers[key], arrays[key]) for key in buffers.keys() - same.keys()]
        arrays |= same
        self._index_inputs = [arrays[key] for key in _carrying(graph, "motion_index")]
        self._first_inputs = [arrays[key] for key in _carrying(graph, "first_tick")]
        read = [output for source, output in graph_sources(contract) if source == name]
        wanted = {*graph.logged, *(pair.output for pair in graph.recurrent), *read}
        if graph.action is not None:
            wanted.add(graph.action.output)
        self._session = OnnxSession(model.path, arrays, tuple(wanted))
        self.outputs = self._session.outputs
        self._carried = [(arrays[pair.input], self.outputs[pair.output]) for pair in graph.recurrent]
        self._published = [(self.outputs[key], signals.view(f"output:{name}.{key}")) for key in read]
        self._reads_graphs = any(term.term == "graph_output" for term in terms_of(contract, name))
        self._last_run: int | None = None
        self._due_at: int | None = None

    def observe(self, step: int, motion_index: int) -> None:
        """Build the inputs, in ticks in which the graph is due."""
        due = self._last_run is None or step - self._last_run >= self._every
        self._due_at = step if due else None
        if not due:
            return
        self._observer.build()
        for array in self._index_inputs:
            array[:] = motion_index
        for array in self._first_inputs:
            array[:] = self._last_run is None

    def run(self) -> None:
        """Run the model if it is due; else its outputs stay.

        Raises:
            PolicyError: the runtime failed inside the graph.
        """
        if self._due_at is None:
            return
        if self._reads_graphs:
            self._observer.build()  # once more: what it reads has only now been computed
        for buffer, array in self._casts:
            array[:] = buffer
        self._session.run()
        for output, view in self._published:
            view[:] = output

    def warm(self) -> None:
        """Build and run without counting a tick; overwrites the inputs and outputs."""
        self._observer.build()
        self._session.run()

    def commit(self) -> None:
        """The tick counted: history and carried state advance."""
        if self._due_at is None:
            return
        self._last_run, self._due_at = self._due_at, None
        self._observer.advance()
        for array, output in self._carried:
            array[:] = output

    def reset(self) -> None:
        """Forget all frames and carried state."""
        self._observer.reset()
        self._last_run = self._due_at = None
        for array, _ in self._carried:
            array[:] = 0


def _split(placed: list[Placed], obs: Float32Array) -> dict[str, Float32Array]:
    """Each term input's part of the graph's stretch of the observation."""
    widths = {item.input: item.stop for item in placed}
    buffers = {}
    start = 0
    for name, width in widths.items():
        buffers[name] = obs[start : start + width]
        start += width
    return buffers


def _carrying(graph: Graph, what: str) -> list[str]:
    return [name for name, spec in graph.inputs.items() if spec.carries == what]
