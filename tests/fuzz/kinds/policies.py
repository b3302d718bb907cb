"""Policies: contracts in every format, ONNX files, and what lies beside them."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, external_data_helper, helper, numpy_helper

from onboard.configs.events import Arm
from onboard.configs.safety import load_safety, with_policy_overrides
from onboard.policies.bundle import PolicyBundle, _dry_run, load_policy
from onboard.policies.contract import Contract
from onboard.policies.fingerprint.statistics import inner_statistics
from onboard.policies.golden import check_golden
from onboard.policies.model import read_model
from onboard.policies.policy import Policy
from onboard.policies.residual.delta import Asked
from onboard.policies.residual.files import load_residual
from onboard.policies.residual.gains import make_slot
from onboard.runtime.link import State
from tests.cli.deploy import deploy_data
from tests.fuzz.arrays import archives, single
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.mutate import TEXTS, Strategy, blobs, folder, spoil_bytes, trees, yaml_texts
from tests.policies.models import (
    JOINTS,
    ROBOT,
    contract_data,
    linear_model,
    save_graph,
    write_bundle,
    zeros_model,
)
from tests.policies.residual.support import ANKLES, linear
from tests.policies.test_holosoma import metadata as holosoma_metadata
from tests.policies.test_metadata import metadata as mjlab_metadata
from tests.policies.test_motion import CSV, TERMS, write_csv

CASE = "/case"
"""Every refusal names the bundle or a file in it."""

STATE = State()
HISTORY = {"frames": 4, "layout": "term_major", "order": "oldest_first", "current": True, "fill": "zeros"}
BLOCKS: list[dict[str, Any]] = [
    {"terms": [{"term": "gyro", "scale": 0.25}, {"term": "gravity"}, {"term": "velocity"}]},
    {"terms": [{"term": "joint_pos"}, {"term": "joint_vel", "clip": [-1.0, 1.0]}], **HISTORY},
    {"terms": [{"term": "last_action"}, {"term": "constant", "values": [1.0, 2.0]}]},
    {"terms": [{"term": "gait_sin"}, {"term": "base_lin_vel"}, {"term": "constant", "source": "z"}]},
]
WIDE = 9 + 24 * 4 + 14 + 1 + 3 + 4


def _built(build: Callable[[Path], object]) -> dict[str, bytes]:
    """Files that a builder writes into a folder, by relative path."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        build(place)
        return {
            str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()
        }


@cache
def _walker() -> dict[str, bytes]:
    return _built(lambda place: zeros_model(place / "policy.onnx", WIDE, 12))


@cache
def _tracker() -> dict[str, bytes]:
    def build(place: Path) -> None:
        zeros_model(place / "policy.onnx", 30, 12)
        write_csv(place)
        np.savez(place / "n.npz", mean=np.zeros(30), std=np.ones(30), eps=0.01)

    return _built(build)


def _walker_contract() -> dict[str, Any]:
    data = contract_data(BLOCKS, about="a walker", safety={"events": {"ROLL": {"limit": 1.5}}})
    data["constants"] = {"z": {"values": [0.1, 0.2, 0.3, 0.4]}}
    data["gait"] = {"period_s": 0.8, "offsets_rad": [0.0]}
    data["commands"] = {"lin_vel_x": [-0.5, 1.0]}
    data["providers"] = {"base_lin_vel": "leg_odometry"}
    data["target_clip"] = {"lower": [-3.0] * 29, "upper": [3.0] * 29}
    return data


def _tracker_contract() -> dict[str, Any]:
    data = contract_data([{"terms": TERMS}], motion=dict(CSV))
    data["graphs"]["policy"]["inputs"]["obs"]["normaliser"] = {"file": "n.npz", "clip": 5.0}
    return data


def run_policy(bundle: PolicyBundle) -> None:
    """What a run would do with it: its safety overrides, and three ticks."""
    with_policy_overrides(load_safety(), bundle.contract.safety, f"{bundle.folder}: safety")
    policy = Policy(bundle, ROBOT)
    policy.reset(STATE)
    for step in range(3):
        policy.observe(STATE, policy.neutral_command(), step)
        raw = policy.infer()
        assert policy.target(raw).shape == (29,)
        policy.commit(raw)


def _read_bundle(place: Path, name: str = "", **options: Any) -> None:
    run_policy(load_policy(place / name, ROBOT, provider="simulator_truth", **options))


def _contracts() -> Strategy:
    walker = folder(_walker(), contract__yaml=yaml_texts(_walker_contract()))
    return st.one_of(walker, folder(_tracker(), contract__yaml=yaml_texts(_tracker_contract())))


def _deploys() -> Strategy:
    files = _built(lambda place: zeros_model(place / "exported" / "policy.onnx", 96, 29))
    tracker = _built(
        lambda place: (zeros_model(place / "exported" / "policy.onnx", 64, 29), write_csv(place))
    )
    tracker["params/m.csv"] = tracker.pop("m.csv")
    motion = deploy_data()
    term: dict[str, Any] = {"params": {}, "clip": None, "history_length": 1}
    motion["observations"] = {
        "motion_command": term | {"scale": [1.0] * 58},
        "motion_anchor_ori_b": term | {"scale": [1.0] * 6},
    }
    walker = yaml_texts(deploy_data()).map(lambda text: files | {"params/deploy.yaml": text})
    return st.one_of(walker, yaml_texts(motion).map(lambda text: tracker | {"params/deploy.yaml": text}))


def with_metadata(model: bytes, metadata: Mapping[str, str]) -> bytes:
    """A model with more metadata; messages of one type that stand behind each other are one message."""
    more = ModelProto()
    helper.set_model_props(more, dict(metadata))
    return model + bytes(more.SerializeToString())


def _spoilt_texts(example: Mapping[str, str]) -> st.SearchStrategy[dict[str, str]]:
    spoil = st.tuples(
        st.sampled_from(["flip", "overwrite", "cut", "take out", "double", "insert"]),
        st.integers(0, 2**16),
        st.integers(0, 2**16),
    )
    changes = st.lists(st.tuples(st.sampled_from(sorted(example)), st.lists(spoil, max_size=3)), max_size=3)
    pieces = (*TEXTS, b"[", b"]", b";", b",", b" " * 4000, b"[" + b" " * 4000, b"NaN", b"1e999", b"[" * 2000)

    def spoilt(drawn: list[tuple[str, list[tuple[str, int, int]]]]) -> dict[str, str]:
        found = dict(example)
        for key, spoils in drawn:
            found[key] = spoil_bytes(found[key].encode(), spoils, pieces).decode("utf-8", "replace")
        return found

    return changes.map(spoilt)


def _metadata(examples: list[tuple[bytes, Mapping[str, str]]]) -> Strategy:
    def cases(model: bytes, example: Mapping[str, str]) -> Strategy:
        trees_of_texts = trees(dict(example)).map(
            lambda data: {str(k): str(v) for k, v in data.items()} if isinstance(data, dict) else {}
        )
        return st.one_of(_spoilt_texts(example), trees_of_texts).map(
            lambda found: {"policy.onnx": with_metadata(model, _encodable(found))}
        )

    return st.one_of([cases(*example) for example in examples])


def _encodable(texts: Mapping[str, str]) -> dict[str, str]:
    return {
        key.encode("utf-8", "replace").decode(): value.encode("utf-8", "replace").decode()
        for key, value in texts.items()
    }


def _mjlab() -> Strategy:
    walker = _built(lambda place: zeros_model(place / "policy.onnx", 96, 29))["policy.onnx"]
    gait = mjlab_metadata(("base_ang_vel", "projected_gravity", "joint_pos", "joint_vel", "actions", "phase"))
    return _metadata([(walker, mjlab_metadata()), (walker, gait)])


def _holosoma() -> Strategy:
    walker = _built(
        lambda place: zeros_model(place / "policy.onnx", 100, 29, name="actor_obs", output="action")
    )["policy.onnx"]
    experiment = {
        "observation": {
            "groups": {
                "actor_obs": {
                    "terms": {
                        "actions": {"scale": 1.0},
                        "base_ang_vel": {"scale": 0.25},
                        "dof_pos": {"scale": 1.0},
                        "dof_vel": {"scale": 0.05},
                        "projected_gravity": {},
                        "command_lin_vel": {},
                        "command_ang_vel": {},
                        "sin_phase": {"scale": 1.0},
                        "cos_phase": {"scale": [1.0, 1.0]},
                    },
                    "history_length": 1,
                }
            },
            "clip_observations": 100.0,
        },
        "robot": {
            "dof_names": JOINTS,
            "dof_effort_limit_list": [88.0] * 29,
            "init_state": {"default_joint_angles": dict.fromkeys(JOINTS, 0.1)},
            "control": {
                "action_scale": 0.25,
                "action_scales_by_effort_limit_over_p_gain": True,
                "clip_actions": True,
                "action_clip_value": 10.0,
            },
        },
        "simulator": {"config": {"sim": {"fps": 200.0, "control_decimation": 4}}},
    }
    plain = holosoma_metadata()
    fed = trees(
        {key: json.loads(value) for key, value in plain.items()} | {"experiment_config": experiment}
    ).map(lambda data: {str(k): _json(v) for k, v in data.items()} if isinstance(data, dict) else {})
    spoilt = fed.map(lambda found: {"policy.onnx": with_metadata(walker, _encodable(found))})
    return st.one_of(_metadata([(walker, plain)]), spoilt)


def _json(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError):
        return "[" * 5000


def _presets() -> Strategy:
    model = _built(lambda place: zeros_model(place / "policy.onnx", WIDE, 12))
    contract = _walker_contract()
    graph = contract.pop("graphs")["policy"]
    del graph["model"]
    graph["inputs"] = {"*": graph["inputs"]["obs"]}
    graph["action"]["output"] = "*"
    preset = {
        "about": "a made-up family",
        "match": {"inputs": {"*": WIDE}, "outputs": {"*": 12}, "metadata": []},
        "contract": contract | {"graphs": {"policy": graph}},
        "needs": {"gait.period_s": "a stride"},
        "known": {"ab" * 32: {"about": "one file", "contract": {"gait": {"period_s": 1.0}}}},
        "robots": ["g1"],
    }
    several = {"about": "a family of files", "files": {"policy": "policy.onnx"}, "contract": contract}
    return folder(model, preset__yaml=yaml_texts(preset, several, preset))


def _read_preset(place: Path) -> None:
    _read_bundle(place, "policy.onnx", preset=str(place / "preset.yaml"))


def _models() -> Strategy:
    value = helper.make_tensor_value_info

    def branched(place: Path) -> None:
        inner = helper.make_graph(
            [helper.make_node("Identity", ["v"], ["w2"])],
            "inner",
            [],
            [value("w2", TensorProto.FLOAT, [3, 2])],
            [numpy_helper.from_array(np.zeros((3, 2), np.float32), "v")],
        )
        nodes = [
            helper.make_node(
                "Constant", [], ["mean"], value=numpy_helper.from_array(np.ones((1, 3), np.float32))
            ),
            helper.make_node("Sub", ["obs", "mean"], ["centred"]),
            helper.make_node("Sqrt", ["variance"], ["deviation"]),
            helper.make_node("Div", ["centred", "deviation"], ["unit"]),
            helper.make_node("If", ["yes"], ["w"], then_branch=inner, else_branch=inner),
            helper.make_node("MatMul", ["unit", "w"], ["y"]),
            helper.make_node("Clip", ["y", "low", "high"], ["actions"]),
        ]
        numbers = {
            "yes": np.array(True),
            "variance": np.ones((1, 3), np.float32),
            "low": np.array(-1, np.float32),
            "high": np.array(1, np.float32),
        }
        graph = helper.make_graph(
            nodes,
            "branched",
            [value("obs", TensorProto.FLOAT, ["batch", 3])],
            [value("actions", TensorProto.FLOAT, ["batch", 2])],
            [numpy_helper.from_array(array, name) for name, array in numbers.items()],
        )
        save_graph(place / "policy.onnx", graph, {"joint_names": "a,b"})

    def external(place: Path) -> None:
        linear_model(place / "policy.onnx", np.ones((3, 2)))
        model = ModelProto.FromString((place / "policy.onnx").read_bytes())
        (weights,) = model.graph.initializer
        external_data_helper.set_external_data(weights, "w.bin", offset=0, length=24)
        (place / "w.bin").write_bytes(weights.raw_data)
        weights.ClearField("raw_data")
        (place / "policy.onnx").write_bytes(model.SerializeToString())

    apart = _built(external)
    whole = [
        _built(branched)["policy.onnx"],
        _built(lambda p: zeros_model(p / "policy.onnx", 6, 2))["policy.onnx"],
    ]
    pieces = (
        b"../w.bin",
        b"/dev/zero",
        b"\x08\x00",
        b"\xff" * 9 + b"\x7f",
        apart["policy.onnx"],
        whole[0][:200],
    )
    return folder({"w.bin": apart["w.bin"]}, policy__onnx=blobs(apart["policy.onnx"], *whole, pieces=pieces))


def _read_model(place: Path) -> None:
    model = read_model(place / "policy.onnx")
    _dry_run(model)
    for name, port in model.info.inputs.items():
        inner_statistics(model.path, name, port.size)


def _normalisers() -> Strategy:
    example = {"mean": np.zeros(30), "std": np.ones(30), "eps": np.array(0.01)}
    games = {"running_mean": np.zeros((1, 30)), "running_var": np.ones((1, 30)), "epsilon": np.array([1e-5])}
    contract = yaml.safe_dump(_tracker_contract()).encode()
    return folder(_tracker() | {"contract.yaml": contract}, n__npz=archives(example, games))


def _constants() -> Strategy:
    data = _walker_contract()
    data["constants"]["z"] = {"file": "z.npy"}
    whole = _walker() | {"contract.yaml": yaml.safe_dump(data).encode()}
    return folder(whole, z__npy=single(np.arange(4.0), np.zeros((2, 2), np.float32)))


@cache
def _golden() -> dict[str, np.ndarray]:
    rows = 4
    state = {
        "q": (rows, 29),
        "dq": (rows, 29),
        "gyro": (rows, 3),
        "quat_wxyz": (rows, 4),
        "command": (rows, 3),
    }
    arrays = {name: np.zeros(shape, np.float32) for name, shape in state.items()}
    arrays["quat_wxyz"][:] = STATE.quat_wxyz
    return arrays | {
        "obs": np.zeros((rows, 3), np.float32),
        "raw_action": np.zeros((rows, 12), np.float32),
        "q_des": np.zeros((rows, 29), np.float32),
        "contract_json": np.array("{}"),
    }


@cache
def _small() -> PolicyBundle:
    """A bundle that stays as long as the process."""
    place = Path(tempfile.mkdtemp(prefix="onboard-fuzz-small-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    zeros_model(place / "policy.onnx", 3, 12)
    return load_policy(write_bundle(place, contract_data([{"terms": [{"term": "gyro"}]}])), ROBOT)


def _goldens() -> Strategy:
    _small()
    return folder({}, golden__npz=archives(_golden()))


def _read_golden(place: Path) -> None:
    check_golden(_small(), ROBOT, place / "golden.npz")


def _residuals() -> Strategy:
    _small()
    files = _built(lambda place: linear_model(place / "delta.onnx", np.full((2, 2), 0.1), output="delta"))
    terms = {"terms": [{"term": "target_error", "joints": list(ANKLES)}]}
    net = {"model": "delta.onnx", "output": "delta", "inputs": {"obs": {"blocks": [terms]}}}
    onnx = linear() | {
        "kind": "onnx",
        "coefficients": {},
        "bound_rad": 0.3,
        "network": net,
        "lowpass_hz": 5.0,
    }
    coefficients = {name: {"a": -0.2, "b": 0.01} for name in ANKLES}
    phases = {phase: {"coefficients": coefficients} for phase in ("flight", "left", "right", "both")}
    contact = linear() | {"kind": "by_contact", "coefficients": {}, "phases": phases}
    examples = [{"residual": data} for data in (linear(), onnx, contact, linear(mode="add", bound_rad=0.2))]
    return folder(files, residual__yaml=yaml_texts(*examples))


def _read_residual(place: Path) -> None:
    bundle = _small()
    residual = load_residual(place / "residual.yaml", ROBOT, bundle.contract)
    policy = Policy(bundle, ROBOT)
    slot = make_slot(residual, policy, ROBOT, Arm.KEEP)
    policy.reset(STATE)
    for step in range(3):
        asked = Asked(STATE, policy.neutral_command(), step, np.ones(2, np.int8))
        combined = slot.combine(asked, np.full(12, 0.1, np.float32))
        assert np.isfinite(combined).all()
        slot.commit()


def motion_contract(**motion: Any) -> Contract:
    """A tracking contract, checked but for its files."""
    data = contract_data([{"terms": TERMS}], motion=motion)
    return msgspec.convert(data, Contract)


KINDS = [
    Kind("contract", "contract.yaml", _contracts, _read_bundle, where=CASE),
    Kind("deploy", "params/deploy.yaml", _deploys, _read_bundle, where=CASE),
    Kind("metadata", "ONNX metadata of mjlab and BeyondMimic", _mjlab, _read_bundle, where=CASE),
    Kind("holosoma", "ONNX metadata of holosoma", _holosoma, _read_bundle, where=CASE),
    Kind("preset", "a preset of the user's own", _presets, _read_preset),
    Kind("onnx", "ONNX files and their external data", _models, _read_model, where=CASE),
    Kind("normaliser", "a normaliser's npz", _normalisers, _read_bundle, where=CASE),
    Kind("constant", "a constant's npy", _constants, _read_bundle, where=CASE),
    Kind("golden", "golden vectors", _goldens, _read_golden, where="golden.npz"),
    Kind("residual", "a residual and its network", _residuals, _read_residual),
]
