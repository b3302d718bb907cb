"""A bundle as plain data: every slice of the input, every joint, what was filled in; for tables and JSON."""

from typing import Any

import msgspec

from onboard.policies.bundle import PolicyBundle
from onboard.policies.labels import element_names
from onboard.policies.layout import Placed, place
from onboard.policies.terms import kind_of

Row = dict[str, Any]


def describe(bundle: PolicyBundle) -> dict[str, Any]:
    """Everything that `policy show` shows."""
    contract = bundle.contract
    return {
        "name": bundle.name,
        "format": bundle.format,
        "preset": bundle.preset,
        "overrides": list(bundle.overrides),
        "models": bundle.model_paths,
        "rate_hz": contract.rate_hz,
        "imu": contract.imu,
        "inputs": [row for graph in contract.graphs for row in _input_rows(bundle, graph)],
        "outputs": [row for graph in contract.graphs for row in _output_rows(bundle, graph)],
        "joints": _joint_rows(bundle),
        "motion_frames": len(bundle.motion_frames) if bundle.motion_frames is not None else None,
        "defaults": list(bundle.defaults),
        "contract": msgspec.to_builtins(contract),
    }


def _input_rows(bundle: PolicyBundle, graph: str) -> list[Row]:
    spec = bundle.contract.graphs[graph]
    rows: list[Row] = []
    groups: dict[tuple[str, tuple[int, int]], list[Placed]] = {}
    for item in place(bundle.contract, graph, bundle.source_widths):
        groups.setdefault((item.input, item.place), []).append(item)
    for items in groups.values():
        first = items[0]
        kind = kind_of(first.term, bundle.name)
        rows.append(
            {
                "graph": graph,
                "input": first.input,
                "start": first.start,
                "width": first.stop - first.start,
                "stride": items[1].start - first.start if len(items) > 1 else 0,
                "term": first.term.term,
                "about": kind.about,
                "ages": [item.age for item in items],
                "ahead": first.term.ahead,
                "fill": "first frame" if first.first_frame else "zeros",
                "scale": first.term.scale,
                "clip": first.term.clip,
                "elements": element_names(bundle, graph, first),
            }
        )
    special: list[tuple[str, str]] = [(n, i.carries) for n, i in spec.inputs.items() if not i.blocks]
    special += [(pair.input, f"state from {pair.output}") for pair in spec.recurrent]
    for name, carries in special:
        width = bundle.models[graph].info.inputs[name].size
        rows.append({"graph": graph, "input": name, "start": 0, "width": width, "term": carries})
    return rows


def _output_rows(bundle: PolicyBundle, graph: str) -> list[Row]:
    spec = bundle.contract.graphs[graph]
    rows = []
    for name, port in bundle.models[graph].info.outputs.items():
        uses = [f"state to {pair.input}" for pair in spec.recurrent if pair.output == name]
        uses += ["logged"] if name in spec.logged else []
        uses += ["action"] if spec.action is not None and spec.action.output == name else []
        rows.append({"graph": graph, "output": name, "width": port.size, "use": uses or ["not used"]})
    return rows


def _joint_rows(bundle: PolicyBundle) -> list[Row]:
    contract = bundle.contract
    driven: dict[str, Row] = {}
    for name, graph in contract.graphs.items():
        action = graph.action
        if action is None:
            continue
        for index, joint in enumerate(action.joints):
            scale = action.scale[index] if isinstance(action.scale, tuple) else action.scale
            base = action.base[index] if isinstance(action.base, tuple) else action.base
            driven[joint] = {"driven_by": name, "element": index, "scale": scale, "base": base}
    columns = zip(
        contract.joints,
        contract.kp,
        contract.kd,
        contract.default_rad,
        bundle.start_rad,
        contract.hold_rad,
        strict=True,
    )
    return [
        {"joint": joint, "kp": kp, "kd": kd, "default_rad": default, "start_rad": start, "hold_rad": hold}
        | driven.get(joint, {"driven_by": None, "element": None, "scale": None, "base": "hold"})
        for joint, kp, kd, default, start, hold in columns
    ]
