"""`onboard fit` as a person and as a script use it."""

import json
from pathlib import Path

import pytest

from onboard.analysis.lock_step_sources import TruthSource
from onboard.cli.main import main
from onboard.policies.residual.files import load_residual
from tests.analysis.fit.bench import FIRST, JOINTS, ROBOT, SECOND, WEAK, record, write
from tests.analysis.flown import write_flight
from tests.runtime.flight import Flight


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A weak robot twice, and a nominal one."""
    folder = tmp_path_factory.mktemp("fit")
    return (
        write(folder / "first.npz", record(FIRST, WEAK)),
        write(folder / "second.npz", record(SECOND, WEAK)),
        write(folder / "nominal.npz", record(SECOND, ())),
    )


def test_the_residual_that_comes_out_can_be_loaded_and_says_where_it_is_from(
    logs: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, figures = tmp_path / "leg.yaml", tmp_path / "fit.json"
    assert main(["fit", *map(str, logs[:2]), "--out", str(out), "--json", str(figures)]) == 0
    shown = capsys.readouterr()
    assert "linear: iteration 1" in shown.err
    last = shown.out.splitlines()[-1]
    assert last.startswith("physical: tracking error, simulator against robot: ")
    found = json.loads(figures.read_text())
    residual = load_residual(out, ROBOT, None).config
    assert residual.joints == JOINTS
    assert residual.mode == "invert"
    assert list(residual.provenance.logs) == ["first.npz"]
    assert list(residual.provenance.heldout_logs) == ["second.npz"]
    linear = found["explanations"]["linear"]
    assert residual.provenance.heldout_after_deg == linear["heldout_after_deg"]
    assert residual.coefficients[JOINTS[0]].a == linear["coefficients"][JOINTS[0]]["a"]
    assert found["better"] == "physical"
    assert all(Path(file).stat().st_size > 1000 for key, file in found["files"].items() if "plot" in key)


def test_a_single_log_is_split_in_time(logs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    figures = tmp_path / "fit.json"
    out = str(tmp_path / "r.yaml")
    argv = ["fit", str(logs[0]), "--kind", "linear", "--out", out, "--json", str(figures)]
    assert main(argv) == 0
    found = json.loads(figures.read_text())
    assert found["logs"] == found["heldout_logs"]
    linear = found["explanations"]["linear"]
    assert linear["heldout_after_deg"] < 0.25 * linear["heldout_before_deg"]


def test_a_fit_that_does_not_carry_over_is_warned_of_and_fails(
    logs: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [
        "fit",
        str(logs[0]),
        "--held-out",
        str(logs[2]),
        "--kind",
        "linear",
        "--out",
        str(tmp_path / "r.yaml"),
    ]
    assert main(argv) == 1
    assert "the held-out error got worse" in capsys.readouterr().err


def test_joints_that_did_not_move_are_named(
    logs: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    joints = ["left_knee_joint", "left_ankle_roll_joint"]
    argv = [
        "fit",
        *map(str, logs[:2]),
        "--joints",
        *joints,
        "--kind",
        "linear",
        "--out",
        str(tmp_path / "r.yaml"),
    ]
    main(argv)
    assert "left_ankle_roll_joint: not excited" in capsys.readouterr().err


def test_nothing_to_fit_is_one_line(
    tmp_path: Path, logs: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", str(logs[0]), "--joints", "right_knee_joint", "--out", str(tmp_path / "r.yaml")]) == 2
    assert "no joint to fit has a target that moves" in capsys.readouterr().err
    assert main(["fit", str(logs[0]), "--joints", "left_knee", "--out", str(tmp_path / "r.yaml")]) == 2
    assert "did you mean 'left_knee_joint'" in capsys.readouterr().err
    assert main(["fit", str(logs[0]), "--out", str(tmp_path / "none/r.yaml")]) == 2
    assert "its folder does not exist" in capsys.readouterr().err


def test_a_network_goes_into_a_file_beside_its_residual(
    logs: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "ankle.yaml"
    argv = ["fit", *map(str, logs[:2]), "--kind", "network", "--joints", "left_ankle_pitch_joint"]
    assert main([*argv, "--hidden", "4", "--frames", "2", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert str(tmp_path / "ankle.onnx") in shown
    assert shown.splitlines()[-1].startswith("network: tracking error")
    bundle = load_residual(out, ROBOT, None)
    assert bundle.config.kind == "onnx"
    assert main([*argv, "--frames", "9", "--out", str(out)]) == 2


def test_a_walk_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flown = Flight(sources=lambda link: [TruthSource(link)]).walk(ticks=80)
    argv = ["fit", str(write_flight(flown, tmp_path / "walk")), "--kind", "linear"]
    main([*argv, "--joints", "left_knee_joint", "--out", str(tmp_path / "r.yaml")])
    assert "a foot stood on the ground in" in capsys.readouterr().err
