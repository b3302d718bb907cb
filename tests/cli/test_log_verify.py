"""`onboard log verify`: files that are what they claim, files that contradict themselves, losses."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from onboard.cli.log import run
from onboard.logging.convert import convert
from onboard.logging.run_info import RunInfo
from onboard.logging.verify import Verdict, verify
from onboard.runtime.assembly import run_info
from tests.analysis.flown import write_flight
from tests.logging.synthetic import journal, rows
from tests.runtime.flight import Flight

Change = Callable[[np.ndarray], object]


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    return convert(journal(tmp_path, rows()))


@pytest.fixture(scope="module")
def flight() -> Flight:
    return Flight().walk(ticks=60)


def verdicts(path: Path) -> dict[str, Verdict]:
    return {check.name: check.verdict for check in verify(path)}


def test_a_whole_file_is_ok_and_what_can_not_be_told_is_no_fault(
    rollout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(rollout)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(rollout)
    assert [line.split()[:2] for line in lines[1:6]] == [
        ["ok", f"{name}:"] for name in ("checksum", "completeness", "clocks", "gaps", "index")
    ]
    assert lines[6].split()[:2] == ["-", "models:"], "this policy is installed nowhere"


def test_the_damaged_ones_are_named(
    rollout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(rollout.read_bytes())
    data[-9] ^= 1
    (tmp_path / "damaged.h5").write_bytes(data)
    (tmp_path / "cut.h5").write_bytes(data[:5000])
    files = [str(rollout), str(tmp_path / "damaged.h5"), str(tmp_path / "cut.h5"), str(tmp_path / "none.h5")]
    assert run(["verify", *files, "--json", "-"]) == 1
    found = list(json.loads(capsys.readouterr().out)["files"].values())
    assert all(check["verdict"] != "bad" for check in found[0])
    for checks, expected in zip(found[1:], ("checksum", "it was cut", "No such file"), strict=True):
        assert [check["verdict"] for check in checks] == ["bad"]
        assert expected in checks[0]["text"]


def test_losses_that_the_file_tells_have_an_exit_code_of_their_own(tmp_path: Path) -> None:
    path = convert(journal(tmp_path, rows(), lost=(300, 309)))
    assert run(["verify", str(path)]) == 3
    assert verdicts(path) == {
        "checksum": Verdict.OK,
        "completeness": Verdict.LOSS,
        "clocks": Verdict.OK,
        "gaps": Verdict.LOSS,
        "index": Verdict.OK,
    }


def test_a_leftover_journal_can_be_verified(tmp_path: Path) -> None:
    assert run(["verify", str(journal(tmp_path, rows(), finish=False))]) == 0


def set_at(name: str, row: int, value: float) -> Change:
    def change(table: np.ndarray) -> None:
        table[name][row] = value

    return change


@pytest.mark.parametrize(
    ("change", "bad", "said"),
    [
        (set_at("tick", 300, 12), "clocks", "tick runs back at row 300"),
        (set_at("recv_ns", 300, 5), "clocks", "recv_ns runs back at row 300"),
        (set_at("number", 300, 12), "clocks", "number runs back at row 300"),
        (set_at("made_ns", 300, 12), "clocks", "made_ns runs back at row 300"),
        (set_at("send_ns", 300, 12), "clocks", "row 300 was sent before it was made"),
        (set_at("skipped_ticks", -1, 5), "gaps", "row 574 claims more skipped ticks than its tick allows"),
    ],
)
def test_a_file_that_contradicts_itself_is_bad(tmp_path: Path, change: Change, bad: str, said: str) -> None:
    table = rows()
    change(table)
    path = convert(journal(tmp_path, table))
    (found,) = [check for check in verify(path) if check.name == bad]
    assert found.verdict is Verdict.BAD
    assert said in found.text
    assert run(["verify", str(path)]) == 1


def test_rows_that_nobody_counted_are_bad(tmp_path: Path) -> None:
    table = np.delete(rows(), slice(300, 310))
    (found,) = [check for check in verify(convert(journal(tmp_path, table))) if check.name == "gaps"]
    assert found.verdict is Verdict.BAD
    assert found.text == "10 rows are missing, the first before row 300, and only 0 were counted as lost"


def test_skipped_ticks_are_no_loss(tmp_path: Path) -> None:
    table = rows()
    table["tick"][300:] += 3
    table["skipped_ticks"][300:] += 3
    assert verdicts(convert(journal(tmp_path, table)))["gaps"] is Verdict.OK


def test_models_and_replay_of_a_real_policy(
    flight: Flight, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_flight(flight, tmp_path)
    assert run(["verify", str(path), "--json", "-"]) == 0
    found = {check["check"]: check for check in json.loads(capsys.readouterr().out)["files"][str(path)]}
    assert found["models"]["verdict"] == found["replay"]["verdict"] == "ok"
    assert "agrees over" in found["replay"]["text"]
    assert run(["verify", str(path), "--no-replay", "--json", "-"]) == 0
    assert '"check": "replay"' not in capsys.readouterr().out


def test_another_model_than_the_one_that_was_run_is_bad(
    flight: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run_info(flight.plan, [flight.policy])
    (policy,) = whole.policies
    other = msgspec.structs.replace(policy, models=dict.fromkeys(policy.models, "ab" * 32))
    changed: RunInfo = msgspec.structs.replace(whole, policies=(other,))
    monkeypatch.setattr("tests.analysis.flown.run_info", lambda plan, policies: changed)
    assert run(["verify", str(write_flight(flight, tmp_path))]) == 1
    assert "differs from the file that was run" in capsys.readouterr().out


def test_another_action_than_the_policy_gives_is_bad(
    flight: Flight, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = [row.copy() for row in flight.rows]
    try:
        flight.rows[-10]["action_policy"][4] += 0.01
        assert run(["verify", str(write_flight(flight, tmp_path))]) == 1
    finally:
        flight.rows[:] = kept
    assert "DIFFERS" in capsys.readouterr().out
