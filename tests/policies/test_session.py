from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onboard.configs.errors import PolicyError
from onboard.policies.model import read_model
from onboard.policies.session import OnnxSession, external_files, inspect_model
from tests.policies.models import linear_model, save_graph, zeros_model

WEIGHTS = np.arange(6.0).reshape(3, 2)


def test_inputs_and_outputs_are_the_arrays_handed_in(tmp_path: Path) -> None:
    path = linear_model(tmp_path / "m.onnx", WEIGHTS)
    buffer = np.zeros(8, np.float32)
    obs = buffer[2:5]
    session = OnnxSession(path, {"obs": obs}, ("actions",))
    for values in ((1.0, 0.0, 0.0), (0.0, 2.0, 1.0)):
        obs[:] = values
        session.run()
        assert session.outputs["actions"].tolist() == pytest.approx(np.array(values) @ WEIGHTS)


def test_a_free_batch_axis_is_one(tmp_path: Path) -> None:
    info = inspect_model(linear_model(tmp_path / "m.onnx", WEIGHTS, batch="batch"))
    assert info.inputs["obs"].shape == (1, 3)
    assert info.outputs["actions"].size == 2


def test_another_free_axis_is_refused(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["obs"], ["actions"])],
        "free",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, "wide"])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, "wide"])],
    )
    with pytest.raises(PolicyError, match=r"'obs' has shape \[1, 'wide'\]; only the first axis"):
        inspect_model(save_graph(tmp_path / "m.onnx", graph))


def test_metadata_and_digest_are_read(tmp_path: Path) -> None:
    model = read_model(zeros_model(tmp_path / "m.onnx", 3, 2, metadata={"kp": "[1.0]"}))
    assert model.info.metadata == {"kp": "[1.0]"}
    assert len(model.digest) == 64


def external_model(folder: Path) -> Path:
    """A model whose weights lie in a file of their own."""
    path = linear_model(folder / "whole.onnx", np.ones((300, 40)))
    model = onnx.load(str(path))
    onnx.save(
        model, str(folder / "m.onnx"), save_as_external_data=True, location="m.onnx.data", size_threshold=0
    )
    return folder / "m.onnx"


def test_external_weights_are_found_and_hashed(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    assert external_files(path) == [tmp_path / "m.onnx.data"]
    assert list(read_model(path).sha256) == [path, tmp_path / "m.onnx.data"]


def test_missing_external_weights_are_named(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    (tmp_path / "m.onnx.data").unlink()
    with pytest.raises(PolicyError, match=r"keeps its weights in 'm\.onnx\.data', which is missing; copy it"):
        read_model(path)


def test_weights_outside_the_folder_are_refused(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.zeros((3, 2), np.float32), "w")
    onnx.external_data_helper.set_external_data(tensor, "../elsewhere.data")
    tensor.ClearField("raw_data")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "w"], ["actions"])],
        "outside",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, 2])],
        [tensor],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(PolicyError, match="does not lie in that folder"):
        read_model(tmp_path / "m.onnx")


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"not a protocol buffer")
    with pytest.raises(PolicyError, match="can't be read as an ONNX file") as caught:
        inspect_model(tmp_path / "m.onnx")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"absent\.onnx: can't be read \(No such file"):
        read_model(tmp_path / "absent.onnx")
