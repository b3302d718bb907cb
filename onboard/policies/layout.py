"""Where every term of a contract stands in its inputs; the one place that knows block layouts."""

from collections.abc import Mapping
from dataclasses import dataclass

from onboard.policies.contract import Contract
from onboard.policies.inputs import Block, Term
from onboard.policies.terms import kind_of, width_of


@dataclass(frozen=True)
class Placed:
    """One frame of one term in an input.

    Attributes:
        input: ONNX input name.
        start, stop: in that input.
        term: the contract's.
        age: ticks, 0 for the present.
        first_frame: ticks before the reset are filled with the first one, else with zeros.
        place: number of the block in the input, and of the term in the block.
    """

    input: str
    start: int
    stop: int
    term: Term
    age: int
    first_frame: bool
    place: tuple[int, int]


def place(contract: Contract, graph: str, source_widths: Mapping[str, int]) -> list[Placed]:
    """Every term of a graph's inputs with its slice, in the order of the inputs.

    Args:
        contract: whose terms are all in the catalogue.
        graph: one of its graphs.
        source_widths: `graph.output` to its width, for `graph_output` terms.
    """
    placed: list[Placed] = []
    for name, spec in contract.graphs[graph].inputs.items():
        start = 0
        for number, block in enumerate(spec.blocks):
            for position, age in _order(block):
                term = block.terms[position]
                stop = start + width_of(term, contract, graph, source_widths.get(term.source, 0))
                first_frame = block.fill == "first_frame"
                placed.append(Placed(name, start, stop, term, age, first_frame, (number, position)))
                start = stop
    return placed


def signal_of(term: Term, graph: str) -> str:
    """Name of the signal that a term of a graph reads."""
    signal = kind_of(term, graph).signal
    if signal == "action":
        return f"action:{term.source or graph}"
    if signal == "graph_output":
        return f"output:{term.source}"
    if signal == "constant":
        return constant_name(term)
    return ahead_name(signal, term.ahead)


def ahead_name(signal: str, ahead: int) -> str:
    """Name of a signal of the reference as it will be some ticks later."""
    return f"{signal}@{ahead}" if ahead else signal


def constant_name(term: Term) -> str:
    """Signal name of a `constant` term's numbers."""
    return f"constant:{term.source or term.values}"


def terms_of(contract: Contract, graph: str) -> list[Term]:
    """All terms of one graph, in order, repetitions included."""
    inputs = contract.graphs[graph].inputs.values()
    return [term for spec in inputs for block in spec.blocks for term in block.terms]


def graph_sources(contract: Contract) -> list[tuple[str, str]]:
    """Every (graph, output) that some graph of the contract reads, each once."""
    terms = [term for graph in contract.graphs for term in terms_of(contract, graph)]
    sources = {term.source: None for term in terms if term.term == "graph_output"}
    pairs = [source.partition(".") for source in sources]
    return [(graph, output) for graph, _, output in pairs]


def _order(block: Block) -> list[tuple[int, int]]:
    """Position of the term and age of the frame, for everything in a block."""
    positions = range(len(block.terms))
    if block.layout == "frame_major":
        return [(position, age) for age in block.ages for position in positions]
    return [(position, age) for position in positions for age in block.ages]
