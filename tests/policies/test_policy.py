"""The runtime object: nothing is remembered before commit, and then only what the contract says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onboard.configs.errors import PolicyError
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from tests.policies.models import (
    JOINTS,
    LEGS,
    ROBOT,
    contract_data,
    linear_model,
    random_state,
    save_graph,
    write_bundle,
)

HISTORY = {"frames": 3, "layout": "term_major", "order": "oldest_first", "current": True, "fill": "zeros"}
BLOCKS: list[dict[str, Any]] = [
    {"terms": [{"term": "joint_pos"}, {"term": "last_action"}]},
    {"terms": [{"term": "gyro"}], **HISTORY},
]
WIDE = 12 + 12 + 9


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    linear_model(tmp_path / "policy.onnx", np.random.default_rng(3).normal(size=(WIDE, 12)) * 0.1)
    data = contract_data(BLOCKS, gait={"period_s": 1.0, "offsets_rad": [0.0, 3.0]})
    return Policy(load_policy(write_bundle(tmp_path, data), ROBOT), ROBOT)


def rollout(policy: Policy, ticks: int, seed: int = 0) -> list[NDArray[np.float32]]:
    rng, state, rows = np.random.default_rng(seed), State(), []
    policy.reset(random_state(rng, state))
    for step in range(ticks):
        random_state(rng, state)
        rows.append(policy.observe(state, policy.neutral_command(), step).copy())
        policy.commit(policy.infer())
    return rows


def test_the_last_action_is_the_committed_raw_output(policy: Policy) -> None:
    state = random_state(np.random.default_rng(0))
    policy.reset(state)
    assert not policy.observe(state, policy.neutral_command(), 0)[12:24].any()
    raw = policy.infer().copy()
    policy.commit(raw)
    assert np.array_equal(policy.observe(state, policy.neutral_command(), 1)[12:24], raw)


def test_a_bad_tick_leaves_no_trace(policy: Policy) -> None:
    expected = rollout(policy, 6)
    rng, state = np.random.default_rng(0), State()
    policy.reset(random_state(rng, state))
    for step in range(6):
        wild = random_state(np.random.default_rng(99))
        policy.observe(wild, policy.neutral_command(), step)
        policy.infer()  # judged bad: no commit
        random_state(rng, state)
        assert np.array_equal(policy.observe(state, policy.neutral_command(), step), expected[step])
        policy.commit(policy.infer())


def test_warming_changes_nothing(policy: Policy) -> None:
    expected = rollout(policy, 6)
    rng, state = np.random.default_rng(0), State()
    policy.warm()
    policy.reset(random_state(rng, state))
    for step in range(6):
        random_state(rng, state)
        policy.warm()
        obs = policy.observe(state, policy.neutral_command(), step)
        assert np.array_equal(obs, expected[step])
        raw = policy.infer()
        target = policy.target(raw)
        policy.commit(raw)
        kept = obs.copy(), raw.copy(), target.copy(), policy.phase.copy()
        policy.warm()
        for array, before in zip((obs, raw, target, policy.phase), kept, strict=True):
            assert np.array_equal(array, before)


def test_a_logged_rollout_rebuilds_the_same_bits(policy: Policy) -> None:
    """What the record holds (states, commands, raw actions, all float32) is enough to get every bit back."""
    rng, state, log = np.random.default_rng(5), State(), []
    command = policy.neutral_command()
    policy.reset(random_state(rng, state))
    steps = [0, 1, 2, 4, 5]  # one period was skipped
    for step in steps:
        random_state(rng, state)
        command.set_velocity(*rng.uniform(-1, 1, 3))
        obs = policy.observe(state, command, step).copy()
        raw = policy.infer().copy()
        policy.commit(raw)
        row = (state.q, state.dq, state.gyro_body, state.quat_wxyz, command.values)
        log.append(([array.copy() for array in row], obs, raw))
    replayed, asked = State(), policy.neutral_command()
    for step, ((q, dq, gyro, quat, values), obs, raw) in zip(steps, log, strict=True):
        replayed.q[:], replayed.dq[:], replayed.gyro_body[:], replayed.quat_wxyz[:] = q, dq, gyro, quat
        asked.values[:] = values
        if step == 0:
            policy.reset(replayed)
        assert policy.observe(replayed, asked, step).tobytes() == obs.tobytes()
        policy.commit(raw)


def test_commit_refuses_another_width(policy: Policy) -> None:
    with pytest.raises(ValueError, match=r"shape \(12,\), found \(11,\)"):
        policy.commit(np.zeros(11, np.float32))


def test_gains_and_poses_are_in_motor_order(tmp_path: Path) -> None:
    linear_model(tmp_path / "policy.onnx", np.zeros((WIDE, 12)))
    data = contract_data(BLOCKS)
    data["joints"] = JOINTS[::-1]
    data["kp"] = [float(slot) for slot in range(28, -1, -1)]
    data["start_rad"] = [0.01 * slot for slot in range(28, -1, -1)]
    policy = Policy(load_policy(write_bundle(tmp_path, data), ROBOT), ROBOT)
    assert policy.kp.tolist() == list(range(29))
    assert policy.start_pose == pytest.approx(0.01 * np.arange(29))


def test_without_a_motion_there_is_no_index_and_no_end(policy: Policy) -> None:
    assert policy.motion_index == -1
    assert not policy.motion_done


def recurrent_model(path: Path) -> Path:
    """actions = obs·0 + h (first 12), h_out = h_in + obs[0]; `is_init` is passed through."""
    ones = numpy_helper.from_array(np.ones((3, 12), np.float32), "ones")
    nodes = [
        helper.make_node("MatMul", ["obs", "ones"], ["summed"]),
        helper.make_node("Add", ["h_in", "summed"], ["h_out"]),
        helper.make_node("Identity", ["h_in"], ["actions"]),
        helper.make_node("Identity", ["is_init"], ["init_out"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "recurrent",
        [
            value("obs", TensorProto.FLOAT, [1, 3]),
            value("h_in", TensorProto.FLOAT, [1, 12]),
            value("is_init", TensorProto.BOOL, [1, 1]),
        ],
        [
            value("actions", TensorProto.FLOAT, [1, 12]),
            value("h_out", TensorProto.FLOAT, [1, 12]),
            value("init_out", TensorProto.BOOL, [1, 1]),
        ],
        [ones],
    )
    return save_graph(path, graph)


def test_recurrent_state_is_carried_and_reset(tmp_path: Path) -> None:
    recurrent_model(tmp_path / "policy.onnx")
    data = contract_data([{"terms": [{"term": "gyro"}]}])
    graph = data["graphs"]["policy"]
    graph["inputs"]["is_init"] = {"carries": "first_tick"}
    graph["recurrent"] = [{"input": "h_in", "output": "h_out"}]
    graph["logged"] = ["init_out", "h_out"]
    policy = Policy(load_policy(write_bundle(tmp_path, data), ROBOT), ROBOT)
    state = State()
    state.gyro_body[:] = (1.0, 2.0, 0.0)
    for _ in range(2):
        policy.reset(state)
        for step in range(3):
            policy.observe(state, policy.neutral_command(), step)
            policy.infer()  # twice: a repeated tick must not carry anything on
            raw = policy.infer()
            assert raw.tolist() == [3.0 * step] * 12
            assert policy.extras["policy.init_out"].tolist() == [step == 0]
            assert policy.extras["policy.h_out"].tolist() == [3.0 * (step + 1)] * 12
            policy.commit(raw)


def test_an_input_or_a_state_left_out_is_refused(tmp_path: Path) -> None:
    recurrent_model(tmp_path / "policy.onnx")
    data = contract_data([{"terms": [{"term": "gyro"}]}])
    graph = data["graphs"]["policy"]
    graph["inputs"]["is_init"] = {"carries": "first_tick"}
    with pytest.raises(
        PolicyError, match=r"the ONNX input 'h_in' \(1, 12\) is not described; add it to 'inputs'"
    ):
        load_policy(write_bundle(tmp_path, data), ROBOT)
    graph["recurrent"] = [{"input": "h_in", "output": "init_out"}]
    with pytest.raises(PolicyError, match="'h_in' and 'init_out' differ in size"):
        load_policy(write_bundle(tmp_path, data), ROBOT)


def test_the_torso_imu_is_read_where_the_contract_says_so(tmp_path: Path) -> None:
    linear_model(tmp_path / "policy.onnx", np.zeros((8, 12)))
    layout = [{"terms": [{"term": "gyro"}, {"term": "gravity"}, {"term": "base_roll_pitch"}]}]
    policy = Policy(load_policy(write_bundle(tmp_path, contract_data(layout, imu="torso")), ROBOT), ROBOT)
    state = random_state(np.random.default_rng(0))
    state.torso_gyro[:] = (1.0, 2.0, 3.0)
    state.torso_quat_wxyz[:] = (np.cos(0.1), np.sin(0.1), 0.0, 0.0)  # rolled by 0.2 rad
    policy.reset(state)
    obs = policy.observe(state, policy.neutral_command(), 0)
    assert obs == pytest.approx([1, 2, 3, 0, -np.sin(0.2), -np.cos(0.2), 0.2, 0], abs=1e-6)


def two_graphs(folder: Path) -> Policy:
    """An encoder whose latent feeds the leg policy, and an arm policy that runs every second tick."""
    linear_model(folder / "encoder.onnx", np.full((3, 2), 2.0), output="latent")
    linear_model(folder / "legs.onnx", np.eye(2, 12))
    linear_model(folder / "arms.onnx", np.eye(1, 2))
    data = contract_data([{"terms": [{"term": "gyro"}]}])
    arms = ["left_elbow_joint", "right_elbow_joint"]
    data["graphs"] = {
        "encoder": {"model": "encoder.onnx", "inputs": {"obs": {"blocks": [{"terms": [{"term": "gyro"}]}]}}},
        "legs": {
            "model": "legs.onnx",
            "inputs": {
                "obs": {
                    "blocks": [
                        {"terms": [{"term": "graph_output", "source": "encoder.latent", "scale": 0.5}]}
                    ]
                }
            },
            "action": {"output": "actions", "joints": LEGS, "base": "zero", "scale": 1.0},
        },
        "arms": {
            "model": "arms.onnx",
            "every": 2,
            "inputs": {"obs": {"blocks": [{"terms": [{"term": "velocity_yaw"}]}]}},
            "action": {"output": "actions", "joints": arms, "base": "zero", "scale": 10.0},
        },
    }
    return Policy(load_policy(write_bundle(folder, data), ROBOT), ROBOT)


def test_graphs_in_a_chain_and_side_by_side(tmp_path: Path) -> None:
    policy = two_graphs(tmp_path)
    state, command = State(), policy.neutral_command()
    policy.reset(state)
    elbow = JOINTS.index("left_elbow_joint")
    seen = []
    for step in range(4):
        state.gyro_body[:] = (step + 1, 0, 0)
        command.set_velocity(0, 0, step + 1)
        policy.observe(state, command, step)
        raw = policy.infer()
        target = policy.target(raw)
        policy.commit(raw)
        assert target[0] == target[1] == step + 1, "the latent of this very tick"
        seen.append(float(target[elbow]))
    assert seen == [10.0, 10.0, 30.0, 30.0], "the arms run every second tick and hold in between"
    assert raw.shape == (14,)
    assert policy.obs.shape == (3 + 2 + 1,)


def test_half_precision_inputs_are_cast(tmp_path: Path) -> None:
    linear_model(tmp_path / "policy.onnx", np.full((3, 12), 0.5), dtype=TensorProto.FLOAT16)
    policy = Policy(
        load_policy(write_bundle(tmp_path, contract_data([{"terms": [{"term": "gyro"}]}])), ROBOT), ROBOT
    )
    state = State()
    state.gyro_body[:] = (1.0, 2.0, 3.0)
    policy.reset(state)
    policy.observe(state, policy.neutral_command(), 0)
    assert policy.infer() == pytest.approx(np.full(12, 3.0))
    assert policy.raw.dtype == np.float32
