"""What a policy saw in training: mean and deviation of its inputs, where a normaliser holds them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onboard.policies.bundle import PolicyBundle
from onboard.policies.fingerprint.onnx_weights import DEEPEST, Node, WeightReader

Floats = NDArray[np.float64]

_TRANSPARENT = ("Identity", "Cast", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Clip")


@dataclass(frozen=True)
class Statistics:
    """Of one input.

    Attributes:
        graph, input: which.
        mean, deviation: (N,) in the units of the contract's observation.
        origin: `graph` or `contract`, where the normaliser sits.
    """

    graph: str
    input: str
    mean: Floats
    deviation: Floats
    origin: str


def training_statistics(bundle: PolicyBundle) -> list[Statistics]:
    """Statistics of every input that has a normaliser, in its graph or in the contract."""
    found = []
    for name, graph in bundle.contract.graphs.items():
        reader = WeightReader(bundle.models[name].path)
        for port, spec in graph.inputs.items():
            if not spec.blocks:
                continue
            if spec.normaliser is not None:
                mean, deviation = np.array(spec.normaliser.mean), np.array(spec.normaliser.deviation)
                found.append(Statistics(name, port, mean, deviation, "contract"))
                continue
            pair = _inside(reader, port, bundle.models[name].info.inputs[port].size)
            if pair is not None:
                found.append(Statistics(name, port, *pair, "graph"))
    return found


def inner_statistics(path: Path, port: str, width: int) -> tuple[Floats, Floats] | None:
    """Mean and deviation by which a graph normalises one of its inputs; None where it does not.

    Raises:
        PolicyError: the file can't be read.
    """
    return _inside(WeightReader(path), port, width)


def twice_normalised(bundle: PolicyBundle) -> list[str]:
    """Inputs that the contract normalises and the graph once more, one sentence each."""
    return [
        f"{name}.{port}: normalised by the contract, and by the graph once more: one of them is too much"
        for name, graph in bundle.contract.graphs.items()
        for port, spec in graph.inputs.items()
        if spec.normaliser is not None
        and inner_statistics(bundle.models[name].path, port, bundle.models[name].info.inputs[port].size)
    ]


def _inside(reader: WeightReader, port: str, width: int, level: int = 0) -> tuple[Floats, Floats] | None:
    """`(x - mean) / deviation` with constants, as exporters write it, right behind the input."""
    for node in reader.readers(port):
        if node.op in _TRANSPARENT and level < DEEPEST:
            pair = _inside(reader, node.outputs[0], width, level + 1)
            if pair is not None:
                return pair
        if node.op == "Sub" and node.inputs[0] == port:
            mean = reader.constant(node.inputs[1])
            if mean is not None and mean.size == width:
                return _with_deviation(reader, node, mean)
    return None


def _with_deviation(reader: WeightReader, subtraction: Node, mean: Floats) -> tuple[Floats, Floats] | None:
    (difference,) = subtraction.outputs
    for node in reader.readers(difference):
        others = [name for name in node.inputs if name != difference]
        factor = reader.constant(others[0]) if len(others) == 1 else None
        if node.op not in ("Div", "Mul") or factor is None or factor.size not in (1, mean.size):
            continue
        factor = np.broadcast_to(factor, mean.shape)
        return mean, factor if node.op == "Div" else 1.0 / factor
    return None
