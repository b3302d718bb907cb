"""One normalised input as the contract explains it: term by term, mean and deviation in training."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from onboard.policies.bundle import PolicyBundle
from onboard.policies.fingerprint.statistics import Statistics, training_statistics
from onboard.policies.labels import element_names
from onboard.policies.layout import Placed, place
from onboard.policies.session import OnnxSession
from onboard.policies.terms import kind_of

Floats = NDArray[np.float64]

SAMPLES = 300
SPREAD = 0.5
"""Inputs drawn around the mean, this share of the deviation wide: near enough to be what a policy knows."""


@dataclass(frozen=True)
class Seen:
    """One frame of one term in training.

    Attributes:
        placed: where it stands.
        joints: names of its elements; empty where it is not about joints.
        scale: (W,) the contract's.
        mean, deviation: (W,) of the elements as the network gets them, scaled.
    """

    placed: Placed
    joints: tuple[str, ...]
    scale: Floats
    mean: Floats
    deviation: Floats

    @property
    def raw_mean(self) -> Floats:
        """Mean before the contract's scale; NaN where that is 0."""
        return self.mean / np.where(self.scale == 0.0, np.nan, self.scale)

    @property
    def raw_deviation(self) -> Floats:
        """Deviation before the contract's scale; NaN where that is 0."""
        return self.deviation / np.abs(np.where(self.scale == 0.0, np.nan, self.scale))


class TrainedView:
    """One input of one graph, explained.

    Attributes:
        bundle: that it belongs to.
        statistics: of the input.
        seen: every term and frame in it.
        name: `graph.input`.
    """

    def __init__(self, bundle: PolicyBundle, statistics: Statistics) -> None:
        self.bundle = bundle
        self.statistics = statistics
        self.name = f"{statistics.graph}.{statistics.input}"
        self.seen = list(self._explain())

    def _explain(self) -> Iterator[Seen]:
        graph, statistics = self.statistics.graph, self.statistics
        for item in place(self.bundle.contract, graph, self.bundle.source_widths):
            if item.input != statistics.input:
                continue
            part = slice(item.start, item.stop)
            about_joints = kind_of(item.term, graph).width in ("joints", "action")
            yield Seen(
                placed=item,
                joints=tuple(element_names(self.bundle, graph, item)) if about_joints else (),
                scale=np.broadcast_to(np.array(item.term.scale, float), (item.stop - item.start,)),
                mean=statistics.mean[part],
                deviation=statistics.deviation[part],
            )

    def newest(self, term: str) -> Seen | None:
        """The youngest frame of a term; None where the input does not have it."""
        frames = [seen for seen in self.seen if seen.placed.term.term == term]
        return min(frames, key=lambda seen: seen.placed.age, default=None)

    def of_joints(self, values: Sequence[float], joints: Sequence[str]) -> Floats:
        """A per-joint list of the contract, picked and ordered as `joints`."""
        by_name = dict(zip(self.bundle.contract.joints, values, strict=True))
        return np.array([by_name[joint] for joint in joints])

    @cached_property
    def mean_output(self) -> Floats:
        """(A,) mean raw action of the graph on inputs drawn around the mean of training."""
        statistics, model = self.statistics, self.bundle.models[self.statistics.graph]
        action = self.bundle.contract.graphs[statistics.graph].action
        if action is None:
            return np.zeros(0)
        arrays = {name: np.zeros(port.size, port.dtype) for name, port in model.info.inputs.items()}
        session = OnnxSession(model.path, arrays, (action.output,))
        rng = np.random.default_rng(0)
        total: Floats = np.zeros(len(action.joints))
        for _ in range(SAMPLES):
            drawn = SPREAD * rng.normal(size=statistics.mean.size)
            inside = statistics.origin == "graph"
            arrays[statistics.input][:] = statistics.mean + statistics.deviation * drawn if inside else drawn
            session.run()
            total += session.outputs[action.output].astype(np.float64)
        return total / SAMPLES


def trained_views(bundle: PolicyBundle) -> list[TrainedView]:
    """A view of every input that has a normaliser."""
    return [TrainedView(bundle, statistics) for statistics in training_statistics(bundle)]
