"""Reaction times from made-up frames, and what follows when control hangs, on real DDS."""

import json
from pathlib import Path

import pytest

from benchmarks.gateway import FAULTY, FAULTY_RUN, KINDS, judge, read
from benchmarks.reactions import Reaction, react, summarise
from onboard.configs.errors import ConfigError
from onboard.configs.events import Mode
from onboard.logging.rollout import Rollout
from tests.runtime.real_run import WALK, Frame, real_run
from tests.runtime.test_run_real import assert_damped_for_good

MS = 1_000_000


def frame(ms: float, crc: int, *, damping: bool = False, writer: int = 1) -> Frame:
    return Frame(int(ms * MS), writer, damping, True, crc)


TRACKING = [frame(0, 1), frame(5, 1), frame(10, 2), frame(15, 2), frame(20, 2)]


def test_repeats_of_a_target_are_no_commands() -> None:
    frames = [*TRACKING, frame(60, 9, damping=True), frame(65, 9, damping=True)]
    assert react(frames, 12 * MS) == Reaction(50.0, 0)


def test_from_a_given_instant() -> None:
    frames = [*TRACKING, frame(31, 9, damping=True)]
    assert react(frames, 12 * MS, since_ns=28 * MS) == Reaction(3.0, 0)


def test_every_command_after_the_first_damping_one_is_counted() -> None:
    frames = [*TRACKING, frame(61, 3), frame(60, 9, damping=True, writer=2), frame(62, 3)]
    assert react(frames, 12 * MS) == Reaction(50.0, 2)


def test_damping_before_the_fault_does_not_count() -> None:
    frames = [frame(-5, 9, damping=True), *TRACKING, frame(60, 9, damping=True)]
    assert react(frames, 12 * MS) == Reaction(50.0, 0)


@pytest.mark.parametrize(
    "frames",
    [TRACKING, [], [frame(8, 9, damping=True), frame(60, 9, damping=True)]],
    ids=["never damped", "silent", "was damped already"],
)
def test_what_did_not_come_about(frames: list[Frame]) -> None:
    assert react(frames, 12 * MS) is None


def test_one_late_or_wrong_command_spoils_a_kind() -> None:
    good = summarise([Reaction(60.0, 0)] * 3)
    assert good == {"n": 3, "p50_ms": 60.0, "p99_ms": 60.0, "max_ms": 60.0, "sent_after": 0}
    assert judge("control_kill", good)
    assert not judge("remote_stop", good)
    assert not judge("control_kill", summarise([Reaction(60.0, 0), Reaction(60.0, 1)]))
    assert not judge("gateway_stop", summarise([*[Reaction(60.0, 0)] * 500, Reaction(151.0, 0)]))


def test_a_measurement_goes_on_with_what_its_file_has(tmp_path: Path) -> None:
    path = tmp_path / "reactions.json"
    kinds = ["gateway_kill", "parent_kill"]
    assert read(path, kinds) == ({"gateway_kill": [], "parent_kill": []}, [])
    row = {**summarise([Reaction(30.5, 0)]), "each": [Reaction(30.5, 0)]}
    path.write_text(
        json.dumps({"gateway_kill": row, "control_kill": row, "sittings": [{"load": [0.1, 0.2]}]})
    )
    found, sittings = read(path, kinds)
    assert found == {"gateway_kill": [Reaction(30.5, 0)], "parent_kill": []}
    assert sittings == [{"load": [0.1, 0.2]}]
    for other in ("{", "[]", '{"gateway_kill": {"n": 3}}'):
        path.write_text(other)
        with pytest.raises(ConfigError, match=r"reactions\.json: not what --json"):
            read(path, kinds)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["control_gil", "control_loop"])
def test_a_hung_control_is_damped_then_killed_and_the_run_ends(tmp_path: Path, kind: str) -> None:
    with real_run(tmp_path, WALK, program=FAULTY_RUN) as run:
        run.until_mode(Mode.POLICY)
        run.signal(KINDS[kind].number, FAULTY)
        code, result = run.end()
    assert code == 4
    assert "control hung" in result["end"]
    assert_damped_for_good(run)
    with Rollout(result["rollout"]) as rollout:
        assert rollout.column("mode")[-1] == Mode.POLICY
        assert rollout.completeness == "complete"
