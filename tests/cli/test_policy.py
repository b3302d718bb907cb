import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from onboard.cli.main import main
from tests.policies.models import contract_data, write_bundle, zeros_model
from tests.shared import shared_folder


def result(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def test_check_compares_with_golden_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = str(shared_folder("golden", "holosoma_loco_ppo.npz"))
    out = tmp_path / "out.json"
    assert main(["policy", "check", "holosoma_loco_ppo", "--golden", golden, "--json", str(out)]) == 0
    facts = result(out)
    assert facts["ok"] is True
    assert facts["ticks"] == 20
    for key in ("obs_max_abs_diff", "action_max_abs_diff", "target_max_abs_diff"):
        assert 0 <= facts[key] <= 1e-5
    assert "ok: True" in capsys.readouterr().out


def test_check_fails_on_a_wrong_contract_and_names_the_term(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = str(shared_folder("golden", "holosoma_loco_ppo.npz"))
    out = tmp_path / "out.json"
    wrong = ["--set", "gait.period_s=0.8", "--golden", golden, "--json", str(out)]
    assert main(["policy", "check", "holosoma_loco_ppo", *wrong]) == 1
    facts = result(out)
    assert facts["ok"] is False
    assert "differs from tick 8 on" in facts["findings"][0]
    assert "gait_" in facts["findings"][0]
    assert "gait_" in capsys.readouterr().out


def test_check_without_vectors_looks_at_the_output(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert main(["policy", "check", "holosoma_loco_fastsac", "--json", str(out)]) == 0
    facts = result(out)
    assert facts["finite"] is True
    assert facts["start_max_rad"] < 0.2
    assert main(["policy", "check", "holosoma_loco_fastsac", "--set", "graphs.policy.action.scale=6.0"]) == 1


def test_show_lists_every_slice_and_what_was_filled_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    assert main(["policy", "show", "holosoma_loco_ppo", "--json", str(out)]) == 0
    facts = result(out)
    ends = [(row["start"], row["start"] + row["width"]) for row in facts["inputs"]]
    assert ends[0][0] == 0
    assert ends[-1][1] == 100
    assert all(first[1] == second[0] for first, second in itertools.pairwise(ends))
    assert len(facts["joints"]) == 29
    assert facts["joints"][3] | {"kp": 0, "kd": 0} == {
        "joint": "left_knee_joint",
        "driven_by": "policy",
        "element": 3,
        "scale": 0.25,
        "base": "default",
        "kp": 0,
        "kd": 0,
        "default_rad": 0.669,
        "start_rad": 0.669,
        "hold_rad": 0.669,
    }
    assert any("default_rad" in text for text in facts["defaults"])
    assert list(facts["models"].values()) == [
        "c9d310f479c2da1e86f468de24f64e102a2a275c14eed0fa341473612d942294"
    ]
    shown = capsys.readouterr().out
    for text in ("velocity_yaw", "37:66", "left_ankle_pitch", "filled in:"):
        assert text in shown


def test_json_on_standard_output_is_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "show", "holosoma_loco_ppo", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "holosoma_loco_ppo"


def test_show_tells_ages_and_undriven_joints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = {
        "frames": 3,
        "layout": "term_major",
        "order": "newest_first",
        "current": False,
        "fill": "zeros",
    }
    zeros_model(tmp_path / "policy.onnx", 9, 12)
    data = contract_data([{"terms": [{"term": "gyro"}], **history}], hold_rad=[0.1] * 29)
    assert main(["policy", "show", str(write_bundle(tmp_path, data))]) == 0
    shown = capsys.readouterr().out
    assert "1…3, zeros" in shown
    assert "0:3 +3…" in shown


def test_show_tells_index_inputs_and_outputs_that_are_not_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "show", "holosoma_wbt_fastsac"]) == 0
    shown = capsys.readouterr().out
    assert "motion_index" in shown
    assert "not used" in shown
    assert "start" in shown, "the first frame of the dance is not the default pose"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["check", "nobody"], "'nobody' is neither a path nor a shipped policy"),
        (
            ["check", "holosoma_loco_ppo", "--golden", "absent.npz"],
            "absent.npz: can't be read as golden vectors",
        ),
        (["show", "holosoma_loco_ppo", "--set", "rate=50"], "unknown key 'rate' at the top level"),
        (["show", "holosoma_loco_ppo", "--robot", "h1"], "'h1' is no shipped robots configuration"),
        (["show", "holosoma_loco_ppo", "--json", "/nowhere/out.json"], "--json /nowhere/out.json"),
    ],
)
def test_mistakes_are_one_line(argv: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", *argv]) == 2
    error = capsys.readouterr().err.strip()
    assert expected in error
    assert "\n" not in error
