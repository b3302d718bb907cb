"""What the last check means for a run: kept, read, refused, waived, forgotten after a day."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onboard.cli.run_options import run_config
from onboard.configs.errors import RolloutError, SafetyRefusalError
from onboard.runtime.assembly import Plan, make_plan
from onboard.runtime.preflight.record import (
    FRESH_NS,
    CheckedRow,
    admit,
    plain_row,
    read_record,
    record_path,
    store_rows,
    subjects,
)
from onboard.runtime.preflight.report import Finding, Row, Verdict
from tests.runtime.flight import POLICY
from tests.runtime.flight import plan as flight_plan

NOW_NS = 1_800_000_000_000_000_000
HOUR_NS = 3_600_000_000_000


def plan(out: Path, **values: Any) -> Plan:
    flight_plan()  # skips where the policy is not installed
    return make_plan(run_config(policy=POLICY, domain=7, out=str(out), **values))


def row(name: str, verdict: Verdict, *, age_ns: int = HOUR_NS // 6, **values: float) -> CheckedRow:
    return plain_row(Row(name, Finding(verdict, "200 ms", "do", values), 0.5), now_ns=NOW_NS - age_ns)


def store(the_plan: Plan, *rows: CheckedRow) -> None:
    store_rows(Path(the_plan.config.out), subjects(the_plan)[0], rows)


def test_a_run_that_was_never_checked_begins_with_a_note(tmp_path: Path) -> None:
    admission = admit(plan(tmp_path), NOW_NS)
    assert admission.notes == (
        f"check: {POLICY} on g1_29dof, lo domain 7: not checked; onboard check tells what would go wrong",
    )
    assert json.loads(admission.text)["checks"][0]["rows"] == []


def test_a_failed_check_refuses_and_says_how_to_waive_it(tmp_path: Path) -> None:
    the_plan = plan(tmp_path)
    store(the_plan, row("timing.disk_speed", Verdict.FAIL), row("timing.loop", Verdict.PASS))
    with pytest.raises(SafetyRefusalError) as refusal:
        admit(the_plan, NOW_NS)
    assert str(refusal.value) == (
        "the last onboard check of this robot and policy found: "
        "timing.disk_speed failed 10 min ago (200 ms); mend it, or give --waive timing.disk_speed"
    )


def test_a_waiver_lets_it_begin_and_is_told_and_kept(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, waive=["timing.disk_speed", "timing.loop"])
    latency = row("latency.command", Verdict.PASS, latency_ms=20.5, uncertainty_ms=0.8)
    store(the_plan, row("timing.disk_speed", Verdict.FAIL), row("timing.loop", Verdict.PASS), latency)
    admission = admit(the_plan, NOW_NS)
    assert admission.notes[0].endswith(
        "10 min ago, 2 pass, 0 warn, 1 fail; not checked: policy, network, imu, robot"
    )
    assert admission.notes[1] == "WAIVED: timing.disk_speed failed 10 min ago (200 ms)"
    told = json.loads(admission.text)
    assert told["waived"] == ["timing.disk_speed"]
    rows = {each["check"]: each for each in told["checks"][0]["rows"]}
    assert rows["latency.command"]["values"] == {"latency_ms": 20.5, "uncertainty_ms": 0.8}


def test_a_waiver_of_another_check_does_not_help(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, waive=["timing.loop"])
    store(the_plan, row("timing.disk_speed", Verdict.FAIL))
    with pytest.raises(SafetyRefusalError, match=r"timing\.disk_speed"):
        admit(the_plan, NOW_NS)


def test_what_onboard_check_was_told_to_waive_a_run_must_be_told_again(tmp_path: Path) -> None:
    the_plan = plan(tmp_path)
    finding = Row("timing.loop", Finding(Verdict.FAIL, "late", ""), 1.0)
    store(the_plan, plain_row(finding, ["timing.loop"], NOW_NS))
    with pytest.raises(SafetyRefusalError, match=r"timing\.loop"):
        admit(the_plan, NOW_NS)


@pytest.mark.parametrize(("age_ns", "refuses"), [(FRESH_NS, True), (FRESH_NS + 1, False)])
def test_a_check_is_good_for_a_day(tmp_path: Path, age_ns: int, refuses: bool) -> None:
    the_plan = plan(tmp_path)
    store(the_plan, row("network.loss", Verdict.FAIL, age_ns=age_ns))
    if refuses:
        with pytest.raises(SafetyRefusalError):
            admit(the_plan, NOW_NS)
    else:
        assert admit(the_plan, NOW_NS).notes == (
            f"check: {POLICY} on g1_29dof, lo domain 7: last checked 24 h ago; "
            "onboard check tells what would go wrong",
        )


def test_a_dry_run_commands_nothing_and_is_not_refused(tmp_path: Path) -> None:
    the_plan = plan(tmp_path, dry=True)
    store(the_plan, row("network.loss", Verdict.FAIL))
    assert admit(the_plan, NOW_NS).notes[1] == "dry run: network.loss failed 10 min ago (200 ms)"


def test_a_check_that_is_made_again_takes_the_place_of_the_older_one(tmp_path: Path) -> None:
    the_plan = plan(tmp_path)
    store(the_plan, row("network.loss", Verdict.FAIL), row("network.rate", Verdict.PASS))
    store(the_plan, row("network.loss", Verdict.WARN, age_ns=0))
    assert admit(the_plan, NOW_NS).notes[0].split(": ")[-2:] == [
        "0 min ago, 1 pass, 1 warn, 0 fail; not checked",
        "policy, timing, imu, robot",
    ]


def test_another_robot_network_or_policy_is_another_subject(tmp_path: Path) -> None:
    checked = plan(tmp_path)
    store(checked, row("network.loss", Verdict.FAIL))
    for values in ({"interface": "eth0"}, {"policy_overrides": ["commands.lin_vel_x=[-0.1, 0.1]"]}):
        assert "not checked" in admit(plan(tmp_path, **values), NOW_NS).notes[0]
    elsewhere = make_plan(msgspec.structs.replace(checked.config, domain=8))
    assert "not checked" in admit(elsewhere, NOW_NS).notes[0]
    with pytest.raises(SafetyRefusalError):
        admit(checked, NOW_NS)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"subject": 1, "rows": []}', '{"rows": []}'])
def test_a_record_that_is_none_is_one_line(tmp_path: Path, text: str) -> None:
    the_plan = plan(tmp_path)
    path = record_path(tmp_path, subjects(the_plan)[0])
    path.write_text(text)
    with pytest.raises(RolloutError, match="no readable result of onboard check"):
        admit(the_plan, NOW_NS)
    store(the_plan, row("network.loss", Verdict.PASS))
    assert read_record(tmp_path, subjects(the_plan)[0]) is not None


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RolloutError, match="the result can't be kept"):
        store_rows(tmp_path / "file" / "out", subjects(plan(tmp_path))[0], [])
