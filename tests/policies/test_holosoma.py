import json
from pathlib import Path
from typing import Any

import pytest

from onboard.configs.errors import OnboardError
from onboard.policies.bundle import load_policy
from onboard.policies.golden import check_golden
from onboard.policies.loaders.presets import load_preset, preset_names, shipped_model
from tests.policies.models import JOINTS, ROBOT, zeros_model
from tests.shared import shared_folder

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
    documented += ["mujoco_playground_g1", "twist2", "beyondmimic", "homie", "hover", "bfm_zero", "softa"]
    documented += ["unitree_rl_gym", "active_adaptation", "rma"]
    walkers = ["holosoma_loco", "holosoma_loco_fastsac", "holosoma_loco_ppo"]
    trackers = ["holosoma_wbt", "holosoma_wbt_fastsac", "holosoma_wbt_ppo"]
    assert preset_names() == sorted([*documented, *walkers, *trackers])


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_reads(name: str) -> None:
    """It says what it fits: widths, file names, or a robot."""
    preset = load_preset(name)
    assert preset.about
    assert preset.match is not None or preset.files or preset.robots


def experiment(**terms: Any) -> dict[str, Any]:
    """The parts of a training configuration that a runtime reads, among others."""
    names = ("actions", "base_ang_vel", "dof_vel", "projected_gravity")
    return {
        "algo": {"gamma": 0.99},
        "observation": {
            "groups": {
                "actor_obs": {
                    "terms": {name: {"scale": 1.0, "clip": None} for name in names} | terms,
                    "history_length": 2,
                }
            },
            "clip_observations": 50.0,
        },
        "robot": {
            "dof_names": JOINTS,
            "dof_effort_limit_list": [100.0 + slot for slot in range(29)],
            "init_state": {"default_joint_angles": {name: slot / 8 for slot, name in enumerate(JOINTS)}},
            "control": {
                "action_scale": 0.25,
                "action_scales_by_effort_limit_over_p_gain": True,
                "clip_actions": True,
                "action_clip_value": 20.0,
            },
        },
        "simulator": {"config": {"sim": {"fps": 200, "control_decimation": 2}}},
    }


def described(folder: Path, wide: int, config: Any) -> Path:
    values = metadata(experiment_config=config)
    return zeros_model(folder / "m.onnx", wide, 29, name="actor_obs", output="action", metadata=values)


def test_a_training_configuration_says_everything(tmp_path: Path) -> None:
    config = experiment(base_ang_vel={"scale": 0.25}, dof_pos={"scale": 2.0})
    bundle = load_policy(described(tmp_path, 2 * 93, config), ROBOT)
    contract = bundle.contract
    assert (bundle.preset, contract.rate_hz, contract.decimation) == (None, 100.0, 2)
    assert contract.default_rad == tuple(slot / 8 for slot in range(29))
    action = contract.graphs["policy"].action
    assert action is not None
    assert action.scale == pytest.approx([0.25 * (100.0 + slot) / (10.0 + slot) for slot in range(29)])
    assert action.clip_raw == (-20.0, 20.0)
    spec = contract.graphs["policy"].inputs["actor_obs"]
    assert spec.clip == (-50.0, 50.0)
    assert [block.terms[0].term for block in spec.blocks] == [
        "last_action",
        "gyro",
        "joint_pos",
        "joint_vel",
        "gravity",
    ]
    assert {(b.layout, b.order, b.current, b.fill) for b in spec.blocks} == {
        ("term_major", "oldest_first", True, "zeros")
    }
    assert any(text.startswith("experiment_config: terms, scales") for text in bundle.defaults)


def test_the_published_configuration_equals_the_preset() -> None:
    """One published dance has its configuration inside; the other way to it is the preset made by hand."""
    path = shipped_model("holosoma_wbt_ppo")
    assert path is not None
    bundle = load_policy(path, ROBOT)
    assert any(text.startswith("experiment_config") for text in bundle.defaults)
    report = check_golden(bundle, ROBOT, shared_folder("golden", "holosoma_wbt_ppo_mid.npz"))
    assert report.ok, report.findings


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (experiment(footstep={"scale": 1.0}), "observation 'footstep' is unknown"),
        (experiment(actions={"clip": [-1, 1]}), "'actions' has a clip: before or after its scale"),
        (
            experiment(sin_phase={"scale": 1.0}),
            r"missing 'gait\.period_s': the phase terms read a gait clock",
        ),
        ({"observation": {}}, "missing key 'groups'"),
    ],
)
def test_a_training_configuration_that_can_not_be_followed(
    tmp_path: Path, config: Any, expected: str
) -> None:
    with pytest.raises(OnboardError, match=expected):
        load_policy(described(tmp_path, 186, config), ROBOT)


def test_a_gait_clock_of_a_training_configuration_is_given_its_period(tmp_path: Path) -> None:
    config = experiment(sin_phase={"scale": 1.0}, cos_phase={"scale": 1.0})
    path = described(tmp_path, 2 * 68, config)
    bundle = load_policy(path, ROBOT, overrides=["gait.period_s=0.9"])
    assert bundle.contract.gait is not None
    assert bundle.contract.gait.period_s == 0.9
