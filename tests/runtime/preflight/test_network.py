"""What the network checks say about samples as they should and should not come."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from onboard.cli.sim_process import SimProcess
from onboard.configs.robot import load_robot
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.link import State
from onboard.runtime.preflight.network import (
    Heard,
    NetworkChecks,
    judge_checksums,
    judge_loss,
    judge_rate,
    judge_tick_unit,
    judge_types,
    listen,
)
from onboard.runtime.preflight.report import Row, Verdict, run_checks
from onboard.runtime.wire import LowCmdWriter
from tests.dds_domain import domain_id  # noqa: F401 - a fixture

MS = 1_000_000
N = 1000


def heard(tick: np.ndarray | None = None, time_ms: np.ndarray | None = None, bad: int = 0) -> Heard:
    tick = np.arange(N) * 2 if tick is None else tick
    time_ms = np.arange(tick.size) * 2.0 if time_ms is None else time_ms
    return Heard(tick, (time_ms * MS).astype(np.int64), bad, State())


def test_a_healthy_robot_passes() -> None:
    for judge in (judge_rate, judge_loss, judge_checksums, judge_tick_unit):
        finding = judge(heard())
        assert (finding.verdict, finding.advice) == (Verdict.PASS, ""), finding


def test_five_percent_loss_fails_and_one_sample_warns() -> None:
    tick = np.arange(N) * 2
    lossy = np.delete(tick, np.arange(10, N, 20))
    finding = judge_loss(heard(lossy))
    assert finding.verdict is Verdict.FAIL
    assert finding.measured.startswith("5.00 % lost")
    assert judge_loss(heard(np.delete(tick, 500))).verdict is Verdict.WARN


def test_repeated_and_reordered_samples_are_told_apart() -> None:
    tick = np.arange(N) * 2
    tick[5], tick[20], tick[21] = tick[4], tick[21], tick[20]
    finding = judge_loss(heard(tick))
    assert finding.verdict is Verdict.WARN
    assert "1 repeated, 1 out of order" in finding.measured
    assert judge_loss(heard(np.repeat(tick[:500], 2))).verdict is Verdict.FAIL


def test_a_slow_or_jerky_robot() -> None:
    assert judge_rate(heard(time_ms=np.arange(N) * 3.0)).verdict is Verdict.FAIL
    late = np.arange(N) * 2.0
    late[700:] += 15.0
    assert judge_rate(heard(time_ms=late)).verdict is Verdict.WARN


def test_damaged_samples() -> None:
    assert judge_checksums(heard(bad=1)).verdict is Verdict.WARN
    assert judge_checksums(heard(bad=50)).verdict is Verdict.FAIL


def test_a_robot_that_counts_otherwise_or_not_at_all() -> None:
    finding = judge_tick_unit(heard(np.arange(N)))
    assert (finding.verdict, finding.measured) == (Verdict.FAIL, "1 unit of robot_tick is 2.0000 ms")
    assert judge_tick_unit(heard(np.zeros(N, np.int64))).verdict is Verdict.FAIL


def test_message_types_are_the_robots_or_the_check_fails() -> None:
    assert judge_types().verdict is Verdict.PASS
    finding = judge_types(lambda name: "0" if name == "LowCmd" else idl.PINNED_TYPE_MAPS[name])
    assert finding.verdict is Verdict.FAIL
    assert finding.measured.endswith("other type hashes of LowCmd")


@pytest.fixture
def domain(domain_id: int) -> Iterator[DdsDomain]:  # noqa: F811 - the fixture
    with DdsDomain(domain_id, "lo") as domain:
        yield domain


def until_heard(domain: DdsDomain) -> None:
    """A simulator takes its time to start on a busy machine."""
    assert any(listen(domain, 20).tick.size >= 20 for _ in range(12))


def verdicts(domain: DdsDomain, *names: str) -> dict[str, Row]:
    checks = NetworkChecks(domain, load_robot("g1_29dof")).checks()
    return {
        row.name.removeprefix("network."): row for row in run_checks(c for c in checks if c.name in names)
    }


def test_against_a_simulator(domain: DdsDomain, tmp_path: Path) -> None:
    with SimProcess(["--domain", str(domain.id)], tmp_path / "sim.json") as sim:
        until_heard(domain)
        rows = verdicts(domain, "robot_type", "publishers", "commanders", "motion_service")
        assert {name: row.finding.verdict for name, row in rows.items()} == {
            "robot_type": Verdict.PASS,
            "publishers": Verdict.PASS,
            "commanders": Verdict.PASS,
            "motion_service": Verdict.WARN,
        }
        assert rows["motion_service"].finding.measured == "'ai' has the motors"
        sim.tell("fault loss 0.05")
        assert listen(domain, 100).tick.size >= 100
        assert verdicts(domain, "loss")["loss"].finding.verdict is Verdict.FAIL
        sim.tell("fault loss 0")
        sim.tell("fault mode_machine 6")
        assert listen(domain, 100).tick.size >= 100
        assert verdicts(domain, "robot_type")["robot_type"].finding.verdict is Verdict.FAIL
        with DdsDomain(domain.id + 1, "lo") as silent:
            row = verdicts(silent, "interface", "loss")["loss"]
            assert row.finding.verdict is Verdict.FAIL
            assert "no LowState on lo" in row.finding.measured


COMMANDER = """
import sys, time
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain

with DdsDomain(int(sys.argv[1]), "lo") as dds:
    writer = dds.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
    while True:
        writer.write(bytes.fromhex(sys.argv[2]))
        time.sleep(0.005)
"""


def test_a_second_robot_on_the_same_domain_is_found(domain: DdsDomain, tmp_path: Path) -> None:
    arguments = ["--domain", str(domain.id)]
    with SimProcess(arguments, tmp_path / "one.json"), SimProcess(arguments, tmp_path / "two.json"):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            finding = verdicts(domain, "publishers")["publishers"].finding
            if finding.verdict is Verdict.FAIL and finding.measured.startswith("2"):
                break
        assert finding.measured.startswith("2 publishers")


def test_another_commander_is_heard_and_our_own_voice_is_not(domain: DdsDomain) -> None:
    zeros = np.zeros(29, np.float32)
    frame = bytes(LowCmdWriter(np.ones(29, bool)).fill(zeros, zeros, zeros, 5))
    domain.writer(idl.LOW_CMD_TOPIC, idl.LowCmd).write(frame)
    assert verdicts(domain, "commanders")["commanders"].finding.verdict is Verdict.PASS
    other = subprocess.Popen([sys.executable, "-c", COMMANDER, str(domain.id), frame.hex()])
    try:
        for _ in range(30):
            finding = verdicts(domain, "commanders")["commanders"].finding
            if finding.verdict is Verdict.FAIL:
                break
        assert "stop that program first" in finding.advice
    finally:
        other.kill()
        other.wait()
