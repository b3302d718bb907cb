import json
from pathlib import Path
from typing import Any

import pytest

from onboard.configs.errors import OnboardError
from onboard.policies.bundle import load_policy
from onboard.policies.loaders.presets import load_preset, preset_names, shipped_model
from tests.policies.models import JOINTS, ROBOT, zeros_model

RANGES = {"lin_vel_x": [-0.8, 1.0], "lin_vel_y": [-0.5, 0.5], "ang_vel_yaw": [-1, 1], "heading": [-3.1, 3.1]}


def metadata(**changes: Any) -> dict[str, str]:
    values: dict[str, Any] = {
        "dof_names": JOINTS,
        "kp": [10.0 + slot for slot in range(29)],
        "kd": [1.0] * 29,
        "command_ranges": RANGES,
    }
    return {key: json.dumps(value) for key, value in (values | changes).items() if value != "absent"}


def walker(path: Path, **changes: Any) -> Path:
    return zeros_model(path, 100, 29, name="actor_obs", output="action", metadata=metadata(**changes))


def test_metadata_and_preset_make_a_contract(tmp_path: Path) -> None:
    bundle = load_policy(walker(tmp_path / "m.onnx"), ROBOT)
    contract = bundle.contract
    assert contract.kp == tuple(10.0 + slot for slot in range(29))
    assert contract.commands.lin_vel_x == (-0.8, 1.0)
    assert contract.commands.ang_vel_z == (-1.0, 1.0)
    assert bundle.preset == "holosoma_loco"
    assert any("preset holosoma_loco: taken because" in text for text in bundle.defaults)
    assert any("from preset holosoma_loco" in text and "default_rad" in text for text in bundle.defaults)


def test_an_action_scale_in_the_metadata_wins_over_the_preset(tmp_path: Path) -> None:
    action = (
        load_policy(walker(tmp_path / "m.onnx", action_scale=[0.5] * 29), ROBOT)
        .contract.graphs["policy"]
        .action
    )
    assert action is not None
    assert action.scale == (0.5,) * 29


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"kp": "absent"}, "gains, but no terms, scales or action scale; no preset fits"),
        ({"kp": [1.0] * 28}, "kp has 28 numbers, expected 29"),
        ({"dof_names": [*JOINTS[:28], "head_joint"]}, "its dof_names are not the preset's joints"),
    ],
)
def test_metadata_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(OnboardError, match=expected):
        load_policy(walker(tmp_path / "m.onnx", **changes), ROBOT)


def test_damaged_metadata_is_refused(tmp_path: Path) -> None:
    path = zeros_model(
        tmp_path / "m.onnx", 100, 29, name="actor_obs", output="action", metadata=metadata() | {"kp": "[1.0,"}
    )
    with pytest.raises(OnboardError, match="metadata 'kp' is not JSON"):
        load_policy(path, ROBOT)


def test_a_preset_for_another_family_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        OnboardError, match=r"preset 'falcon' does not fit: .*; presets that fit: holosoma_loco"
    ):
        load_policy(walker(tmp_path / "m.onnx"), ROBOT, preset="falcon")
    with pytest.raises(OnboardError, match="'flacon' is no shipped policies configuration"):
        load_policy(walker(tmp_path / "m.onnx"), ROBOT, preset="flacon")


def test_a_tracking_model_without_action_scale_is_refused() -> None:
    path = shipped_model("holosoma_wbt_fastsac")
    assert path is not None
    with pytest.raises(
        OnboardError, match=r"missing 'graphs\.policy\.action\.scale': .* give --set graphs\.policy"
    ):
        load_policy(path, ROBOT)
    bundle = load_policy(path, ROBOT, overrides=["graphs.policy.action.scale=1.0"])
    assert len(bundle.motion_frames or ()) == 6774


def test_a_published_model_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OnboardError, match="not installed: pip install --no-deps holosoma-inference"):
        load_policy("holosoma_loco_ppo", ROBOT)


def test_the_shipped_names_are_the_documented_ones() -> None:
    documented = ["asap_mimic", "asap_dec_loco", "falcon", "falcon_dec_loco"]
    documented += ["mujoco_playground_g1", "twist2", "beyondmimic"]
    walkers = ["holosoma_loco", "holosoma_loco_fastsac", "holosoma_loco_ppo"]
    trackers = ["holosoma_wbt", "holosoma_wbt_fastsac", "holosoma_wbt_ppo"]
    assert preset_names() == sorted([*documented, *walkers, *trackers])


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_reads(name: str) -> None:
    assert load_preset(name).match is not None
