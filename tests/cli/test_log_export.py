"""`onboard log export` as a person and as a script use it."""

import builtins
import json
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from onboard.cli.log import run
from onboard.cli.main import main
from tests.logging.export.recorded import PHASES, data, write

FORMATS = {
    "asap": ".pkl",
    "listener_deltaa": ".npz",
    "npz": ".npz",
    "beyondmimic": ".npz",
    "mcap": ".mcap",
    "parquet": ".parquet",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A walk, and one with a gap in the middle and no pose from outside."""
    folder = tmp_path_factory.mktemp("export")
    broken = data(pose=False)
    broken["tick"][-200:] += 5
    paths = [write(folder / "whole"), write(folder / "broken", broken)]
    renamed = paths[1].with_name("broken.h5")
    paths[1].rename(renamed)
    return [str(paths[0]), str(renamed)]


@pytest.mark.parametrize(("form", "suffix"), FORMATS.items())
def test_one_rollout_goes_into_the_file_that_is_named(
    form: str, suffix: str, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"new/walk{suffix}"
    assert run(["export", files[0], "--format", form, "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    assert list(out.parent.iterdir()) == [out]
    assert out.stat().st_size > 10_000


@pytest.mark.parametrize(("form", "suffix"), FORMATS.items())
def test_several_go_into_a_folder(
    form: str, suffix: str, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", *files, "--format", form, "--out", str(tmp_path / "all"), "--json", "-"]) == 0
    shown = capsys.readouterr()
    made = json.loads(shown.out)
    expected = {"asap": 1, "mcap": 2, "parquet": 2}.get(form, 3)
    assert sorted(made["files"]) == sorted(map(str, (tmp_path / "all").iterdir()))
    assert len(made["files"]) == expected
    assert all(name.endswith(suffix) for name in made["files"])
    assert made["stretches"] == (2 if form in ("mcap", "parquet") else 3)
    assert shown.err == ""


def test_what_is_missing_is_said(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "all.pkl")
    assert run(["export", *files, "--format", "asap", "--out", out]) == 0
    assert "marked as missing (NaN or left out): root_trans_offset" in capsys.readouterr().err
    motions = joblib.load(out)
    assert len(motions) == 3
    complete = {name: bool(motion["root_valid"].all()) for name, motion in motions.items()}
    assert sorted(complete.values()) == [False, False, True]


def test_steps_run_and_tell(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", files[0], "--format", "npz", "--out", str(tmp_path / "a.npz"), "--shift-s", "0.02"]
    assert run([*command, "--steps", "align", "outliers", "latency", "contact"]) == 0
    shown = capsys.readouterr().out
    for step in (
        "align: rows_cut",
        "reject_outliers: rows",
        "log_latency: delay_s",
        "label_contact: from_force",
    ):
        assert step in shown
    assert "shift_commands: ticks 1" in shown
    with np.load(tmp_path / "a.npz") as found:
        done = json.loads(str(found["about"]))["preprocessing"]
    assert [facts["step"] for facts in done] == [
        "align",
        "reject_outliers",
        "log_latency",
        "label_contact",
        "shift_commands",
    ]


def test_modes_choose_what_is_taken(files: list[str], tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    assert run(["export", files[0], "--format", "npz", "--out", str(out), "--modes", "ramp"]) == 0
    with np.load(out) as found:
        assert len(found["t"]) == PHASES[1][0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "no file to export"),
        (["WHOLE", "BROKEN"], "names one file and there are 3 stretches; name a folder"),
        (["WHOLE", "--min-s", "60"], "no unbroken stretch of 60 s"),
        (["none.h5"], "none.h5: can't be read"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    arguments: list[str],
    expected: str,
    files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [{"WHOLE": files[0], "BROKEN": files[1]}.get(word, word) for word in arguments]
    out = tmp_path / "out.npz"
    assert main(["log", "export", *given, "--format", "npz", "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_several_rollouts_do_not_fit_one_mcap(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", "export", *files, "--format", "mcap", "--out", str(tmp_path / "a.mcap")]) == 2
    assert "there are 2 rollouts; name a folder" in capsys.readouterr().err


def test_a_place_that_can_not_be_written_is_one_line(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    for form, suffix in FORMATS.items():
        out = tmp_path / "file" / f"walk{suffix}"
        assert main(["log", "export", files[0], "--format", form, "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert "can't be written" in error
        assert error.count("\n") == 1


@pytest.mark.parametrize(("form", "library"), [("asap", "joblib"), ("mcap", "mcap"), ("lerobot", "pyarrow")])
def test_a_missing_library_is_named_with_its_extra(
    form: str,
    library: str,
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name == library:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    assert main(["log", "export", files[0], "--format", form, "--out", str(tmp_path)]) == 2
    assert f"needs {library}; install it with: pip install 'onboard[export]'" in capsys.readouterr().err
