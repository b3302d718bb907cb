"""`onboard log info` over several files, and whether they are enough for a residual."""

import json
from pathlib import Path
from typing import Any

import pytest

from onboard.cli import log_info
from onboard.cli.log import run
from onboard.cli.main import main
from onboard.logging.convert import convert
from tests.logging.synthetic import journal, rows


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    data = rows()
    files = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        files.append(str(convert(journal(tmp_path / name, data))))
    return files


def asked(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["info", *arguments, "--json", "-"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_several_files_are_a_line_each_and_a_total(
    two: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["info", *two]) == 0
    shown = capsys.readouterr().out
    assert "2 files" in shown
    assert "1150" in shown
    result = asked(two, capsys)
    assert [file["rows"] for file in result["files"]] == [575, 575]
    assert result["total"]["rows"] == 1150
    assert result["sufficiency"]["samples"] == sum(f["valid_transitions"] for f in result["files"])


def test_the_rule_of_thumb_by_hand(two: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = asked([*two, "--d-out", "2", "--d-hidden", "10", "--p-contact", "0.75"], capsys)["sufficiency"]
    assert found["needed"] == 10 * 2 * 10 / 0.25
    assert found["recommended"] == [3 * 800, 5 * 800]
    assert found["p_contact_from"] == "given"
    samples = found["samples"]
    assert samples > 900
    assert (found["verdict"], found["missing_s"]) == ("least", 0)
    assert asked([*two, "--d-out", "1", "--d-hidden", "2"], capsys)["sufficiency"]["verdict"] == "recommended"
    little = asked([*two, "--d-out", "4", "--d-hidden", "128"], capsys)["sufficiency"]
    assert little["verdict"] == "none"
    assert little["missing_s"] == pytest.approx((little["needed"] - samples) * 0.02)


def test_contact_share_is_that_of_the_feet_over_the_valid_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = rows()
    data["contact"] = [1, 0]
    data["contact"][:, 1] = -1
    data["contact"][100:200, 0] = 0
    (tmp_path / "c").mkdir()
    found = asked([str(convert(journal(tmp_path / "c", data)))], capsys)
    assert found["sufficiency"]["p_contact_from"] == "recorded"
    assert found["feet_known"] == found["valid_transitions"]
    share = 1 - 100 / found["valid_transitions"]
    assert found["sufficiency"]["p_contact"] == pytest.approx(share)


@pytest.mark.parametrize(
    ("contact", "source", "sentence"),
    [
        (-1, "unknown", "contact was not recorded"),
        (1, "recorded", "in none of which a foot is off the ground"),
    ],
)
def test_contact_that_is_unknown_or_never_ends_is_said(
    contact: int, source: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = rows()
    data["contact"] = contact
    file = str(convert(journal(tmp_path, data)))
    assert run(["info", file]) == 0
    assert sentence in " ".join(capsys.readouterr().out.split())
    found = asked([file], capsys)["sufficiency"]
    assert found["p_contact_from"] == source
    assert (found["needed"] is None) == (contact == 1)


def test_large_sets_compare_sizes_only_and_say_so(
    two: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(log_info, "CHECKED_BYTES", 1000)
    data = bytearray(Path(two[1]).read_bytes())
    at = data.index(b"a made-up run")
    data[at : at + 1] = b"A"
    Path(two[1]).write_bytes(data)
    assert main(["log", "info", *two]) == 0
    assert "onboard log verify does" in capsys.readouterr().out
    Path(two[1]).write_bytes(data[:-1])
    assert main(["log", "info", *two]) == 2
    assert "it was cut" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "no file to look into"),
        (["x.h5", "--d-out", "0"], "--d-out 0"),
        (["x.h5", "--p-contact", "1.5"], "--p-contact 1.5: a share lies between 0 and 1"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", "info", *arguments]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
