"""What a bundle names lies inside it: each kind of file, each way out of the folder, one refusal."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from onboard.configs.errors import PolicyError
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.onnx_parts import external_locations
from onboard.policies.residual.files import load_residual
from onboard.policies.session import inspect_model
from tests.policies.models import ROBOT, contract_data, save_graph, write_bundle, zeros_model
from tests.policies.residual.support import network
from tests.policies.test_motion import CSV, TERMS, write_csv

WAYS_OUT: dict[str, Callable[[Path, Path], str]] = {
    "absolute": lambda _folder, target: str(target),
    "dots": lambda folder, target: os.path.relpath(target, folder),
    "dots from inside": lambda folder, target: "sub/../../" + os.path.relpath(target, folder.parent),
    "link": lambda folder, target: _linked(folder / f"linked{target.suffix}", target),
    "linked folder": lambda folder, target: f"{_linked(folder / 'linked', target.parent)}/{target.name}",
    "loop": lambda folder, target: _linked(folder / f"loop{target.suffix}", folder / f"loop{target.suffix}"),
    "no name": lambda _folder, target: f"\0{target.name}",
}


def _linked(link: Path, target: Path) -> str:
    link.symlink_to(target)
    return link.name


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with everything that a bundle could want, beside the bundle."""
    folder = tmp_path / "outside"
    folder.mkdir()
    zeros_model(folder / "policy.onnx", 30, 12)
    write_csv(folder)
    np.savez(folder / "n.npz", mean=np.zeros(30), std=np.ones(30), eps=0.01)
    np.save(folder / "latent.npy", np.zeros(30))
    return folder


def _load(bundle: Path, *, model: str, motion: str, normaliser: str, constant: str) -> PolicyBundle:
    """A tracking policy in `bundle`, its files named as given."""
    data = contract_data([{"terms": TERMS}], motion=CSV | {"file": motion})
    data["graphs"]["policy"]["model"] = model
    data["graphs"]["policy"]["inputs"]["obs"]["normaliser"] = {"file": normaliser}
    data["constants"] = {"z": {"file": constant}}
    return load_policy(write_bundle(bundle, data), ROBOT)


KEYS = {
    "model": ("policy.onnx", r"graphs\.policy\.model"),
    "motion": ("m.csv", r"motion\.file"),
    "normaliser": ("n.npz", r"graphs\.policy\.inputs\.obs\.normaliser\.file"),
    "constant": ("latent.npy", r"constants\.z\.file"),
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("key", KEYS)
def test_no_file_of_a_contract_leaves_its_folder(tmp_path: Path, outside: Path, key: str, way: str) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "sub").mkdir(parents=True)
    names = {}
    for kind, (name, _) in KEYS.items():
        (bundle / name).write_bytes((outside / name).read_bytes())
        names[kind] = name
    names[key] = WAYS_OUT[way](bundle, outside / KEYS[key][0])
    with pytest.raises(
        PolicyError, match=rf"(the bundle|{KEYS[key][1]}) names .*which does not lie in that folder"
    ):
        _load(bundle, **names)


def test_a_bundle_may_be_a_link_and_name_files_in_its_own_folders(tmp_path: Path, outside: Path) -> None:
    (outside / "sub").mkdir()
    (outside / "again.csv").symlink_to("m.csv")
    (tmp_path / "bundle").symlink_to(outside)
    names = {"model": "policy.onnx", "normaliser": "sub/../n.npz", "constant": "latent.npy"}
    assert _load(tmp_path / "bundle", motion="again.csv", **names).motion_frames is not None


def test_the_user_may_name_a_file_elsewhere(tmp_path: Path, outside: Path) -> None:
    zeros_model(tmp_path / "p" / "policy.onnx", 30, 12)
    write_bundle(tmp_path / "p", contract_data([{"terms": TERMS}], motion=CSV | {"file": "absent.csv"}))
    given = [f"motion.file={outside / 'm.csv'}"]
    assert load_policy(tmp_path / "p", ROBOT, overrides=given).motion_frames is not None


@pytest.mark.parametrize("name", ["policy.onnx", "contract.yaml", "params/deploy.yaml", "exported"])
def test_a_file_that_a_bundle_is_known_by_is_no_link_out_of_it(
    tmp_path: Path, outside: Path, name: str
) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "params").mkdir(parents=True)
    (outside / "file").write_text("{}")
    target = {"policy.onnx": outside / "policy.onnx", "exported": outside}.get(name, outside / "file")
    (bundle / name).symlink_to(target)
    with pytest.raises(PolicyError, match=r"the bundle names .*which does not lie in that folder"):
        load_policy(bundle, ROBOT)


def test_a_model_that_the_user_names_by_a_link_has_its_bundle_around_the_target(
    tmp_path: Path, outside: Path
) -> None:
    data = contract_data([{"terms": TERMS}], motion=CSV | {"file": "m.csv"})
    write_bundle(outside, data)
    (tmp_path / "current.onnx").symlink_to(outside / "policy.onnx")
    assert load_policy(tmp_path / "current.onnx", ROBOT).folder == outside


def test_a_residuals_network_stays_beside_it(tmp_path: Path, outside: Path) -> None:
    data = network(outside, np.zeros((2, 2)), [{"term": "target_error"}])
    for name in (str(outside / "delta.onnx"), "../outside/delta.onnx"):
        data["network"]["model"] = name
        (tmp_path / "here").mkdir(exist_ok=True)
        path = tmp_path / "here" / "residual.yaml"
        path.write_text(yaml.safe_dump({"residual": data}))
        with pytest.raises(PolicyError, match=r"residual\.yaml: network\.model names .*does not lie in that"):
            load_residual(path, ROBOT, None)


def _outside_tensor(location: str, name: str = "w") -> Any:
    tensor = numpy_helper.from_array(np.zeros((3, 2), np.float32), name)
    onnx.external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    return tensor


LONG = "../" + "x" * 200 + "/secret"
"""More bytes than fit into one byte of length."""


def _in_initializer(location: str) -> Any:
    return {"initializer": [_outside_tensor(location)]}, []


def _in_constant(location: str) -> Any:
    return {}, [helper.make_node("Constant", [], ["w"], value=_outside_tensor(location))]


def _in_a_branch(location: str) -> Any:
    inner = helper.make_graph(
        [helper.make_node("Identity", ["v"], ["w2"])],
        "inner",
        [],
        [helper.make_tensor_value_info("w2", TensorProto.FLOAT, [3, 2])],
        [_outside_tensor(location, "v")],
    )
    yes = numpy_helper.from_array(np.array(True), "yes")
    node = helper.make_node("If", ["yes"], ["w"], then_branch=inner, else_branch=inner)
    return {"initializer": [yes]}, [node]


@pytest.mark.parametrize("place", [_in_initializer, _in_constant, _in_a_branch])
@pytest.mark.parametrize("location", ["../weights", "/etc/passwd", LONG, "linked"])
def test_external_data_is_found_wherever_a_model_hides_it(
    tmp_path: Path, place: Callable[[str], Any], location: str
) -> None:
    parts, nodes = place(location)
    graph = helper.make_graph(
        [*nodes, helper.make_node("MatMul", ["obs", "w"], ["actions"])],
        "outside",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, 2])],
        **parts,
    )
    path = save_graph(tmp_path / "m.onnx", graph)
    (tmp_path / "linked").symlink_to("/etc/passwd")
    assert external_locations(path.read_bytes()) == {location}
    with pytest.raises(PolicyError, match=r"external data of m\.onnx names .*does not lie in that folder"):
        inspect_model(path)


def test_a_pipe_or_a_device_in_a_bundle_does_not_hold_the_reader(tmp_path: Path, outside: Path) -> None:
    os.mkfifo(outside / "pipe.onnx")
    names = {"motion": "m.csv", "normaliser": "n.npz", "constant": "latent.npy"}
    with pytest.raises(PolicyError, match=r"pipe\.onnx: can't be read \(not a regular file\)"):
        _load(outside, model="pipe.onnx", **names)
