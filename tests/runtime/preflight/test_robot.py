"""What the robot says of itself: battery, modes, fault bits, temperatures, encoders."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from onboard.cli.sim_process import SimProcess
from onboard.configs.robot import load_robot
from onboard.configs.safety import load_safety
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.link import State
from onboard.runtime.preflight.report import Finding, Verdict, run_checks
from onboard.runtime.preflight.robot import (
    Heard,
    RobotChecks,
    judge_battery,
    judge_encoders,
    judge_mode,
    judge_motor_faults,
    judge_temperature,
)
from tests.dds_domain import domain_id  # noqa: F401 - a fixture

ROBOT, SMALLER, SAFETY = load_robot("g1_29dof"), load_robot("g1_23dof"), load_safety("g1")
KNEE = 3


@pytest.mark.parametrize(
    ("charge", "verdict"),
    [
        (None, Verdict.PASS),
        (100, Verdict.PASS),
        (40, Verdict.PASS),
        (39, Verdict.WARN),
        (20, Verdict.WARN),
        (19, Verdict.FAIL),
    ],
)
def test_battery(charge: int | None, verdict: Verdict) -> None:
    assert judge_battery(charge).verdict is verdict


def test_ankles_as_actuators_fail_and_disabled_motors_warn() -> None:
    state, modes = State(), np.ones(29, np.uint8)
    assert judge_mode(Heard(state, modes), ROBOT).verdict is Verdict.PASS
    modes[KNEE] = 0
    finding = judge_mode(Heard(state, modes), ROBOT)
    assert finding.verdict is Verdict.WARN
    assert finding.measured == "mode_pr 0, 28 of 29 motors enabled (not left_knee_joint)"
    state.mode_pr = 1
    assert "mode_pr must be 0" in judge_mode(Heard(state, modes), ROBOT).advice


def test_motors_that_a_smaller_robot_lacks_need_not_be_enabled() -> None:
    modes = SMALLER.valid.astype(np.uint8)
    assert judge_mode(Heard(State(), modes), SMALLER).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("bits", "verdict"), [(0, Verdict.PASS), (0x10, Verdict.WARN), (0x400, Verdict.FAIL)]
)
def test_fault_bits(bits: int, verdict: Verdict) -> None:
    state = State()
    state.motor_fault[KNEE] = bits
    finding = judge_motor_faults(state, ROBOT, SAFETY)
    assert finding.verdict is verdict
    assert finding.measured == (f"left_knee_joint {bits:#x}" if bits else "none")


@pytest.mark.parametrize(
    ("casing", "winding", "verdict"),
    [
        (75, 100, Verdict.PASS),
        (76, 30, Verdict.WARN),
        (30, 101, Verdict.WARN),
        (86, 30, Verdict.FAIL),
        (30, 121, Verdict.FAIL),
    ],
)
def test_temperature(casing: int, winding: int, verdict: Verdict) -> None:
    state = State()
    state.temperature[KNEE] = casing, winding
    finding = judge_temperature(state, ROBOT, SAFETY)
    assert finding.verdict is verdict
    assert finding.values == {"casing_celsius": casing, "winding_celsius": winding}


def test_encoders_inside_their_range() -> None:
    state = State()
    assert judge_encoders(state, ROBOT).verdict is Verdict.PASS
    state.q[KNEE] = ROBOT.lower[KNEE] - 0.01
    assert judge_encoders(state, ROBOT).verdict is Verdict.WARN
    state.q[KNEE] = ROBOT.lower[KNEE] - 0.06
    finding = judge_encoders(state, ROBOT)
    assert finding.verdict is Verdict.FAIL
    assert "left_knee_joint at -0.147 rad of -0.087 to 2.880" in finding.measured


def findings(domain: DdsDomain) -> dict[str, Finding]:
    return {
        row.name.removeprefix("robot."): row.finding
        for row in run_checks(RobotChecks(domain, ROBOT, SAFETY).checks())
    }


def test_against_a_simulator(domain_id: int, tmp_path: Path) -> None:  # noqa: F811 - the fixture
    with DdsDomain(domain_id, "lo") as domain:
        arguments = ["--domain", str(domain_id), "--gantry"]
        with SimProcess(arguments, tmp_path / "sim.json") as sim:
            well = findings(domain)
            assert {name: finding.verdict for name, finding in well.items()} == dict.fromkeys(
                ("battery", "mode", "motor_faults", "temperature", "encoders"), Verdict.PASS
            )
            assert well["battery"].measured == "not published here"
            for line in (
                "mode_pr 1",
                "motor left_knee_joint 1",
                "heat left_knee_joint 125",
                "encoder left_knee_joint 4",
            ):
                sim.tell(f"fault {line}")
            expected = ["mode", "motor_faults", "temperature", "encoders"]
            until = time.monotonic() + 20.0
            failed: list[str] = []
            while failed != expected and time.monotonic() < until:
                ill = findings(domain)
                failed = [name for name, finding in ill.items() if finding.verdict is Verdict.FAIL]
            assert failed == expected


def test_a_published_battery_is_heard(domain_id: int) -> None:  # noqa: F811 - the fixture
    with DdsDomain(domain_id, "lo") as domain:
        writer, done = domain.writer(idl.BATTERY_TOPIC, idl.BmsState), threading.Event()

        def publish() -> None:
            while not done.wait(0.02):
                writer.write(idl.BmsState(soc=15).serialize())

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            row = next(iter(run_checks(RobotChecks(domain, ROBOT, SAFETY).checks()[:1])))
        finally:
            done.set()
            thread.join()
        assert (row.finding.verdict, row.finding.measured) == (Verdict.FAIL, "15 % charged")
