"""Where a normaliser is found, whichever way an exporter wrote it down, and what is read out of it."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onboard.cli.policy import run
from onboard.configs.errors import PolicyError
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.fingerprint import check_fingerprint
from onboard.policies.fingerprint.onnx_weights import WeightReader
from onboard.policies.fingerprint.statistics import inner_statistics
from tests.policies.models import JOINTS, ROBOT, contract_data, save_graph, write_bundle, zeros_model

MEAN = np.linspace(-1.0, 2.0, 6, dtype=np.float32)
STD = np.linspace(0.5, 1.5, 6, dtype=np.float32)


def constant(values: Any, name: str) -> Any:
    return numpy_helper.from_array(np.asarray(values), name)


def node(op: str, inputs: list[str], output: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs, [output], **attributes)


def model(path: Path, nodes: list[Any], initializers: list[Any], wide: int = 6) -> Path:
    """`actions` is a slice of whatever the nodes make of `obs` and call `x`."""
    value = helper.make_tensor_value_info
    nodes = [*nodes, node("MatMul", ["x", "w"], "actions")]
    graph = helper.make_graph(
        nodes,
        "normalised",
        [value("obs", TensorProto.FLOAT, [1, wide])],
        [value("actions", TensorProto.FLOAT, [1, 2])],
        [*initializers, constant(np.ones((wide, 2), np.float32), "w")],
    )
    return save_graph(path, graph)


DIVIDED = [node("Sub", ["obs", "m"], "d"), node("Div", ["d", "s"], "x")]


@pytest.mark.parametrize(
    ("nodes", "initializers"),
    [
        (DIVIDED, [constant(MEAN, "m"), constant(STD, "s")]),
        (
            [node("Sub", ["obs", "m"], "d"), node("Mul", ["d", "s"], "x")],
            [constant(MEAN[None], "m"), constant(1 / STD, "s")],
        ),
        (
            [node("Add", ["raw", "e"], "s"), *DIVIDED],
            [constant(MEAN, "m"), constant(STD - 0.25, "raw"), constant(np.array([0.25], np.float32), "e")],
        ),
        (
            [node("Sqrt", ["v"], "s"), *DIVIDED],
            [constant(MEAN, "m"), constant(STD**2, "v")],
        ),
        (
            [
                node("Constant", [], "m", value=constant(MEAN, "")),
                node("Constant", [], "wide", value=constant(STD[None], "")),
                node("Identity", ["wide"], "s"),
                node("Identity", ["obs"], "o"),
                node("Sub", ["o", "m"], "d"),
                node("Div", ["d", "s"], "x"),
            ],
            [],
        ),
        (
            DIVIDED,
            [
                helper.make_tensor("m", TensorProto.FLOAT, [6], MEAN.tolist()),
                helper.make_tensor("s", TensorProto.FLOAT, [6], STD.tolist()),
            ],
        ),
    ],
    ids=["divided", "multiplied", "epsilon beside", "variance", "constant nodes", "typed numbers"],
)
def test_statistics_are_found(tmp_path: Path, nodes: list[Any], initializers: list[Any]) -> None:
    found = inner_statistics(model(tmp_path / "m.onnx", nodes, initializers), "obs", 6)
    assert found is not None
    assert found[0] == pytest.approx(MEAN)
    assert found[1] == pytest.approx(STD, rel=1e-6)


def test_statistics_in_a_file_of_weights_are_found(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", DIVIDED, [constant(MEAN, "m"), constant(STD, "s")])
    onnx.save(
        onnx.load(str(path)), str(path), save_as_external_data=True, size_threshold=0, location="m.data"
    )
    assert (tmp_path / "m.data").exists()
    found = inner_statistics(path, "obs", 6)
    assert found is not None
    assert found[0] == pytest.approx(MEAN)


def test_a_subtraction_that_is_no_normaliser_is_none(tmp_path: Path) -> None:
    path = model(
        tmp_path / "m.onnx",
        [node("Sub", ["obs", "m"], "d"), node("Tanh", ["d"], "x")],
        [constant(MEAN, "m")],
    )
    assert inner_statistics(path, "obs", 6) is None
    assert inner_statistics(model(tmp_path / "n.onnx", [node("Tanh", ["obs"], "x")], []), "obs", 6) is None


@pytest.mark.parametrize("content", [b"", b"\x3a\xff", b"\x0f", b"\x3a\x02\x0a\x09", b"no model at all"])
def test_what_is_no_onnx_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(PolicyError, match="can't be read as an ONNX file"):
        WeightReader(tmp_path / "m.onnx")


def layouts(folder: Path, layout: str) -> PolicyBundle:
    """A network trained on two terms over two frames, term by term."""
    deviation = np.array([0.5] * 6 + [2.0] * 24, np.float32)
    path = folder / "policy.onnx"
    initializers = [constant(np.zeros(30, np.float32), "m"), constant(deviation, "s")]
    nodes = [*DIVIDED, node("MatMul", ["x", "legs"], "all")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "history",
        [value("obs", TensorProto.FLOAT, [1, 30])],
        [value("all", TensorProto.FLOAT, [1, 12])],
        [*initializers, constant(np.zeros((30, 12), np.float32), "legs")],
    )
    save_graph(path, graph)
    kept = {"frames": 2, "layout": layout, "order": "oldest_first", "current": True, "fill": "zeros"}
    data = contract_data([{"terms": [{"term": "gyro"}, {"term": "joint_vel"}]} | kept])
    data["graphs"]["policy"]["action"]["output"] = "all"
    return load_policy(write_bundle(folder, data), ROBOT)


def test_a_history_that_lies_otherwise_is_named(tmp_path: Path) -> None:
    assert check_fingerprint(layouts(tmp_path / "a", "term_major")).findings == ()
    (finding,) = check_fingerprint(layouts(tmp_path / "b", "frame_major")).findings
    assert "term-major and frame-major are mixed up" in finding


def with_statistics(folder: Path, terms: list[dict[str, Any]], mean: Any, deviation: Any) -> PolicyBundle:
    """A contract whose normaliser stands beside the model."""
    zeros_model(folder / "policy.onnx", len(mean), 12)
    data = contract_data([{"terms": terms}], default_rad=[0.1 * slot for slot in range(29)])
    data["graphs"]["policy"]["inputs"]["obs"]["normaliser"] = {
        "mean": list(map(float, mean)),
        "deviation": list(map(float, deviation)),
        "epsilon": 0.0,
    }
    return load_policy(write_bundle(folder, data), ROBOT)


@pytest.mark.parametrize(
    ("terms", "mean", "deviation", "expected"),
    [
        ([{"term": "gravity"}], [0, 0, -0.98], [0.1] * 3, ()),
        ([{"term": "gravity", "scale": -1.0}], [0, 0, 0.98], [0.1] * 3, ()),
        ([{"term": "gravity"}], [0, 0, 0.98], [0.1] * 3, ("the sign is wrong",)),
        (
            [{"term": "gravity"}, {"term": "velocity"}],
            [0.5, 0, 0, 0, 0, -0.98],
            [0.5] * 3 + [0.1] * 3,
            ("by this contract its z is element 2, .* element 5 looks like it",),
        ),
        (
            [{"term": "joint_pos"}],
            0.1 * np.arange(12),
            [0.1] * 12,
            ("its mean in training is the default pose, not 0: positions are absolute",),
        ),
        (
            [{"term": "joint_pos_absolute"}],
            [0.0] * 12,
            [0.1] * 12,
            ("joint_pos_absolute: its mean in training is near 0",),
        ),
        ([{"term": "gyro", "scale": 0.25}], [0] * 3, [2.0] * 3, ("gyro: with its scale of 0.25",)),
        ([{"term": "gyro", "scale": 0.0}], [0] * 3, [1.0] * 3, ("gyro: blanked by a scale of 0",)),
    ],
)
def test_what_a_normaliser_beside_the_model_tells(
    tmp_path: Path, terms: list[dict[str, Any]], mean: Any, deviation: Any, expected: tuple[str, ...]
) -> None:
    report = check_fingerprint(with_statistics(tmp_path, terms, mean, deviation))
    assert report.inputs == ("policy.obs",)
    assert len(report.findings) == len(expected)
    for text, parts in zip(report.findings, expected, strict=True):
        assert all(part in text for part in parts.split(" .* "))


def test_an_input_normalised_twice_is_named(tmp_path: Path) -> None:
    model(tmp_path / "policy.onnx", DIVIDED, [constant(MEAN, "m"), constant(STD, "s")])
    data = contract_data([{"terms": [{"term": "velocity"}, {"term": "waist"}]}], joints=JOINTS[:2])
    numbers = {"mean": [0.0] * 6, "deviation": [1.0] * 6, "epsilon": 0.0}
    data["graphs"]["policy"]["inputs"]["obs"]["normaliser"] = numbers
    report = check_fingerprint(load_policy(write_bundle(tmp_path, data), ROBOT))
    assert report.findings == (
        "policy.obs: normalised by the contract, and by the graph once more: one of them is too much",
    )


def test_a_network_that_has_its_anchor_by_columns_is_named(tmp_path: Path) -> None:
    terms = [{"term": "anchor_orientation"}]
    rows = np.zeros((3, 36))
    rows[:, 6] = 1.0
    tmp_path.mkdir(exist_ok=True)
    np.savetxt(tmp_path / "m.csv", rows, delimiter=",")
    zeros_model(tmp_path / "policy.onnx", 6, 12)
    motion = {"source": "file", "file": "m.csv", "rate_hz": 50.0, "quat_order": "xyzw", "anchor": "torso"}
    for mean, expected in (
        ([1, 0, 0, 1, 0, 0], None),
        ([1, 0, 0, 0, 1, 0], "elements 0 and 4 were near 1"),
        ([0, 0, 0, 0, 1, 0], "has a mean of +0.00"),
    ):
        data = contract_data([{"terms": terms}], motion=motion)
        numbers = {"mean": [float(number) for number in mean], "deviation": [0.1] * 6, "epsilon": 0.0}
        data["graphs"]["policy"]["inputs"]["obs"]["normaliser"] = numbers
        findings = check_fingerprint(load_policy(write_bundle(tmp_path, data), ROBOT)).findings
        assert [expected in text for text in findings if expected] == ([True] if expected else [])


def test_the_verb_names_what_it_found_and_what_it_could_not_see(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_statistics(tmp_path / "wrong", [{"term": "gravity"}], [0, 0, 1], [0.1] * 3)
    assert run(["check", str(tmp_path / "wrong")]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "the sign is wrong" in output
    assert "what only golden vectors can show" in output
    zeros_model(tmp_path / "plain" / "policy.onnx", 3, 12)
    write_bundle(tmp_path / "plain", contract_data([{"terms": [{"term": "gravity"}]}]))
    assert run(["check", str(tmp_path / "plain")]) == 0
    assert "no normaliser to compare with" in " ".join(capsys.readouterr().out.split())
