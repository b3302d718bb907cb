"""What can't run is refused at load, in one line that says what was found, where, and how to mend it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onboard.configs.errors import ConfigError, OnboardError, PolicyError
from onboard.configs.robot import load_robot
from onboard.policies.bundle import load_policy
from tests.policies.models import JOINTS, LEGS, ROBOT, contract_data, linear_model, write_bundle, zeros_model

Data = dict[str, Any]
BLOCKS: list[Data] = [{"terms": [{"term": "gyro"}, {"term": "gravity"}, {"term": "joint_pos"}]}]


def refused(folder: Path, change: Callable[[Data], object], wide: int = 18) -> str:
    """Message with which a good contract is refused after one change."""
    zeros_model(folder / "policy.onnx", wide, 12)
    data = contract_data([{"terms": [dict(term) for term in BLOCKS[0]["terms"]]}])
    change(data)
    with pytest.raises(OnboardError) as caught:
        load_policy(write_bundle(folder, data), ROBOT)
    message = str(caught.value)
    assert "contract.yaml" in message
    assert "\n" not in message
    return message


def terms(data: Data) -> list[Data]:
    found: list[Data] = data["graphs"]["policy"]["inputs"]["obs"]["blocks"][0]["terms"]
    return found


def action(data: Data) -> Data:
    found: Data = data["graphs"]["policy"]["action"]
    return found


def test_the_unchanged_contract_loads(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 18, 12)
    assert load_policy(write_bundle(tmp_path, contract_data(BLOCKS)), ROBOT).name == "tiny"


def test_the_sum_of_terms_is_not_the_width(tmp_path: Path) -> None:
    message = refused(tmp_path, lambda data: None, wide=20)
    assert "inputs.obs: the terms add up to 18 numbers (gyro 3, gravity 3, joint_pos 12)" in message
    assert "the ONNX input is 20 wide" in message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: terms(d).append({"term": "gyroo"}), "unknown term 'gyroo'; did you mean 'gyro'?"),
        (lambda d: d.update(rate=50), "unknown key 'rate' at the top level; did you mean 'rate_hz'?"),
        (lambda d: terms(d)[0].update(scal=2), "unknown key 'scal'"),
        (lambda d: d.pop("kp"), "missing key 'kp'"),
        (lambda d: d.update(kp=[1.0] * 28), "kp has 28 numbers, expected 29, one for each of joints"),
        (lambda d: d.update(kd=[-1.0] * 29), "kp and kd must not be negative"),
        (lambda d: d.update(kp=[float("nan")] * 29), "kp has a number that is not finite"),
        (lambda d: action(d).pop("scale"), "missing key 'scale'"),
        (lambda d: action(d).update(scale=[1.0] * 11), "action.scale has 11 numbers, expected 12"),
        (lambda d: action(d).update(output="action"), "no output 'action'; it has: actions"),
        (lambda d: action(d).update(joints=LEGS[:11]), "'actions' is 12 wide, but 11 joints are named"),
        (lambda d: action(d).update(joints=[*LEGS[:11], LEGS[0]]), "named twice: left_hip_pitch_joint"),
        (
            lambda d: action(d).update(joints=[*LEGS[:11], "left_toe_joint"]),
            "graphs.policy.action.joints: g1_29dof has no joint 'left_toe_joint'",
        ),
        (lambda d: terms(d)[0].update(scale=[1.0, 2.0]), "scale has 2 numbers, expected 1 or 3"),
        (lambda d: terms(d)[0].update(joints=LEGS), "is not about joints; leave 'joints' out"),
        (lambda d: terms(d).append({"term": "constant"}), "has no 'values'"),
        (lambda d: terms(d).append({"term": "height"}), "needs commands.height_m"),
        (lambda d: terms(d).append({"term": "gait_sin"}), "needs the contract to say 'gait'"),
        (lambda d: terms(d).append({"term": "ref_joint_pos"}), "needs the contract to say 'motion'"),
        (
            lambda d: terms(d).append({"term": "graph_output", "source": "encoder.latent"}),
            "source 'encoder.latent' is no output of a graph that runs before; there are: none",
        ),
        (lambda d: d.update(safety={"events": {"ROLLL": {"limit": 1.0}}}), "safety.events.ROLLL"),
        (lambda d: d["graphs"]["policy"].update(logged=["value"]), "no output 'value'"),
        (lambda d: d.update(providers={"base_height": "external"}), "reads no such term; leave it out"),
        (
            lambda d: d["graphs"]["policy"]["inputs"].update(time_step={"carries": "motion_index"}),
            "no input 'time_step'; it has: obs",
        ),
        (
            lambda d: d["graphs"]["policy"]["inputs"]["obs"]["blocks"][0].update(frames=3),
            "a block of 3 frames must also say: layout, order, current, fill",
        ),
        (lambda d: d["graphs"]["policy"].update(every=0), "graphs[...].every"),
        (lambda d: d.update(schema=2), "schema"),
        (lambda d: d.update(motion={"source": "clock"}), "source 'clock' needs: length_s"),
    ],
)
def test_a_contradiction_is_named(tmp_path: Path, change: Callable[[Data], object], expected: str) -> None:
    assert expected in refused(tmp_path, change)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: terms(d)[0].update(scale=float("inf")), "term 'gyro': a number is not finite"),
        (lambda d: terms(d)[0].update(clip=[1.0, -1.0]), "clip [1.0, -1.0] is not [lower, upper]"),
        (
            lambda d: d["graphs"]["policy"]["inputs"]["obs"].update(
                normaliser={"mean": [0.0], "deviation": [1.0, 1.0], "epsilon": 0.0}
            ),
            "1 means, 2 deviations",
        ),
        (
            lambda d: d["graphs"]["policy"]["inputs"]["obs"].update(
                normaliser={"mean": [0.0], "deviation": [0.0], "epsilon": 0.0}
            ),
            "a deviation is not positive",
        ),
        (
            lambda d: d["graphs"]["policy"]["inputs"]["obs"].update(
                normaliser={"mean": [0.0], "deviation": [1.0], "epsilon": 0.0}
            ),
            "normaliser: 1 means for 18 numbers",
        ),
        (
            lambda d: d["graphs"]["policy"]["inputs"].update(obs={}),
            "an input that carries terms has 0 blocks",
        ),
        (lambda d: d["graphs"]["policy"].pop("action"), "no graph has an action"),
        (
            lambda d: d["graphs"]["policy"].update(recurrent=[{"input": "h_in", "output": "h_out"}]),
            "the ONNX file has no input 'h_in'",
        ),
        (lambda d: action(d).update(base="start"), "Invalid enum value 'start'"),
        (lambda d: action(d).update(scale=float("nan")), "action.scale is nan"),
        (
            lambda d: d.update(target_clip={"lower": [0.0], "upper": [1.0] * 29}),
            "target_clip.lower has 1 numbers",
        ),
    ],
)
def test_numbers_and_ports_that_make_no_sense(
    tmp_path: Path, change: Callable[[Data], object], expected: str
) -> None:
    assert expected in refused(tmp_path, change)


def test_an_input_that_the_contract_does_not_describe_is_refused(tmp_path: Path) -> None:
    linear_model(tmp_path / "policy.onnx", np.zeros((18, 12)), name="observations")
    with pytest.raises(PolicyError, match="the ONNX file has no input 'obs'; it has: observations"):
        load_policy(write_bundle(tmp_path, contract_data(BLOCKS)), ROBOT)


def test_every_joint_of_the_robot_needs_gains(tmp_path: Path) -> None:
    def drop_wrists(data: Data) -> None:
        for key in ("joints", "kp", "kd", "default_rad", "start_rad", "hold_rad"):
            data[key] = data[key][:26]

    message = refused(tmp_path, drop_wrists)
    assert "no gains for right_wrist_roll_joint, right_wrist_pitch_joint, right_wrist_yaw_joint" in message


def test_joints_that_the_robot_lacks_are_refused_by_name(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 18, 12)
    with pytest.raises(PolicyError, match="g1_23dof has no joint 'waist_roll_joint'"):
        load_policy(write_bundle(tmp_path, contract_data(BLOCKS)), load_robot("g1_23dof"))


def test_a_privileged_term_needs_a_provider(tmp_path: Path) -> None:
    message = refused(tmp_path, lambda data: terms(data).append({"term": "base_lin_vel"}), wide=21)
    assert "can't be measured on the robot and no provider is named" in message
    assert "simulator_truth, leg_odometry, external" in message
    assert "--set providers.base_lin_vel=simulator_truth" in message
    loaded = load_policy(tmp_path, ROBOT, overrides=["providers.base_lin_vel=leg_odometry"])
    assert loaded.contract.providers == {"base_lin_vel": "leg_odometry"}
    with pytest.raises(PolicyError, match="unknown provider 'lidar'"):
        load_policy(tmp_path, ROBOT, overrides=["providers.base_lin_vel=lidar"])


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    weights = np.zeros((18, 12))
    weights[4, 7] = np.nan
    linear_model(tmp_path / "policy.onnx", weights)
    with pytest.raises(PolicyError, match="its weights hold NaN or infinity"):
        load_policy(write_bundle(tmp_path, contract_data(BLOCKS)), ROBOT)


def test_yaml_that_would_execute_code_is_refused(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 18, 12)
    marker = tmp_path / "executed"
    (tmp_path / "contract.yaml").write_text(f'name: !!python/object/apply:os.mkdir ["{marker}"]\n')
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_policy(tmp_path, ROBOT)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("holosoma_loco", "'holosoma_loco' is a preset without a model"),
        ("walkman", "neither a path nor a shipped policy; there are: holosoma_loco_fastsac"),
        ("./nowhere", "nowhere: not found"),
    ],
)
def test_names_that_stand_for_nothing(name: str, expected: str) -> None:
    with pytest.raises(PolicyError, match=expected):
        load_policy(name, ROBOT)


def test_a_folder_must_have_one_model(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no ONNX file in it"):
        load_policy(tmp_path, ROBOT)
    zeros_model(tmp_path / "a.onnx", 3, 2)
    zeros_model(tmp_path / "b.onnx", 3, 2)
    with pytest.raises(PolicyError, match=r"2 ONNX files \(a\.onnx, b\.onnx\); give the path of one"):
        load_policy(tmp_path, ROBOT)


def test_a_file_that_says_nothing_is_not_guessed(tmp_path: Path) -> None:
    zeros_model(tmp_path / "m.onnx", 575, 29, name="actor_obs", output="action")
    with pytest.raises(PolicyError, match=r"nothing is guessed; give --preset NAME .*: falcon\)"):
        load_policy(tmp_path / "m.onnx", ROBOT)


def test_overrides_pass_the_same_checks(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 18, 12)
    folder = write_bundle(tmp_path, contract_data(BLOCKS))
    with pytest.raises(
        ConfigError, match="with rate_hz=fast: rate_hz: Expected `float`, got `str`, found 'fast'"
    ):
        load_policy(folder, ROBOT, overrides=["rate_hz=fast"])
    with pytest.raises(ConfigError, match="no key 'graph'; did you mean 'graphs'"):
        load_policy(folder, ROBOT, overrides=["graph.policy.every=2"])
    changed = load_policy(folder, ROBOT, overrides=["graphs.policy.action.scale=0.5"])
    assert changed.contract.graphs["policy"].action is not None
    assert changed.contract.graphs["policy"].action.scale == 0.5
    assert changed.overrides == ("graphs.policy.action.scale=0.5",)


def test_what_was_filled_in_is_said(tmp_path: Path) -> None:
    zeros_model(tmp_path / "policy.onnx", 18, 12)
    data = contract_data(BLOCKS)
    for key in ("start_rad", "hold_rad"):
        del data[key]
    bundle = load_policy(write_bundle(tmp_path, data), ROBOT)
    assert bundle.contract.start_rad == bundle.contract.default_rad
    assert [text.split(":")[0] for text in bundle.defaults] == ["start_rad", "hold_rad"]
    assert bundle.contract.joints == tuple(JOINTS)
