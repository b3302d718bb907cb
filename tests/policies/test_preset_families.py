"""Presets of families whose files may not be passed on, on small networks with the same interface."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onboard.configs.errors import OnboardError, PolicyError
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.export import export_policy
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from tests.policies.models import (
    JOINTS,
    ROBOT,
    assert_same_bits,
    contract_data,
    linear_model,
    random_state,
    save_graph,
    write_bundle,
    zeros_model,
)
from tests.policies.test_metadata import metadata
from tests.policies.test_motion import write_csv
from tests.policies.test_presets import beyondmimic_model

HELD = [slot for slot, name in enumerate(JOINTS) if name not in ("waist_roll_joint", "waist_pitch_joint")]


def started(policy: Policy) -> State:
    state = random_state(np.random.default_rng(5))
    policy.reset(state)
    return state


def test_homie_sees_27_joints_and_drives_12(tmp_path: Path) -> None:
    path = zeros_model(tmp_path / "deploy.onnx", 456, 12, name="input", output="output")
    policy = Policy(load_policy(path, ROBOT, "homie"), ROBOT)
    state, command = started(policy), policy.neutral_command()
    command.set_velocity(0.5, -0.25, 1.0)
    obs = policy.observe(state, command, 0).reshape(6, 76)
    assert not obs[:5].any(), "zeros before the first tick"
    frame = obs[5]
    assert frame[:4] == pytest.approx([1.0, -0.5, 0.25, 0.74])
    assert frame[4:7] == pytest.approx(0.5 * state.gyro_body)
    assert frame[10:37] == pytest.approx(state.q[HELD] - policy.start_pose[HELD], abs=1e-6)
    assert frame[37:64] == pytest.approx(0.05 * state.dq[HELD])
    policy.hold[15] = 0.7
    target = policy.target(np.ones(12, np.float32))
    assert target[:2] == pytest.approx([0.15, 0.25])
    assert target[15] == pytest.approx(0.7), "arms hold what they are told"


def test_hover_is_for_another_robot(tmp_path: Path) -> None:
    path = zeros_model(tmp_path / "student.onnx", 1575, 19)
    with pytest.raises(
        PolicyError,
        match="preset 'hover': HOVER's published policies were trained for the Unitree H1, which has 19",
    ) as caught:
        load_policy(path, ROBOT, "hover")
    assert "the robot here is g1_29dof, with other joints, gains and masses" in str(caught.value)


def test_bfm_zero_is_told_its_task_by_a_latent(tmp_path: Path) -> None:
    path = zeros_model(tmp_path / "FBcprAuxModel.onnx", 721, 29, name="onnx::in", output="out")
    with pytest.raises(OnboardError, match=r"missing 'constants\.z\.values': the 256 numbers of the task"):
        load_policy(path, ROBOT, "bfm_zero")
    latent = np.random.default_rng(0).normal(size=(1, 256)).astype(np.float32)
    np.save(tmp_path / "z.npy", latent)
    bundle = load_policy(path, ROBOT, "bfm_zero", overrides=["constants.z.file=z.npy"])
    assert str(tmp_path / "z.npy") in bundle.model_paths
    policy = Policy(bundle, ROBOT)
    state = started(policy)
    first = policy.observe(state, policy.neutral_command(), 0).copy()
    assert first[-256:] == pytest.approx(latent[0])
    assert not first[93:465].any(), "an empty history"
    policy.commit(np.linspace(-3.0, 3.0, 29, dtype=np.float32))
    second = policy.observe(state, policy.neutral_command(), 1)
    fed_back = 5.0 * np.linspace(-3.0, 3.0, 29).clip(-1.0, 1.0)
    assert second[64:93] == pytest.approx(fed_back, abs=1e-6), "what was sent, clipped and times 5"
    assert second[93 : 93 + 29] == pytest.approx(np.zeros(29)), "the tick before had no action yet"
    assert second[93 + 116 : 93 + 116 + 3] == pytest.approx(0.25 * state.gyro_body)
    assert policy.target(np.full(29, 9.0, np.float32))[2] == pytest.approx(2.73773495)
    export_policy(bundle, tmp_path / "out")
    again = load_policy(tmp_path / "out", ROBOT)
    assert again.contract == bundle.contract


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("constants.z.file=absent.npy", r"constants\.z expects an \.npy"),
        ("constants.z={file: z.npy, values: [1.0]}", "has both a file and values"),
        ("constants.z.values=[1.0, 2.0]", "add up to 467 numbers"),
        ("constants={z: {values: [1.0]}, y: {}}", "missing key 'values' at constants"),
    ],
)
def test_a_latent_that_is_none_is_refused(tmp_path: Path, override: str, expected: str) -> None:
    path = zeros_model(tmp_path / "m.onnx", 721, 29, name="in", output="out")
    np.save(tmp_path / "z.npy", np.zeros(256))
    with pytest.raises(OnboardError, match=expected):
        load_policy(path, ROBOT, "bfm_zero", overrides=[override])


def lstm_like(path: Path, wide: int, narrow: int, carried: Mapping[str, str], size: int) -> Path:
    """Actions are the first state's mean; every state grows by 1 each tick."""
    value = helper.make_tensor_value_info
    shape = [1, 1, size]
    nodes = [helper.make_node("Add", [inside, "one"], [outside]) for inside, outside in carried.items()]
    first = next(iter(carried.values()))
    nodes += [
        helper.make_node("Reshape", [first, "flat"], ["row"]),
        helper.make_node("MatMul", ["row", "mean"], ["level"]),
        helper.make_node("MatMul", ["obs", "w"], ["plain"]),
        helper.make_node("Add", ["plain", "level"], ["actions"]),
    ]
    graph = helper.make_graph(
        nodes,
        "recurrent",
        [
            value("obs", TensorProto.FLOAT, [1, wide]),
            *(value(name, TensorProto.FLOAT, shape) for name in carried),
        ],
        [
            value("actions", TensorProto.FLOAT, [1, narrow]),
            *(value(name, TensorProto.FLOAT, shape) for name in carried.values()),
        ],
        [
            numpy_helper.from_array(np.ones(shape, np.float32), "one"),
            numpy_helper.from_array(np.array([1, size]), "flat"),
            numpy_helper.from_array(np.full((size, narrow), 1.0 / size, np.float32), "mean"),
            numpy_helper.from_array(np.zeros((wide, narrow), np.float32), "w"),
        ],
    )
    return save_graph(path, graph)


def test_unitree_rl_gyms_lstm_carries_its_state(tmp_path: Path) -> None:
    path = lstm_like(tmp_path / "motion.onnx", 47, 12, {"h_in": "h_out", "c_in": "c_out"}, 64)
    policy = Policy(load_policy(path, ROBOT, "unitree_rl_gym"), ROBOT)
    state = started(policy)
    levels = []
    for step in range(3):
        obs = policy.observe(state, policy.neutral_command(), step)
        raw = policy.infer().copy()
        levels.append(float(raw[0]))
        policy.commit(raw)
    assert levels == pytest.approx([1.0, 2.0, 3.0])
    assert obs[:3] == pytest.approx(0.25 * state.gyro_body)
    assert obs[45:] == pytest.approx([np.sin(2 * np.pi * 0.05), np.cos(2 * np.pi * 0.05)], abs=1e-6)
    policy.observe(state, policy.neutral_command(), 3)
    assert policy.infer()[0] == pytest.approx(4.0)
    assert policy.infer()[0] == pytest.approx(4.0), "a tick that is not committed leaves no trace"
    policy.reset(state)
    policy.observe(state, policy.neutral_command(), 0)
    assert policy.infer()[0] == pytest.approx(1.0)


def adaptation_model(path: Path, wide: int) -> Path:
    """State grows by 1 a tick and starts anew where `is_init` says so; action 0 is the flag."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Cast", ["is_init"], ["flag"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["adapt_hx", "one"], ["next_adapt_hx"]),
        helper.make_node("MatMul", ["policy", "w"], ["plain"]),
        helper.make_node("Add", ["plain", "flag"], ["action"]),
    ]
    graph = helper.make_graph(
        nodes,
        "adaptive",
        [
            value("policy", TensorProto.FLOAT, ["batch", wide]),
            value("is_init", TensorProto.BOOL, ["batch"]),
            value("adapt_hx", TensorProto.FLOAT, ["batch", 128]),
        ],
        [
            value("action", TensorProto.FLOAT, ["batch", 12]),
            value("next_adapt_hx", TensorProto.FLOAT, ["batch", 128]),
        ],
        [
            numpy_helper.from_array(np.ones((1, 128), np.float32), "one"),
            numpy_helper.from_array(np.zeros((wide, 12), np.float32), "w"),
        ],
    )
    return save_graph(path, graph)


GIVEN = {
    "kp": [50.0] * 29,
    "kd": [1.0] * 29,
    "default_rad": [0.0] * 29,
}


def overrides(**values: Any) -> list[str]:
    return [f"{key.replace('__', '.')}={value}" for key, value in values.items()]


def test_active_adaptations_state_and_first_tick(tmp_path: Path) -> None:
    path = adaptation_model(tmp_path / "policy.onnx", 3 + 6 * 29)
    with pytest.raises(OnboardError, match="missing 'kp': joint_kp of the YAML beside the export"):
        load_policy(path, ROBOT, "active_adaptation")
    blocks = (
        "[{terms: [{term: gyro}]}, "
        "{terms: [{term: joint_pos}], steps: [0, 1, 2, 3, 4, 8], layout: term_major, fill: zeros}]"
    )
    given = overrides(
        **GIVEN,
        observed_joints=JOINTS,
        graphs__policy__action__joints=JOINTS[:12],
        graphs__policy__action__scale=0.5,
        graphs__policy__inputs__policy__blocks=blocks,
    )
    policy = Policy(load_policy(path, ROBOT, "active_adaptation", overrides=given), ROBOT)
    state = started(policy)
    flags, ages = [], []
    for step in range(10):
        state.q[:] = step
        obs = policy.observe(state, policy.neutral_command(), step)
        ages.append(obs[3::29].tolist())
        raw = policy.infer()
        flags.append(float(raw[0]))
        policy.commit(raw)
    assert flags == [1.0] + [0.0] * 9
    assert ages[9] == [9.0, 8.0, 7.0, 6.0, 5.0, 1.0], "steps of their own, newest first"
    assert ages[3] == [3.0, 2.0, 1.0, 0.0, 0.0, 0.0]


def test_rmas_adaptation_feeds_the_policy(tmp_path: Path) -> None:
    with pytest.raises(
        PolicyError,
        match=r"preset 'rma' expects the files adaptation\.onnx, policy\.onnx; missing: adaptation\.on",
    ):
        load_policy(tmp_path, ROBOT, "rma")
    latent: NDArray[np.float32] = np.zeros((6, 2), np.float32)
    latent[0, 0], latent[3, 1] = 1.0, 10.0
    linear_model(tmp_path / "adaptation.onnx", latent, name="history", output="latent")
    second_input(tmp_path / "policy.onnx")
    given = overrides(
        **GIVEN,
        graphs__policy__action__scale=1.0,
        graphs__adaptation__inputs__history__blocks="[{terms: [{term: gyro}], frames: 2, layout: term_major, "
        "order: newest_first, current: true, fill: zeros}]",
        graphs__policy__inputs__obs__blocks="[{terms: [{term: gravity}]}]",
    )
    policy = Policy(load_policy(tmp_path, ROBOT, "rma", overrides=given), ROBOT)
    state = started(policy)
    state.gyro_body[0] = 0.5
    policy.observe(state, policy.neutral_command(), 0)
    assert policy.infer()[:2] == pytest.approx([0.5, 0.0])
    policy.commit(policy.raw)
    state.gyro_body[0] = 0.25
    policy.observe(state, policy.neutral_command(), 1)
    assert policy.infer()[:2] == pytest.approx([0.25, 5.0]), "of this tick and of the one before"
    assert policy.extras["adaptation.latent"] == pytest.approx([0.25, 5.0])


def second_input(path: Path) -> Path:
    """29 actions, the first two of which are the latent."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Concat", ["latent", "obs"], ["all"], axis=1),
            helper.make_node("MatMul", ["all", "w"], ["actions"]),
        ],
        "policy",
        [value("obs", TensorProto.FLOAT, [1, 3]), value("latent", TensorProto.FLOAT, [1, 2])],
        [value("actions", TensorProto.FLOAT, [1, 29])],
        [numpy_helper.from_array((np.eye(5, 29) * (np.arange(29) < 2)).astype(np.float32), "w")],
    )
    return save_graph(path, graph)


def test_softas_arms_run_twice_as_often_as_its_legs(tmp_path: Path) -> None:
    weights = np.zeros((525, 15))
    weights[4 * 105 + 29] = 1.0  # the newest frame's gyro about x
    linear_model(tmp_path / "lower.onnx", weights, name="actor_obs", output="action")
    linear_model(tmp_path / "upper.onnx", weights[:, :14], name="actor_obs", output="action")
    with pytest.raises(
        OnboardError, match=r"missing 'constants\.command_ee\.values': the end effector's command"
    ):
        load_policy(tmp_path, ROBOT, "softa")
    ee = [0.3, -0.15, 0.05, 0.1, 1.0]
    bundle = load_policy(tmp_path, ROBOT, "softa", overrides=[f"constants.command_ee.values={ee}"])
    policy = Policy(bundle, ROBOT)
    state = started(policy)
    rows = []
    for step in range(4):
        state.gyro_body[0] = step + 1.0
        policy.observe(state, policy.neutral_command(), step)
        raw = policy.infer().copy()
        rows.append((raw[0], raw[15]))
        policy.commit(raw)
    assert rows == [(0.25, 0.25), (0.25, 0.5), (0.75, 0.75), (0.75, 1.0)]
    frame = policy.obs[525 + 420 :]
    assert frame[:29] == pytest.approx([0.75] * 15 + [0.75] * 14), "both see what both did last"
    assert frame[33:38] == pytest.approx(ee)
    target = policy.target(np.ones(29, np.float32))
    assert target[[0, 28]] == pytest.approx([0.15, 0.25])


def rma_folder(folder: Path) -> PolicyBundle:
    linear_model(folder / "adaptation.onnx", np.ones((6, 2)), name="history", output="latent")
    second_input(folder / "policy.onnx")
    given = overrides(
        **GIVEN,
        graphs__policy__action__scale=1.0,
        graphs__adaptation__every=2,
        graphs__adaptation__inputs__history__blocks="[{terms: [{term: gyro}], frames: 2, layout: term_major, "
        "order: newest_first, current: true, fill: zeros}]",
        graphs__policy__inputs__obs__blocks="[{terms: [{term: gravity}]}]",
    )
    return load_policy(folder, ROBOT, "rma", overrides=given)


def softa_folder(folder: Path) -> PolicyBundle:
    weights = np.random.default_rng(0).normal(size=(525, 15)) * 0.1
    linear_model(folder / "lower.onnx", weights, name="actor_obs", output="action")
    linear_model(folder / "upper.onnx", weights[:, :14], name="actor_obs", output="action")
    return load_policy(folder, ROBOT, "softa", overrides=["constants.command_ee.values=[1, 2, 3, 4, 5]"])


def homie_file(folder: Path) -> PolicyBundle:
    weights = np.random.default_rng(0).normal(size=(456, 12))
    return load_policy(linear_model(folder / "deploy.onnx", weights), ROBOT, "homie")


def lstm_file(folder: Path) -> PolicyBundle:
    path = lstm_like(folder / "motion.onnx", 47, 12, {"h_in": "h_out", "c_in": "c_out"}, 64)
    return load_policy(path, ROBOT, "unitree_rl_gym")


def twist2_file(folder: Path) -> PolicyBundle:
    write_csv(folder)
    weights = np.random.default_rng(0).normal(size=(1432, 29)) * 0.01
    return load_policy(
        linear_model(folder / "twist2.onnx", weights),
        ROBOT,
        "twist2",
        overrides=["motion.file=m.csv", "motion.rate_hz=30"],
    )


def mjlab_file(folder: Path) -> PolicyBundle:
    keys = {
        "observation_terms_history_length": "3.000,0.000,0.000,0.000,0.000,0.000",
        "observation_terms_clip": "-inf;inf,-inf;inf,-1.000;inf,-inf;inf,-inf;inf,-inf;inf",
    }
    weights = np.random.default_rng(0).normal(size=(102, 29))
    return load_policy(linear_model(folder / "velocity.onnx", weights, metadata=metadata(**keys)), ROBOT)


def beyondmimic_file(folder: Path) -> PolicyBundle:
    return load_policy(beyondmimic_model(folder / "dance.onnx"), ROBOT, "beyondmimic")


@pytest.mark.parametrize(
    "build",
    [rma_folder, softa_folder, homie_file, lstm_file, twist2_file, mjlab_file, beyondmimic_file],
    ids=lambda build: build.__name__,
)
def test_every_family_is_the_same_bit_for_bit_after_an_export(
    tmp_path: Path, build: Callable[[Path], PolicyBundle]
) -> None:
    bundle = build(tmp_path)
    export_policy(bundle, tmp_path / "out")
    again = load_policy(tmp_path / "out", ROBOT)
    assert again.contract == bundle.contract
    assert_same_bits(bundle, again)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"term": "constant", "source": "z"}, "no 'z' to be its source; there are: none"),
        ({"term": "last_action", "source": "arms"}, "no 'arms' to be its source; there are: policy"),
    ],
)
def test_a_source_that_is_none(tmp_path: Path, term: dict[str, Any], expected: str) -> None:
    zeros_model(tmp_path / "policy.onnx", 12, 12)
    with pytest.raises(PolicyError, match=expected):
        load_policy(write_bundle(tmp_path, contract_data([{"terms": [term]}])), ROBOT)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"steps": [0, 2], "layout": "term_major"}, "a block with steps must also say: fill"),
        ({"steps": [0, 0], "layout": "term_major", "fill": "zeros"}, r"steps \[0, 0\]: one stands twice"),
        ({"steps": [0], "frames": 2}, "a block with steps says neither frames nor order nor current"),
    ],
)
def test_steps_that_make_no_sense(tmp_path: Path, block: dict[str, Any], expected: str) -> None:
    zeros_model(tmp_path / "policy.onnx", 6, 12)
    data = contract_data([{"terms": [{"term": "gyro"}]} | block])
    with pytest.raises(OnboardError, match=expected):
        load_policy(write_bundle(tmp_path, data), ROBOT)
