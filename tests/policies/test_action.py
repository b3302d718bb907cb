import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.loader import convert
from onboard.policies.action import ActionMap
from onboard.policies.contract import Contract
from tests.policies.models import JOINTS, ROBOT, contract_data

DRIVEN = ["right_knee_joint", "left_elbow_joint", "waist_yaw_joint"]
SLOTS = [JOINTS.index(joint) for joint in DRIVEN]
POSE = np.linspace(-0.5, 0.5, 29).astype(np.float32)
HOLD = np.linspace(1.0, 2.0, 29).astype(np.float32)
REFERENCE = np.linspace(-2.0, -1.0, 29).astype(np.float32)


def action_map(action: dict[str, object], **changes: object) -> ActionMap:
    data = contract_data([{"terms": [{"term": "gyro"}]}], DRIVEN, default_rad=POSE.tolist(), **changes)
    data["graphs"]["policy"]["action"] |= action
    return ActionMap(convert(data, Contract, "test"), ROBOT, HOLD, REFERENCE)


@pytest.mark.parametrize(
    ("base", "pose"),
    [
        ("default", POSE[SLOTS]),
        ("hold", HOLD[SLOTS]),
        ("motion", REFERENCE[SLOTS]),
        ("zero", np.zeros(3)),
        ([0.1, 0.2, 0.3], np.array([0.1, 0.2, 0.3])),
    ],
)
def test_targets_are_base_plus_scaled_output(base: object, pose: np.ndarray) -> None:
    raw = np.array([1.0, -2.0, 4.0], np.float32)
    target = action_map({"base": base, "scale": [0.5, 0.25, 1.0]}).apply(raw, np.zeros(29, np.float32))
    assert target[SLOTS] == pytest.approx(pose + raw * (0.5, 0.25, 1.0), abs=1e-6)


def test_joints_that_are_not_driven_hold() -> None:
    target = action_map({}).apply(np.zeros(3, np.float32), np.full(29, np.nan, np.float32))
    others = [slot for slot in range(29) if slot not in SLOTS]
    assert np.array_equal(target[others], HOLD[others])


def test_the_raw_output_is_clipped_before_the_scale_and_left_as_it_was() -> None:
    raw = np.array([5.0, -5.0, 0.5], np.float32)
    mapped = action_map({"clip_raw": [-1.0, 2.0], "base": "zero", "scale": 10.0})
    assert mapped.apply(raw, np.zeros(29, np.float32))[SLOTS].tolist() == [20.0, -10.0, 5.0]
    assert raw.tolist() == [5.0, -5.0, 0.5]


def test_the_target_clip_covers_held_joints_too() -> None:
    clip = {"lower": [-0.1] * 29, "upper": [0.1] * 29}
    target = action_map({"base": "zero"}, target_clip=clip).apply(
        np.array([4.0, -4.0, 0.2], np.float32), np.zeros(29, np.float32)
    )
    assert target[SLOTS] == pytest.approx([0.1, -0.1, 0.05])
    assert target.max() == pytest.approx(0.1)


@given(st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=3))
def test_a_target_that_is_not_finite_stays_so(values: list[float]) -> None:
    raw = np.array(values, np.float32)
    raw[1] = np.nan
    target = action_map({"clip_raw": [-1.0, 1.0]}).apply(raw, np.zeros(29, np.float32))
    assert np.isnan(target[SLOTS[1]]), "a clip must not turn NaN into a number; the gate has to see it"
