"""What a residual adds to a tick, hot: `python -m benchmarks.residual`.

A policy of 29 joints answers the same raw action again and again; the slot combines it with the residual
and commits, 5000 times, and the median is what counts. Goals: the linear delta of twelve joints below
10 us, a network of three layers of 128 on 10 steps of history of four joints below 60 us. Exit code 0:
both are met.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper
from rich import box
from rich.console import Console
from rich.table import Table

from onboard.configs.errors import OnboardError
from onboard.configs.events import Arm
from onboard.configs.robot import load_robot
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy
from onboard.policies.residual.delta import Asked
from onboard.policies.residual.files import load_residual
from onboard.policies.residual.slot import ResidualSlot
from onboard.runtime.link import State

POLICY = "holosoma_loco_ppo"
TICKS = 5000
LINEAR_US, NETWORK_US = 10.0, 60.0
ANKLES = tuple(f"{side}_ankle_{axis}_joint" for side in ("left", "right") for axis in ("pitch", "roll"))
HISTORY = {"frames": 10, "layout": "frame_major", "order": "oldest_first", "current": True, "fill": "zeros"}
TERMS = ("target_error", "joint_pos", "joint_vel")
WIDTH = 10 * len(TERMS) * len(ANKLES) + 6


class Cost(NamedTuple):
    """What one kind of residual adds to a tick, us, and what it may add."""

    p50: float
    p99: float
    goal: float

    @property
    def met(self) -> bool:
        """The median is below the goal."""
        return self.p50 < self.goal


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.residual", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args()
    try:
        costs = measure_all()
    except OnboardError as error:
        print(f"benchmarks.residual: {error}", file=sys.stderr)
        return 1
    Console().print(table(costs))
    if options.json:
        result = {name: {"p50_us": cost.p50, "p99_us": cost.p99} for name, cost in costs.items()}
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if all(cost.met for cost in costs.values()) else 1


def measure_all() -> dict[str, Cost]:
    """Every kind by name; a part of `make bench` too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            kind: Cost(*measure(folder, data), LINEAR_US if data["kind"] == "linear" else NETWORK_US)
            for kind, data in cases(folder).items()
        }


def table(costs: Mapping[str, Cost]) -> Table:
    """For the terminal."""
    heads = ("residual", "p50 us", "p99 us", "goal us", "")
    shown = Table(*heads, title="residual slot in a tick, hot", box=box.SIMPLE_HEAD, pad_edge=False)
    for name, cost in costs.items():
        met = "met" if cost.met else "missed here"
        shown.add_row(name, f"{cost.p50:.1f}", f"{cost.p99:.1f}", f"below {cost.goal:g}", met)
    return shown


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """Name to residual file, as data."""
    robot = load_robot("g1_29dof")
    legs = robot.joint_names[:12]
    linear = {"kind": "linear", "coefficients": {joint: {"a": -0.4, "b": 0.01} for joint in legs}}
    save_network(folder / "delta.onnx")
    blocks = [
        {"terms": [{"term": "gyro"}, {"term": "gravity"}]},
        {"terms": [{"term": term, "joints": list(ANKLES)} for term in TERMS], **HISTORY},
    ]
    network = {"model": "delta.onnx", "output": "delta", "inputs": {"obs": {"blocks": blocks}}}
    onnx_kind = {"kind": "onnx", "network": network, "joints": list(ANKLES)}
    common = {"schema": 1, "name": "cost", "unit": "rad", "bound_rad": 5.0, "fade_s": 0.0}
    return {
        "linear, 12 joints, invert": {**common, **linear, "joints": list(legs), "mode": "invert"},
        "network, 4 joints, add": {**common, **onnx_kind, "mode": "add"},
        "network, 4 joints, invert, 3 iterations": {**common, **onnx_kind, "mode": "invert", "iterations": 3},
    }


def save_network(path: Path) -> None:
    """A perceptron of WIDTH, 128, 128, 4 with small random weights."""
    random, name, nodes, weights = np.random.default_rng(0), "obs", [], []
    widths = (WIDTH, 128, 128, len(ANKLES))
    for layer, (wide, narrow) in enumerate(pairwise(widths)):
        matrix = (random.normal(size=(wide, narrow)) * 0.3 / np.sqrt(wide)).astype(np.float32)
        weights.append(numpy_helper.from_array(matrix, f"w{layer}"))
        last = layer == len(widths) - 2
        product = "delta" if last else f"h{layer}"
        nodes.append(helper.make_node("MatMul", [name, f"w{layer}"], [product]))
        name = product if last else f"e{layer}"
        if not last:
            nodes.append(helper.make_node("Elu", [product], [name]))
    value = helper.make_tensor_value_info
    inputs, outputs = value("obs", TensorProto.FLOAT, [1, WIDTH]), value("delta", TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph(nodes, "delta", [inputs], [outputs], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), str(path))


def measure(folder: Path, data: dict[str, Any]) -> tuple[float, float]:
    """Median and 99th percentile of what combining and committing takes, us."""
    robot = load_robot("g1_29dof")
    path = folder / "residual.yaml"
    path.write_text(yaml.safe_dump({"residual": data}), encoding="utf-8")
    policy = Policy(load_policy(POLICY, robot), robot)
    slot = ResidualSlot(load_residual(path, robot, policy.bundle.contract), policy, robot, Arm.KEEP)
    state, contact = State(), np.ones(2, np.int8)
    state.q[:] = policy.start_pose
    base = np.random.default_rng(1).normal(size=policy.raw.size).astype(np.float32)
    command = policy.neutral_command()
    taken = np.zeros(TICKS)
    for step in range(TICKS):
        asked = Asked(state, command, step, contact)
        begin = time.perf_counter_ns()
        slot.combine(asked, base)
        slot.commit()
        taken[step] = (time.perf_counter_ns() - begin) / 1000
    return float(np.percentile(taken, 50)), float(np.percentile(taken, 99))


if __name__ == "__main__":
    sys.exit(main())
