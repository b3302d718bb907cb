"""Every layout against a reference that is as naive as possible: lists of frames, joined tick by tick."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onboard.policies.command import MotionCommand
from onboard.policies.policy import Policy
from onboard.policies.rotations import gravity_in_body
from onboard.runtime.link import State
from tests.policies.models import JOINTS, LEGS, ROBOT, random_state, tiny_bundle

Float32Array = NDArray[np.float32]

TERMS = st.sampled_from(
    [
        {"term": "gyro"},
        {"term": "gyro", "scale": [0.25, 1.0, -2.0]},
        {"term": "gravity", "scale": 0.5, "clip": [-0.2, 0.3]},
        {"term": "joint_pos", "joints": JOINTS[3:0:-1]},
        {"term": "joint_vel", "joints": JOINTS[20:22], "scale": 0.05, "clip": [-1.0, 1.0]},
        {
            "term": "joint_vel",
            "joints": JOINTS[20:22],
            "scale": 2.0,
            "clip": [-1.0, 1.0],
            "clip_first": False,
        },
        {"term": "joint_pos_absolute", "joints": ["waist_yaw_joint"]},
        {"term": "velocity_xy"},
        {"term": "velocity_yaw", "scale": -2.0, "clip": [-0.1, 0.4]},
        {"term": "height"},
        {"term": "last_action"},
        {"term": "constant", "values": [1.5, -2.5], "scale": 2.0},
    ]
)


@st.composite
def blocks(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for _ in range(draw(st.integers(1, 3))):
        block: dict[str, Any] = {"terms": draw(st.lists(TERMS, min_size=1, max_size=4))}
        if draw(st.booleans()):
            block |= {
                "frames": draw(st.integers(1, 4)),
                "layout": draw(st.sampled_from(["term_major", "frame_major"])),
                "order": draw(st.sampled_from(["oldest_first", "newest_first"])),
                "current": draw(st.booleans()),
                "fill": draw(st.sampled_from(["zeros", "first_frame"])),
            }
        made.append(block)
    return made


def value_of(term: dict[str, Any], state: State, command: MotionCommand, last: Float32Array) -> Any:
    """One term of one frame, scaled and clipped, straight from its definition."""
    slots = [JOINTS.index(joint) for joint in term.get("joints", LEGS)]
    default = np.linspace(-0.3, 0.3, 29).astype(np.float32)
    sources: dict[str, Callable[[], Any]] = {
        "gyro": lambda: state.gyro_body,
        "gravity": lambda: np.array(gravity_in_body(state.quat_wxyz.tolist()), np.float32),
        "joint_pos": lambda: state.q[slots] - default[slots],
        "joint_pos_absolute": lambda: state.q[slots],
        "joint_vel": lambda: state.dq[slots],
        "velocity_xy": lambda: command.velocity[:2],
        "velocity_yaw": lambda: command.velocity[2:],
        "height": lambda: command.values[3:4],
        "last_action": lambda: last,
        "constant": lambda: np.array(term.get("values"), np.float32),
    }
    raw = sources[term["term"]]()
    scale = np.array(term.get("scale", 1.0), np.float32)
    if "clip" in term and term.get("clip_first", True):
        return np.clip(raw, *np.array(term["clip"], np.float32)) * scale
    return np.clip(raw * scale, *np.array(term["clip"], np.float32)) if "clip" in term else raw * scale


def naive(block: dict[str, Any], past: list[list[Any]], present: list[Any]) -> list[Any]:
    """Numbers of one block: `past` frames newest first, each a list of term values."""
    frames = block.get("frames", 1)
    sequence = [present, *past] if block.get("current", True) else list(past)
    fill = [np.zeros_like(value) for value in present]
    if block.get("fill") == "first_frame":
        fill = past[-1] if past else present
    window = (sequence + [fill] * frames)[:frames]
    if block.get("order") == "oldest_first":
        window.reverse()
    count = len(present)
    if block.get("layout") == "frame_major":
        return [window[f][t] for f in range(frames) for t in range(count)]
    return [window[f][t] for t in range(count) for f in range(frames)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(layout=blocks(), seed=st.integers(0, 1000), kept=st.lists(st.booleans(), min_size=1, max_size=7))
def test_any_layout_equals_the_naive_reference(
    tmp_path: Path, layout: list[dict[str, Any]], seed: int, kept: list[bool]
) -> None:
    widths = {"joint_pos": 3, "joint_vel": 2, "velocity_xy": 2, "last_action": 12, "constant": 2}
    widths |= {"joint_pos_absolute": 1, "velocity_yaw": 1, "height": 1}
    wide = sum(
        block.get("frames", 1) * sum(widths.get(term["term"], 3) for term in block["terms"])
        for block in layout
    )
    bundle = tiny_bundle(
        tmp_path,
        layout,
        wide,
        default_rad=np.linspace(-0.3, 0.3, 29).tolist(),
        commands={"height_m": 0.7},
    )
    policy, rng, state = Policy(bundle, ROBOT), np.random.default_rng(seed), State()
    command, last = policy.neutral_command(), np.zeros(12, np.float32)
    past: list[list[list[Any]]] = [[] for _ in layout]
    policy.reset(random_state(rng, state))
    for step, counts in enumerate(kept):
        random_state(rng, state)
        command.set_velocity(*rng.uniform(-1, 1, 3))
        obs = policy.observe(state, command, step)
        present = [[value_of(term, state, command, last) for term in block["terms"]] for block in layout]
        expected = [
            value
            for block, frames, now in zip(layout, past, present, strict=True)
            for value in naive(block, frames, now)
        ]
        assert np.array_equal(obs, np.concatenate(expected))
        if counts:
            last = rng.normal(size=12).astype(np.float32)
            policy.commit(last)
            past = [[now, *frames] for frames, now in zip(past, present, strict=True)]


def test_the_same_states_give_the_same_bits_whatever_ran_before(tmp_path: Path) -> None:
    layout: list[dict[str, Any]] = [
        {"terms": [{"term": "gravity"}, {"term": "last_action"}]},
        {
            "terms": [{"term": "joint_pos"}],
            "frames": 3,
            "layout": "term_major",
            "order": "newest_first",
            "current": False,
            "fill": "first_frame",
        },
    ]
    policy = Policy(tiny_bundle(tmp_path, layout, 51), ROBOT)

    def record(seed: int) -> list[bytes]:
        rng, state, rows = np.random.default_rng(seed), State(), []
        policy.reset(random_state(rng, state))
        for step in range(6):
            random_state(rng, state)
            rows.append(policy.observe(state, policy.neutral_command(), step).tobytes())
            policy.commit(policy.infer())
        return rows

    first = record(1)
    record(2)
    assert record(1) == first


def test_an_input_is_normalised_and_clipped_last(tmp_path: Path) -> None:
    normaliser = {"mean": [1.0] * 3, "deviation": [1.9] * 3, "epsilon": 0.1, "clip": 4.0}
    bundle = tiny_bundle(
        tmp_path,
        [{"terms": [{"term": "constant", "values": [1.0, 5.0, -9.0]}]}],
        3,
        of_input={"normaliser": normaliser, "clip": [-3.0, 1.5]},
    )
    policy = Policy(bundle, ROBOT)
    obs = policy.observe(State(), policy.neutral_command(), 0)
    assert obs.tolist() == pytest.approx([0.0, 1.5, -3.0])
