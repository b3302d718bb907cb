"""Names for the elements of observations and actions, for tables and messages."""

from onboard.policies.bundle import PolicyBundle
from onboard.policies.layout import Placed, place
from onboard.policies.terms import kind_of


def observation_labels(bundle: PolicyBundle) -> list[str]:
    """One name per element of the observation: input, term, joint, age."""
    labels = []
    for graph in bundle.contract.graphs:
        for item in place(bundle.contract, graph, bundle.source_widths):
            age = f", {item.age} ticks before" if item.age else ""
            age += f", {item.term.ahead} ticks ahead" if item.term.ahead else ""
            labels += [
                f"{item.input}: {item.term.term} {part}{age}" for part in element_names(bundle, graph, item)
            ]
    return labels


def action_labels(bundle: PolicyBundle) -> list[str]:
    """One name per element of the raw action: its joint."""
    actions = [graph.action for graph in bundle.contract.graphs.values() if graph.action]
    return [joint for action in actions for joint in action.joints]


def element_names(bundle: PolicyBundle, graph: str, item: Placed) -> list[str]:
    """Names of the elements of one placed term: joints where it is about joints, else numbers."""
    contract = bundle.contract
    width = kind_of(item.term, contract.name).width
    if width == "joints":
        return list(item.term.joints or contract.observed_joints)
    action = contract.graphs[item.term.source or graph].action if width == "action" else None
    if width == "action" and action is not None:
        return list(action.joints)
    return [f"[{index}]" for index in range(item.stop - item.start)]
