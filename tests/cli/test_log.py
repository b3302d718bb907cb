"""`onboard log`: info, plot and recover as a person and as a script use them."""

import json
from pathlib import Path

import pytest

from onboard.cli.log import VERBS, run
from onboard.cli.main import main
from onboard.logging.convert import convert
from onboard.logging.rollout import Rollout
from tests.logging.synthetic import journal, rows


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    return convert(journal(tmp_path, rows()))


def test_info_shows_a_person_the_run(rollout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", str(rollout)]) == 0
    shown = capsys.readouterr().out
    for expected in (
        "walk on g1_29dof",
        "575 rows",
        "complete",
        "emergency stop",
        "policy 5.00 s",
        "p99.9",
        "skipped",
    ):
        assert expected in shown


def test_info_as_json(rollout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", str(rollout), "--json", str(tmp_path / "info.json")]) == 0
    written = json.loads((tmp_path / "info.json").read_text())
    capsys.readouterr()
    assert run(["info", str(rollout), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == written
    assert written["rows"] == 575
    assert written["completeness"] == "complete"
    assert set(written["tick_us"]) == {"p50", "p99", "p999", "max"}


def test_info_opens_a_leftover_journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", str(journal(tmp_path, rows(), finish=False))]) == 0
    assert "recovered" in capsys.readouterr().out


def test_plot_goes_beside_the_rollout_or_where_it_is_told(
    rollout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plot", str(rollout)]) == 0
    assert capsys.readouterr().out.strip() == str(rollout.with_suffix(".png"))
    assert run(["plot", str(rollout), "--out", str(tmp_path / "a.png"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {"plot": str(tmp_path / "a.png")}
    for path in (rollout.with_suffix(".png"), tmp_path / "a.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_recover_makes_the_rollout_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = journal(tmp_path, rows(), finish=False)
    assert run(["recover", str(path), "--out", str(tmp_path / "new" / "folder"), "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["completeness"], result["rows"], result["rows_lost"]) == ("recovered", 575, 0)
    with Rollout(result["rollout"]) as rollout:
        assert len(rollout) == 575
    assert path.exists(), "the journal stays"


def test_recover_with_losses_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    assert run(["recover", str(journal(tmp_path, rows(), lost=(100, 110)))]) == 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["info", "none.h5"], "none.h5: can't be read (No such file or directory)"),
        (["plot", "none.h5"], "none.h5: can't be read"),
        (["recover", "none.journal"], "none.journal: can't be read"),
    ],
)
def test_user_mistakes_are_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", *arguments]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_damaged_rollout_is_one_line_and_unchecked_opens_a_changed_one(
    rollout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(rollout.read_bytes())
    at = data.index(b"emergency stop by the remote")
    data[at : at + 9] = b"EMERGENCY"
    rollout.write_bytes(data)
    assert main(["log", "info", str(rollout)]) == 2
    assert "its checksum does not hold" in capsys.readouterr().err
    assert main(["log", "info", str(rollout), "--unchecked"]) == 0
    assert "EMERGENCY stop by the remote" in capsys.readouterr().out


def test_no_or_unknown_verb_shows_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == run(["fix"]) == 2
    error = capsys.readouterr().err
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for verb in VERBS:
        assert f"\n  {verb} " in error
        assert f"\n  {verb} " in shown


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run([verb, "--help"])
    assert end.value.code == 0
    assert f"onboard log {verb} rollouts/" in " ".join(capsys.readouterr().out.split())
