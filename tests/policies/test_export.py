"""A contract of our own from any other, complete, readable, and the same."""

from pathlib import Path

import numpy as np
import pytest

from onboard.cli.policy import run
from onboard.configs.errors import PolicyError
from onboard.policies.bundle import load_policy
from onboard.policies.export import export_policy
from tests.policies.models import ROBOT, contract_data, two_inputs_model, write_bundle, zeros_model
from tests.policies.test_metadata import metadata
from tests.policies.test_motion import CSV, TERMS, write_csv


def test_what_the_file_says_is_readable(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 96, 29, metadata=metadata())
    bundle = load_policy(tmp_path, ROBOT, overrides=["rate_hz=25"])
    text = export_policy(bundle, tmp_path / "out").read_text(encoding="utf-8")
    assert f"# {tmp_path.name}, read as metadata\n# with rate_hz=25\n# filled in: " in text
    assert "      - terms: [{term: gyro}]" in text or "- {term: gyro}" in text
    assert "kp: [10.0, 11.0," in text
    assert "clip_first" not in text, "what has its default value says nothing"
    assert load_policy(tmp_path / "out", ROBOT).contract == bundle.contract


def test_motion_normaliser_and_external_weights_go_along(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    write_csv(tmp_path / "elsewhere")
    zeros_model(tmp_path / "p" / "exported" / "policy.onnx", 30, 12)
    np.savez(tmp_path / "p" / "n.npz", mean=np.arange(30) / 7, std=np.ones(30) / 3, eps=0.01)
    motion = CSV | {"file": "absent.csv"}
    data = contract_data([{"terms": TERMS}], motion=motion)
    data["graphs"]["policy"]["model"] = "exported/policy.onnx"
    data["graphs"]["policy"]["inputs"]["obs"]["normaliser"] = {"file": "n.npz"}
    elsewhere = [f"motion.file={tmp_path / 'elsewhere' / 'm.csv'}"]
    bundle = load_policy(write_bundle(tmp_path / "p", data), ROBOT, overrides=elsewhere)
    text = export_policy(bundle, tmp_path / "out").read_text(encoding="utf-8")
    assert "normaliser: {epsilon: 0.01, file: n.npz}" in text
    again = load_policy(tmp_path / "out", ROBOT)
    assert again.contract.motion is not None
    assert again.contract.motion.file == "m.csv"
    assert again.contract.graphs == bundle.contract.graphs
    assert list(again.model_paths.values()) == list(bundle.model_paths.values())


def test_a_lent_provider_is_left_to_the_user(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 3, 12)
    data = contract_data([{"terms": [{"term": "base_lin_vel"}]}])
    bundle = load_policy(write_bundle(tmp_path, data), ROBOT, provider="simulator_truth")
    export_policy(bundle, tmp_path / "out")
    with pytest.raises(PolicyError, match="no provider is named"):
        load_policy(tmp_path / "out", ROBOT)
    named = load_policy(tmp_path, ROBOT, overrides=["providers={base_lin_vel: leg_odometry}"])
    export_policy(named, tmp_path / "named")
    assert load_policy(tmp_path / "named", ROBOT).contract.providers == {"base_lin_vel": "leg_odometry"}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 3, 12)
    bundle = load_policy(write_bundle(tmp_path, contract_data([{"terms": [{"term": "gyro"}]}])), ROBOT)
    with pytest.raises(PolicyError, match=r"contract\.yaml: exists already; give another folder"):
        export_policy(bundle, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(PolicyError, match="can't be written"):
        export_policy(bundle, tmp_path / "file")


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        two_inputs_model(tmp_path / folder / "m.onnx", {"obs": 3, "more": 3}, 12)
    terms = {"blocks": [{"terms": [{"term": "gyro"}]}]}
    data = contract_data([])
    policy = data["graphs"]["policy"] | {"inputs": {"obs": terms, "more": terms}}
    data["graphs"] = {"policy": policy, "other": policy | {"action": None}}
    models = {"policy": tmp_path / "a" / "m.onnx", "other": tmp_path / "b" / "m.onnx"}
    given = [f"graphs.{graph}.model={model}" for graph, model in models.items()]
    bundle = load_policy(write_bundle(tmp_path / "p", data), ROBOT, overrides=given)
    with pytest.raises(PolicyError, match=r"another file of this policy would be written as 'm\.onnx'"):
        export_policy(bundle, tmp_path / "out")


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zeros_model(tmp_path / "policy.onnx", 96, 29, metadata=metadata())
    argv = ["export", str(tmp_path / "policy.onnx"), "--format", "metadata", "--out", str(tmp_path / "out")]
    assert run(argv) == 0
    assert "contract.yaml" in capsys.readouterr().out.replace("\n", "")
    assert run(["show", str(tmp_path / "out"), "--json", str(tmp_path / "facts.json")]) == 0
