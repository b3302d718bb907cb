"""What fuzzing found, one case each; every one ended in a traceback, a hang or a full memory before."""

import json
import os
import pickle
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from onboard.configs.errors import ConfigError, LinkError, OnboardError, PolicyError, RolloutError
from onboard.configs.loader import shipped
from onboard.configs.robot import load_robot
from onboard.configs.sim import load_sim
from onboard.configs.untrusted import inside
from onboard.logging.convert import convert
from onboard.logging.frames import _PRELUDE, unpack_end
from onboard.policies.bundle import load_policy
from onboard.policies.loaders.csv_values import CsvMetadata
from onboard.policies.loaders.presets import load_preset
from onboard.policies.safe_pickle import read_pickle
from onboard.policies.session import inspect_model
from onboard.runtime.idl import RequestIdentity, Response, ResponseHeader
from onboard.runtime.motion_switcher import padded
from onboard.runtime.shm import MAGIC, Shared, ShmError
from onboard.runtime.snapshot import RunView
from tests.cli.deploy import deploy_data
from tests.fuzz.kinds import messages
from tests.logging import synthetic
from tests.policies.models import ROBOT, contract_data, save_graph, write_bundle, zeros_model


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(.*)*x", "too involved"), (".*.*.*.*x", "too involved"), ("[", "unterminated"), ("a" * 999, "too")],
)
def test_a_pattern_of_joint_names_that_never_ends_or_is_none(
    tmp_path: Path, pattern: str, reason: str
) -> None:
    zeros_model(tmp_path / "exported" / "policy.onnx", 96, 29)
    data = deploy_data()
    data["actions"]["JointPositionAction"]["joint_names"] = [pattern]
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "deploy.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(PolicyError, match=rf"is no pattern of joint names \(.*{reason}"):
        load_policy(tmp_path, ROBOT)


@pytest.mark.parametrize("commands", [{"base_velocity": 1.0}, {"base_velocity": {"ranges": [1]}}])
def test_commands_of_a_deploy_yaml_that_are_no_keys(tmp_path: Path, commands: Any) -> None:
    zeros_model(tmp_path / "exported" / "policy.onnx", 96, 29)
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "deploy.yaml").write_text(yaml.safe_dump(deploy_data() | {"commands": commands}))
    with pytest.raises(PolicyError, match="expected keys and values, found"):
        load_policy(tmp_path, ROBOT)


def test_metadata_of_nothing_but_spaces_takes_no_time() -> None:
    with pytest.raises(PolicyError, match="can't be read"):
        CsvMetadata({"kp": " " * 200_000 + "["}, "m.onnx").entries(["kp"])


def _graph(nodes: list[Any], **numbers: np.ndarray) -> Any:
    value = helper.make_tensor_value_info
    return helper.make_graph(
        nodes,
        "hostile",
        [value("obs", TensorProto.FLOAT, [1, 3])],
        [value("actions", TensorProto.FLOAT, [1, 12])],
        [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )


def test_a_graph_that_asks_for_more_memory_than_any_policy_is_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["size"], ["much"]),
        helper.make_node("ReduceSum", ["much"], ["sum"], keepdims=0),
        helper.make_node("MatMul", ["obs", "w"], ["y"]),
        helper.make_node("Add", ["y", "sum"], ["actions"]),
    ]
    size = np.array([2000, 1000, 500, 8], np.int64)
    save_graph(tmp_path / "policy.onnx", _graph(nodes, size=size, w=np.zeros((3, 12), np.float32)))
    write_bundle(tmp_path, contract_data([{"terms": [{"term": "gyro"}]}]))
    with pytest.raises(PolicyError, match=r"inference failed: .*llocat"):
        load_policy(tmp_path, ROBOT)


def test_a_graph_that_loops_for_ever_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["x"], ["x2"])],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("go", TensorProto.BOOL, []),
            value("x", TensorProto.FLOAT, [1, 12]),
        ],
        [value("on", TensorProto.BOOL, []), value("x2", TensorProto.FLOAT, [1, 12])],
    )
    nodes = [
        helper.make_node("MatMul", ["obs", "w"], ["y"]),
        helper.make_node("Loop", ["times", "yes", "y"], ["actions"], body=body),
    ]
    numbers = {"times": np.array(2**62, np.int64), "yes": np.array(True), "w": np.zeros((3, 12), np.float32)}
    save_graph(tmp_path / "policy.onnx", _graph(nodes, **numbers))
    write_bundle(tmp_path, contract_data([{"terms": [{"term": "gyro"}]}]))
    monkeypatch.setattr("onboard.policies.bundle.TRIAL_S", 0.2)
    with pytest.raises(PolicyError, match=r"takes more than 0\.2 s"):
        load_policy(tmp_path, ROBOT)


def test_an_input_of_huge_size_is_refused_before_it_is_made(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["obs"], ["actions"])],
        "huge",
        [value("obs", TensorProto.FLOAT, [1 << 20, 1 << 20, 1 << 20])],
        [value("actions", TensorProto.FLOAT, [1 << 20, 1 << 20, 1 << 20])],
    )
    with pytest.raises(PolicyError, match="expected at most 1000000 numbers"):
        inspect_model(save_graph(tmp_path / "m.onnx", graph))


@pytest.mark.parametrize("name", [b"actions", b"obs"])
def test_a_graph_with_a_name_that_is_no_text_is_refused(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / "m.onnx"
    zeros_model(path, 96, 29)
    content = path.read_bytes()
    assert name in content
    path.write_bytes(content.replace(name, b"\x80" + name[1:]))
    with pytest.raises(PolicyError, match=r"m\.onnx: .*(no text|export it again)"):
        inspect_model(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("about: a\ncontract: {graphs: 1.5}\n", "contract.graphs must be a mapping of names"),
        ("about: a\ncontract: {graphs: {policy: 1.5}}\n", "contract.graphs must be a mapping of names"),
        (
            "about: a\ncontract: {}\nknown: {x: {about: b, contract: {graphs: 2}}}\n",
            "must be a mapping of names",
        ),
        ("about: a\ncontract: {}\nextends: PATH\n", "extends itself, by way of"),
    ],
)
def test_a_preset_of_any_shape_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "preset.yaml"
    path.write_text(text.replace("PATH", str(path)))
    with pytest.raises(ConfigError, match=rf"preset\.yaml: .*{reason}"):
        load_preset(str(path))


def test_a_name_too_long_for_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"names 'xxx.*does not lie in that folder") as refusal:
        inside(tmp_path, "x" * 5000, "a preset")
    assert len(str(refusal.value)) < 1000


def test_a_shipped_name_too_long_for_a_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no shipped robots configuration; there are:"):
        load_robot("g1" * 3000)


@pytest.mark.parametrize("key", ["gap.gain", "gap.state_latency_s", "builtin.kp", "start_poses.crouch"])
def test_a_joint_that_a_simulators_file_misnames_is_told_with_the_file(tmp_path: Path, key: str) -> None:
    data = yaml.safe_load(shipped("sim", "g1").read_text())
    group, name = key.split(".")
    data[group][name] = {"29": 0.01}
    path = tmp_path / "sim.yaml"
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError, match=rf"sim\.yaml: {key}: '29' matches no joint of g1"):
        load_sim(str(path))


def test_a_pickle_whose_key_takes_for_ever_to_hash_is_refused(tmp_path: Path) -> None:
    nested = b"K\x01" + b"2\x86" * 60
    (tmp_path / "m.pkl").write_bytes(b"\x80\x04}(" + nested + b"K\x01u.")
    with pytest.raises(PolicyError, match="it has a tuple as a key"):
        read_pickle(tmp_path / "m.pkl")
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"walk": {1, 2}}, 4))
    with pytest.raises(PolicyError, match="it has a set"):
        read_pickle(tmp_path / "m.pkl")


def test_a_reply_of_the_motion_switcher_that_is_none_is_passed_over(tmp_path: Path) -> None:
    good = padded(Response(ResponseHeader(RequestIdentity(messages.ASKED, 1001)), '{"name": "ai"}'))
    damaged = good[:30] + b"\xff\xff\xff\x7f" + good[34:]
    (tmp_path / "messages").write_bytes(messages.SEPARATOR.join([b"", damaged, good[:20], good]))
    messages.read_calls(tmp_path)


@pytest.mark.parametrize("text", ['{"name": "a\\u001b[2J"}', '{"name": 1}', "[" * 5000, "null"])
def test_a_name_that_is_none_is_refused_by_the_motion_switcher(tmp_path: Path, text: str) -> None:
    header = ResponseHeader(RequestIdentity(messages.ASKED, 1001))
    (tmp_path / "messages").write_bytes(padded(Response(header, text)))
    with pytest.raises(LinkError, match="expected JSON with a name"):
        messages.read_calls(tmp_path)


@pytest.mark.parametrize(
    "head",
    [
        b"[" * 5000,
        b"{}",
        b'{"run": [[["a", "O"]], 4]}',
        b'{"run": [[["a", "f8"]], 0]}',
        b'{"run": [[["a", "|V99999"]], 99999]}',
    ],
)
def test_shared_memory_of_another_layout_is_one_line(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "onboard-1-x.shm"
    path.write_bytes((MAGIC + len(head).to_bytes(4, "little") + head).ljust(70_000, b"\0"))
    with pytest.raises(ShmError, match="not shared memory of this version of onboard"):
        Shared.open(path)
    with pytest.raises(ShmError):
        RunView(path)


def _with_header(path: Path, change: Any) -> Path:
    """A journal whose header says something else; its checksum holds."""
    whole = path.read_bytes()
    length = _PRELUDE.unpack_from(whole)[1]
    head = json.loads(whole[_PRELUDE.size : _PRELUDE.size + length])
    change(head)
    text = json.dumps(head).encode()
    path.write_bytes(_PRELUDE.pack(b"ONBDJNL1", len(text), zlib.crc32(text)) + text)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head["dtype"][1].__setitem__(1, "S7"),
        lambda head: head["dtype"].__setitem__(0, ["tick", "O"]),
        lambda head: head["dtype"].__setitem__(0, ["tick", "V999999999"]),
        lambda head: head["dtype"].__setitem__(0, ["tick", "no type"]),
        lambda head: head["meta"].__setitem__("wall_ns", 10**27),
        lambda head: head["meta"]["policies"][0]["shape"].__setitem__(1, 10**9),
        lambda head: head["meta"]["policies"][0]["shape"].__setitem__(3, [["../../up", 3]]),
        lambda head: head["meta"]["policies"][0]["shape"].__setitem__(3, [["a", -3]]),
    ],
)
def test_a_journal_whose_header_is_not_a_recorders_is_refused(tmp_path: Path, change: Any) -> None:
    journal = synthetic.journal(tmp_path, synthetic.rows()[:5])
    (tmp_path / "out").mkdir()
    with pytest.raises(RolloutError):
        convert(_with_header(journal, change), tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_an_end_frame_without_facts_ends_nothing() -> None:
    for text in (b"[" * 5000, b"1", b'"text"'):
        with pytest.raises(ValueError):  # noqa: PT011 - the caller takes any for a frame that can't be trusted
            unpack_end(memoryview(text))


def test_a_contract_of_any_shape_is_refused_in_one_line(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 3, 12)
    sound = contract_data([{"terms": [{"term": "gyro"}]}])
    for key, value in (("constants", 1.5), ("graphs", [1]), ("graphs", {"policy": 3}), ("motion", "x")):
        write_bundle(tmp_path, sound | {key: value})
        with pytest.raises(OnboardError):
            load_policy(tmp_path, ROBOT)
    assert msgspec.to_builtins(load_policy(write_bundle(tmp_path, sound), ROBOT).contract)
    assert os.listdir(tmp_path)
