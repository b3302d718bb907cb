"""A contract written as text and read back is the same contract, whatever family it came from."""

from pathlib import Path

import pytest

from onboard.configs.errors import OnboardError
from onboard.policies.bundle import load_policy
from onboard.policies.export import export_policy
from tests.policies.models import ROBOT, assert_same_bits, contract_data, write_bundle, zeros_model
from tests.policies.test_golden import PRESETS, SHIPPED
from tests.shared import shared_folder


@pytest.mark.parametrize("name", [*SHIPPED, *PRESETS])
def test_every_family_survives_being_exported(tmp_path: Path, name: str) -> None:
    path = name if name in SHIPPED else shared_folder("policies", name)
    bundle = load_policy(path, ROBOT, PRESETS.get(name), provider="simulator_truth")
    export_policy(bundle, tmp_path)
    again = load_policy(tmp_path, ROBOT, provider="simulator_truth")
    assert again.contract == bundle.contract
    assert again.format == "contract.yaml"
    assert all(text.startswith(("commands: no range stated", "providers.")) for text in again.defaults)
    assert list(again.model_paths.values()) == list(bundle.model_paths.values())
    assert_same_bits(bundle, again)


def test_a_preset_beside_a_contract_is_refused(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 3, 12)
    folder = write_bundle(tmp_path, contract_data([{"terms": [{"term": "gyro"}]}]))
    with pytest.raises(OnboardError, match=r"--preset falcon: this policy has a contract\.yaml, which says"):
        load_policy(folder, ROBOT, preset="falcon")


@pytest.mark.parametrize("text", ["- a list\n", "", "key: [\n"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "contract.yaml").write_text(text)
    with pytest.raises(OnboardError, match=r"contract\.yaml"):
        load_policy(tmp_path, ROBOT)
