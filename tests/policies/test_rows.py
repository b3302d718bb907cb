"""The contract type holds every row of the table of working public contracts, and the widths add up."""

from typing import Any

import numpy as np
import pytest

from onboard.configs.errors import PolicyError
from onboard.configs.loader import convert
from onboard.policies.checks import check_contract
from onboard.policies.contract import Contract
from onboard.policies.layout import place
from onboard.policies.loaders.draft import merge
from onboard.policies.loaders.presets import load_preset
from onboard.policies.session import ModelInfo, Port
from tests.policies.models import JOINTS, ROBOT, contract_data

ISAAC_SLOTS = (
    0,
    6,
    12,
    1,
    7,
    13,
    2,
    8,
    14,
    3,
    9,
    15,
    22,
    4,
    10,
    16,
    23,
    5,
    11,
    17,
    24,
    18,
    25,
    19,
    26,
    20,
    27,
)
ISAAC = [JOINTS[slot] for slot in (*ISAAC_SLOTS, 21, 28)]
GAINS = {"kp": [40.0] * 29, "kd": [2.0] * 29, "joints": JOINTS}
MOTION = {
    "source": "file",
    "file": "motion.csv",
    "rate_hz": 30.0,
    "joints": JOINTS,
    "quat_order": "xyzw",
    "anchor": "torso",
}


def terms(*names: str, **scales: float) -> list[dict[str, Any]]:
    return [{"term": name, "scale": scales.get(name, 1.0)} for name in names]


def by_hand(blocks: list[dict[str, Any]], joints: list[str], **changes: Any) -> dict[str, Any]:
    """For the families whose own file says it all (deploy.yaml)."""
    return contract_data(blocks, joints, **changes)


def preset(name: str, **changes: Any) -> dict[str, Any]:
    """For the families that a preset describes, with what only the user or the ONNX file knows."""
    return merge(merge(GAINS, load_preset(name).contract), changes)


RL_LAB = {
    "terms": terms(
        "gyro", "gravity", "velocity", "joint_pos", "joint_vel", "last_action", gyro=0.2, joint_vel=0.05
    ),
    "frames": 5,
    "layout": "term_major",
    "order": "oldest_first",
    "current": True,
    "fill": "first_frame",
}
MJLAB = {"terms": terms("gyro", "gravity", "velocity", "joint_pos", "joint_vel", "last_action")}
TRACKING = {
    "terms": terms(
        "ref_joint_pos",
        "ref_joint_vel",
        "anchor_orientation",
        "gyro",
        "joint_pos",
        "joint_vel",
        "last_action",
    )
}

ROWS: dict[str, tuple[dict[str, Any], int, int]] = {
    "unitree_rl_lab_velocity": (by_hand([RL_LAB], ISAAC), 480, 29),
    "unitree_rl_mjlab_velocity": (by_hand([MJLAB], JOINTS), 96, 29),
    "beyondmimic_deploy_yaml": (by_hand([TRACKING], ISAAC, motion=MOTION), 154, 29),
    "rl_mjlab_mimic": (by_hand([TRACKING], JOINTS, motion=MOTION), 154, 29),
    "holosoma_wbt": (preset("holosoma_wbt_ppo"), 154, 29),
    "holosoma_loco": (preset("holosoma_loco"), 100, 29),
    "mujoco_playground_g1": (
        preset("mujoco_playground_g1", providers={"base_lin_vel_imu": "simulator_truth"}),
        103,
        29,
    ),
    "asap_mimic": (preset("asap_mimic", motion={"length_s": 3.967}), 380, 23),
    "asap_dec_loco": (preset("asap_dec_loco"), 500, 12),
    "falcon": (preset("falcon"), 575, 29),
    "falcon_dec_loco": (preset("falcon_dec_loco"), 102, 15),
    "twist2": (preset("twist2", motion={"file": "motion.csv"}), 1432, 29),
}


def built(row: str) -> tuple[Contract, ModelInfo]:
    """The row's contract, and a model of the published width."""
    data, wide, narrow = ROWS[row]
    data = merge(
        {"schema": 1, "name": row, "start_rad": [0.0] * 29, "graphs": {"policy": {"model": "m.onnx"}}}, data
    )
    contract = convert(data, Contract, row)
    graph = contract.graphs["policy"]
    inputs = {name: Port((1, wide if spec.blocks else 1), np.float32) for name, spec in graph.inputs.items()}
    outputs = {"joint_pos": 29, "joint_vel": 29, "ref_quat_xyzw": 4}
    if graph.action is not None:
        outputs[graph.action.output] = narrow
    return contract, ModelInfo(inputs, {n: Port((1, w), np.float32) for n, w in outputs.items()}, {})


@pytest.mark.parametrize("row", ROWS)
def test_widths_add_up_to_the_published_network(row: str) -> None:
    contract, info = built(row)
    check_contract(contract, ROBOT, {"policy": info}, row)
    placed = place(contract, "policy", {})
    assert max(item.stop for item in placed) == ROWS[row][1]
    joined = [position for item in placed for position in range(item.start, item.stop)]
    assert joined == list(range(ROWS[row][1])), "slices follow one another without gap or overlap"


@pytest.mark.parametrize("row", ROWS)
def test_a_network_of_another_width_is_refused_with_the_terms_listed(row: str) -> None:
    contract, info = built(row)
    wider = {
        name: Port((1, port.size + 3), port.dtype) for name, port in info.inputs.items() if port.size > 1
    }
    info = info._replace(inputs=info.inputs | wider)
    wide = ROWS[row][1]
    with pytest.raises(
        PolicyError, match=rf"add up to {wide} numbers \(.*\), but the ONNX input is {wide + 3} wide"
    ):
        check_contract(contract, ROBOT, {"policy": info}, row)


def test_slices_of_asap_are_the_documented_ones() -> None:
    contract, _ = built("asap_mimic")
    placed = place(contract, "policy", {})
    ends = {(item.term.term, item.age, item.place[0]): (item.start, item.stop) for item in placed}
    assert ends["last_action", 0, 0] == (0, 23)
    assert ends["last_action", 1, 1] == (72, 95), "history begins with the newest frame, one tick old"
    assert ends["last_action", 4, 1] == (141, 164)
    assert ends["gyro", 1, 1] == (164, 167)
    assert ends["motion_phase", 4, 1] == (375, 376)
    assert ends["gravity", 0, 2] == (376, 379)


def test_slices_of_falcon_are_five_frames_oldest_first() -> None:
    contract, _ = built("falcon")
    placed = place(contract, "policy", {})
    starts = [(item.start, item.age) for item in placed if item.term.term == "last_action"]
    assert starts == [(0, 4), (115, 3), (230, 2), (345, 1), (460, 0)]
