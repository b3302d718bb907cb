"""Residual files: what is read back is what was written, and what can't work is refused in one line."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from onboard.configs.errors import ConfigError, OnboardError, PolicyError
from onboard.policies.inputs import Block, Input, Term
from onboard.policies.residual.contract import Coefficients, Network, Part, Provenance, Residual
from onboard.policies.residual.files import load_residual, write_residual
from tests.policies.models import LEGS, ROBOT, zeros_model

ANKLES = (LEGS[4], LEGS[10])


def linear(**changes: Any) -> dict[str, Any]:
    plain = {
        "schema": 1,
        "name": "ankles",
        "kind": "linear",
        "mode": "invert",
        "unit": "rad",
        "joints": list(ANKLES),
        "coefficients": {name: {"a": -0.4, "b": 0.01} for name in ANKLES},
    }
    return plain | changes


def written(folder: Path, data: dict[str, Any]) -> Path:
    path = folder / "residual.yaml"
    path.write_text(yaml.safe_dump({"residual": data}))
    return path


def network(folder: Path, **changes: Any) -> dict[str, Any]:
    zeros_model(folder / "delta.onnx", 4, 2, output="delta")
    terms = [{"term": "target_error", "joints": list(ANKLES)}, {"term": "joint_vel", "joints": list(ANKLES)}]
    return linear() | {
        "kind": "onnx",
        "coefficients": {},
        "bound_rad": 0.1,
        "network": {
            "model": "delta.onnx",
            "output": "delta",
            "inputs": {"obs": {"blocks": [{"terms": terms}]}},
        },
        **changes,
    }


def test_a_residual_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    zeros_model(tmp_path / "delta.onnx", 6, 2, output="delta")
    history = Block(
        (Term("target_error", joints=ANKLES),),
        3,
        layout="frame_major",
        order="oldest_first",
        current=True,
        fill="first_frame",
    )
    part = Part(network=Network("delta.onnx", "delta", {"obs": Input((history,))}))
    wanted = Residual(
        schema=1,
        name="feet",
        kind="by_contact",
        mode="invert",
        unit="rad",
        joints=ANKLES,
        phases={
            "flight": part,
            "left": part,
            "right": part,
            "both": Part({name: Coefficients(-0.2) for name in ANKLES}),
        },
        bound_rad=0.1,
        lowpass_hz=8.0,
        provenance=Provenance(logs={"bench.h5": "ab" * 32}, heldout_before_deg=8.0, heldout_after_deg=0.5),
    )
    found = load_residual(write_residual(wanted, tmp_path / "feet.yaml"), ROBOT, None)
    assert found.config == wanted
    assert list(found.sha256) == ["delta.onnx"]


def test_a_gain_that_will_be_capped_is_said(tmp_path: Path) -> None:
    steep = {name: {"a": -0.7} for name in ANKLES}
    notes = load_residual(written(tmp_path, linear(coefficients=steep)), ROBOT, None).notes
    assert len(notes) == 2
    assert "inverse gain 3.33 capped at 2" in notes[0]


def test_a_bound_beyond_30_percent_of_the_actions_range_is_said(tmp_path: Path) -> None:
    ranges = {ANKLES[0]: 0.2, ANKLES[1]: 1.0}
    notes = load_residual(
        written(tmp_path, linear(bound_rad=0.1, action_range_rad=ranges)), ROBOT, None
    ).notes
    assert len(notes) == 1
    assert f"{ANKLES[0]}: bound 0.1 rad is 50 %" in notes[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mode": "subtract"}, "mode"),
        ({"unit": "raw"}, "a linear delta is in rad"),
        ({"coefficients": {ANKLES[0]: {"a": -0.4}}}, ANKLES[1]),
        ({"coefficients": {name: {"a": -0.8} for name in ANKLES}}, "a <= -0.8"),
        ({"coefficients": {name: {"a": float("nan")} for name in ANKLES}}, "finite"),
        ({"coefficients": {}}, "needs 'coefficients' alone, found none"),
        ({"joints": [ANKLES[0], ANKLES[0]]}, "named twice"),
        ({"kind": "by_contact"}, "needs 'phases' alone, found coefficients"),
        ({"iteration": 3}, "did you mean 'iterations'"),
        ({"gain_cap": 9.0}, "gain_cap"),
    ],
)
def test_a_wrong_value_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_residual(written(tmp_path, linear(**changes)), ROBOT, None)


def test_adding_takes_any_a(tmp_path: Path) -> None:
    steep = {name: {"a": -0.9} for name in ANKLES}
    assert load_residual(written(tmp_path, linear(mode="add", coefficients=steep)), ROBOT, None).notes == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bound_rad": None}, "bound_rad is required"),
        ({"joints": [ANKLES[0]]}, "is 2 wide, expected one number for each of the 1 joints"),
    ],
)
def test_a_network_that_can_not_work_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(OnboardError, match=said):
        load_residual(written(tmp_path, network(tmp_path, **changes)), ROBOT, None)


def test_a_missing_output_is_refused(tmp_path: Path) -> None:
    data = network(tmp_path)
    data["network"]["output"] = "deltas"
    with pytest.raises(PolicyError, match="no output 'deltas'; there are: delta"):
        load_residual(written(tmp_path, data), ROBOT, None)


def test_an_override_is_read_as_if_it_stood_in_the_file_and_is_recorded(tmp_path: Path) -> None:
    path = written(tmp_path, linear())
    found = load_residual(path, ROBOT, None, ["mode=add", f"coefficients.{ANKLES[0]}.a=-0.9"])
    assert found.config.mode == "add"
    assert yaml.safe_load(found.text)["residual"]["coefficients"][ANKLES[0]]["a"] == -0.9
    with pytest.raises(ConfigError, match=r"with mode=sub: mode: Invalid enum value 'sub'"):
        load_residual(path, ROBOT, None, ["mode=sub"])


def test_an_unknown_joint_and_another_file_are_refused(tmp_path: Path) -> None:
    data = linear(joints=["left_tail_joint"], coefficients={"left_tail_joint": {"a": -0.1}})
    with pytest.raises(PolicyError, match="left_tail_joint"):
        load_residual(written(tmp_path, data), ROBOT, None)
    (tmp_path / "other.yaml").write_text("schema: 1\n")
    with pytest.raises(ConfigError, match="expected one key 'residual'"):
        load_residual(tmp_path / "other.yaml", ROBOT, None)
