"""Can a term be filled: does the contract hold what it reads, and can the robot or a provider measure it?"""

from collections.abc import Mapping

import msgspec

from onboard.configs.errors import PolicyError
from onboard.policies.contract import Contract
from onboard.policies.inputs import Term
from onboard.policies.layout import terms_of
from onboard.policies.terms import CATALOGUE, PROVIDERS, Kind, kind_of, width_of

RESIDUAL_GRAPH = "(residual)"
"""Name of the graph that stands for a residual's network; no policy's graph is called so."""

_FRAME_SIGNALS = frozenset({"ref_q", "ref_dq", "anchor"})
_ROOT_SIGNALS = frozenset({"ref_velocity_xy", "ref_height", "ref_roll_pitch", "ref_yaw_rate"})


def check_term(
    contract: Contract, graph: str, term: Term, source_widths: Mapping[str, int], where: str
) -> None:
    """Refuse a term that can't be filled.

    Args:
        contract: that it belongs to.
        graph: name of the graph that reads it.
        term: as written.
        source_widths: `graph.output` to its width, of all graphs before this one.
        where: names file and graph in messages.

    Raises:
        PolicyError: unknown term, or something that it needs is missing.
    """
    kind = kind_of(term, where)
    at = f"{where}: term '{term.term}'"
    _check_source(contract, term, at)
    _check_needs(contract, term.source or graph if kind.width == "action" else graph, kind, at)
    if kind.residual and graph != RESIDUAL_GRAPH:
        raise PolicyError(f"{at} is for residuals alone; a policy's own last output is 'last_action'")
    if kind.privileged:
        _check_provider(contract, term, at)
    if term.term == "graph_output" and term.source not in source_widths:
        known = ", ".join(source_widths) or "none"
        raise PolicyError(
            f"{at}: source '{term.source}' is no output of a graph that runs before; there are: {known}"
        )
    if term.ahead and kind.signal not in _FRAME_SIGNALS | _ROOT_SIGNALS:
        raise PolicyError(f"{at} is not about the reference motion; leave 'ahead' out")
    if term.term == "constant" and bool(term.values) == bool(term.source):
        raise PolicyError(f"{at} has no 'values'; give them, or 'source' to name one of the constants")
    for joint in term.joints or ():
        if kind.width != "joints":
            raise PolicyError(f"{at} is not about joints; leave 'joints' out")
        if joint not in contract.joints:
            raise PolicyError(f"{at}: joint '{joint}' is not in the contract's joints")
    width = width_of(term, contract, graph, source_widths.get(term.source, 0))
    if isinstance(term.scale, tuple) and len(term.scale) != width:
        raise PolicyError(f"{at}: scale has {len(term.scale)} numbers, expected 1 or {width}")


def with_provider(contract: Contract, provider: str) -> tuple[Contract, list[str]]:
    """The contract with `provider` for privileged terms without one, and a sentence for each of them."""
    terms = {term.term for graph in contract.graphs for term in terms_of(contract, graph)}
    privileged = sorted(name for name in terms if name in CATALOGUE and CATALOGUE[name].privileged)
    missing = [name for name in privileged if name not in contract.providers]
    providers = contract.providers | dict.fromkeys(missing, provider)
    said = [
        f"providers.{name}: not stated, {provider} taken; on the robot it must be named with --set"
        for name in missing
    ]
    return msgspec.structs.replace(contract, providers=providers), said


def unstated_ranges(contract: Contract) -> list[str]:
    """A sentence for every velocity range that a policy which follows velocities does not state."""
    read = {term.term for graph in contract.graphs for term in terms_of(contract, graph)}
    keys = [key for key in ("lin_vel_x", "lin_vel_y", "ang_vel_z") if getattr(contract.commands, key) is None]
    if not keys or read.isdisjoint({"velocity", "velocity_xy", "velocity_yaw"}):
        return []
    return [f"commands: no range stated for {', '.join(keys)}; the runtime's own bounds apply"]


def _check_source(contract: Contract, term: Term, where: str) -> None:
    known: dict[str, Mapping[str, object]] = {"constant": contract.constants, "last_action": contract.graphs}
    if term.source and term.source not in known.get(term.term, {term.source: None}):
        names = ", ".join(known[term.term]) or "none"
        raise PolicyError(f"{where}: no '{term.source}' to be its source; there are: {names}")


def _check_needs(contract: Contract, graph: str, kind: Kind, where: str) -> None:
    if kind.width == "action" and contract.graphs[graph].action is None:
        raise PolicyError(
            f"{where}: this graph has no action to remember; read another graph's with graph_output"
        )
    if kind.width == "feet" and contract.gait is None:
        raise PolicyError(f"{where} needs the contract to say 'gait' (period_s, offsets_rad)")
    if kind.signal == "height" and contract.commands.height_m <= 0:
        raise PolicyError(f"{where} needs commands.height_m, the height asked for at first, m")
    motion = contract.motion
    if kind.signal in {"motion_phase", *_FRAME_SIGNALS, *_ROOT_SIGNALS} and motion is None:
        raise PolicyError(f"{where} needs the contract to say 'motion', the reference that it follows")
    source = motion.source if motion is not None else ""
    if kind.signal in _FRAME_SIGNALS | _ROOT_SIGNALS and source == "clock":
        raise PolicyError(f"{where} needs a reference with frames; this contract's motion is a mere clock")
    if kind.signal in _ROOT_SIGNALS and source == "onnx":
        raise PolicyError(f"{where} needs the reference's root; give the motion as a file")


def _check_provider(contract: Contract, term: Term, where: str) -> None:
    provider = contract.providers.get(term.term)
    if provider is None:
        raise PolicyError(
            f"{where} can't be measured on the robot and no provider is named; choose one of "
            f"{', '.join(PROVIDERS)}, for example --set providers.{term.term}={PROVIDERS[0]}"
        )
    if provider not in PROVIDERS:
        raise PolicyError(f"{where}: unknown provider '{provider}'; there are: {', '.join(PROVIDERS)}")
