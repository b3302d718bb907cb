"""Small ONNX files and contracts for tests: real graphs, a few numbers wide."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onboard.configs.robot import load_robot
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.policy import Policy
from onboard.runtime.link import State

ROBOT = load_robot("g1_29dof")
JOINTS = list(ROBOT.joint_names)
LEGS = JOINTS[:12]


def linear_model(
    path: Path,
    weights: NDArray[Any],
    *,
    name: str = "obs",
    output: str = "actions",
    metadata: Mapping[str, str] | None = None,
    batch: int | str = 1,
    dtype: int = TensorProto.FLOAT,
) -> Path:
    """`actions = obs · weights`; the batch axis may be free."""
    wide, narrow = weights.shape
    graph = helper.make_graph(
        [helper.make_node("MatMul", [name, "w"], [output])],
        "linear",
        [helper.make_tensor_value_info(name, dtype, [batch, wide])],
        [helper.make_tensor_value_info(output, dtype, [batch, narrow])],
        [numpy_helper.from_array(weights.astype(helper.tensor_dtype_to_np_dtype(dtype)), "w")],
    )
    return save_graph(path, graph, metadata)


def save_graph(path: Path, graph: Any, metadata: Mapping[str, str] | None = None) -> Path:
    """Write one graph with its metadata."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    helper.set_model_props(model, dict(metadata or {}))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
    return path


def zeros_model(path: Path, wide: int, narrow: int, **options: Any) -> Path:
    """A network that answers zeros to everything finite."""
    return linear_model(path, np.zeros((wide, narrow)), **options)


def two_inputs_model(path: Path, inputs: Mapping[str, int], narrow: int) -> Path:
    """A network that reads several inputs side by side and answers zeros."""
    wide = sum(inputs.values())
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Concat", list(inputs), ["all"], axis=1),
            helper.make_node("MatMul", ["all", "w"], ["actions"]),
        ],
        "several",
        [value(name, TensorProto.FLOAT, [1, width]) for name, width in inputs.items()],
        [value("actions", TensorProto.FLOAT, [1, narrow])],
        [numpy_helper.from_array(np.zeros((wide, narrow), np.float32), "w")],
    )
    return save_graph(path, graph)


def contract_data(
    blocks: list[dict[str, Any]], joints: list[str] | None = None, **changes: Any
) -> dict[str, Any]:
    """A complete contract with one input `obs` and one output `actions`."""
    driven = joints or LEGS
    data: dict[str, Any] = {
        "schema": 1,
        "name": "tiny",
        "rate_hz": 50.0,
        "imu": "pelvis",
        "joints": JOINTS,
        "kp": [100.0] * 29,
        "kd": [2.0] * 29,
        "default_rad": [0.0] * 29,
        "start_rad": [0.0] * 29,
        "hold_rad": [0.0] * 29,
        "observed_joints": driven,
        "graphs": {
            "policy": {
                "model": "policy.onnx",
                "inputs": {"obs": {"blocks": blocks}},
                "action": {"output": "actions", "joints": driven, "base": "default", "scale": 0.25},
            }
        },
    }
    data.update(changes)
    return data


def write_bundle(folder: Path, data: dict[str, Any]) -> Path:
    """Put `contract.yaml` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "contract.yaml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return folder


def tiny_bundle(
    folder: Path,
    blocks: Sequence[Mapping[str, Any]],
    wide: int,
    of_input: Mapping[str, Any] | None = None,
    **changes: Any,
) -> PolicyBundle:
    """A loaded bundle whose network answers zeros; `of_input` are further keys of its one input."""
    zeros_model(folder / "policy.onnx", wide, 12)
    data = contract_data([dict(block) for block in blocks], **changes)
    data["graphs"]["policy"]["inputs"]["obs"] |= dict(of_input or {})
    return load_policy(write_bundle(folder, data), ROBOT)


def assert_same_bits(one: PolicyBundle, other: PolicyBundle) -> None:
    """Two bundles see, answer and ask for the same, to the last bit, on the same states."""
    policies = [Policy(bundle, ROBOT) for bundle in (one, other)]
    rng, state = np.random.default_rng(1), State()
    for policy in policies:
        policy.reset(random_state(np.random.default_rng(0), state))
        policy.provide_base_velocity((0.1, 0.2, 0.3))
    for step in range(6):
        random_state(rng, state)
        rows = []
        for policy in policies:
            command = policy.neutral_command()
            command.set_velocity(0.3, -0.1, 0.2)
            obs = policy.observe(state, command, step)
            raw = policy.infer()
            rows.append((obs.tobytes(), raw.tobytes(), policy.target(raw).tobytes()))
            policy.commit(raw)
        assert rows[0] == rows[1]


def random_state(rng: np.random.Generator, state: State | None = None) -> State:
    """A state that no slice of an observation hides."""
    state = state or State()
    state.q[:] = rng.uniform(-0.5, 0.5, 29)
    state.dq[:] = rng.uniform(-2.0, 2.0, 29)
    state.gyro_body[:] = rng.uniform(-1.0, 1.0, 3)
    quat = rng.normal(size=4) * (1.0, 0.1, 0.1, 0.5)
    state.quat_wxyz[:] = quat / np.linalg.norm(quat)
    return state
