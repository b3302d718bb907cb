"""Every row of the list of faults is injected; the documented table is the list."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onboard.configs.errors import ConfigError
from onboard.configs.events import Event, Tier
from onboard.configs.faults import load_faults, sim_command
from onboard.configs.safety import load_safety
from onboard.runtime.gateway_core import Reason
from onboard.safety.fault_table import BEGIN, END, fault_table
from onboard.safety.table import with_table
from tests.disks import UnavailableError
from tests.faults import lock_step, real, stages

FAULTS = load_faults()
LOCK_STEP = [name for name, fault in FAULTS.items() if fault.where == "lock-step"]
REAL = [name for name, fault in FAULTS.items() if fault.where == "real DDS"]
DOC = Path(__file__).parents[2] / "docs" / "safety.md"


LONG = {
    "loss",
    "duplicated",
    "state_nan_dq",
    "state_nan_torque",
    "state_nan_quaternion",
    "state_nan_gyro",
    "state_nan_accel",
    "winding_hot",
    "casing_hot",
    "residual_nan",
    "residual_shape",
    "torque_saturated",
    "remote_lost",
}
"""Rows that wait for `make faults` and the long suite; others like them run every time."""
QUICK_MISSES = {"state_lost", "tick_frozen", "winding_overheated", "tilt"}


def slow_but(quick: bool) -> Sequence[pytest.MarkDecorator]:
    """Marks of a case."""
    return () if quick else (pytest.mark.slow,)


@pytest.mark.parametrize("name", [pytest.param(name, marks=slow_but(name not in LONG)) for name in LOCK_STEP])
def test_a_fault_in_lock_step(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    seen = lock_step.observe(name, fault, tmp_path)
    assert (seen.tier, fault.log in seen.log) == (fault.tier, True), seen
    if fault.limit_ms is not None:
        assert seen.reaction_ms is not None
        assert seen.reaction_ms <= fault.limit_ms  # simulated time


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=slow_but(name in QUICK_MISSES))
        for name, fault in FAULTS.items()
        if fault.near
    ],
)
def test_what_stays_just_below_the_limit_does_not_trip(name: str) -> None:
    fault = FAULTS[name]
    seen = lock_step.near_miss(fault)
    assert Tier[seen.tier.upper()] < Tier[fault.tier.upper()], seen
    assert fault.log not in seen.log


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_fault_of_a_process(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    try:
        seen = real.observe(name, fault, tmp_path)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert (seen.tier, seen.exit_code) == (fault.tier, fault.exit_code), seen
    assert fault.log in seen.log


def test_every_row_has_its_injection_and_every_injection_its_row() -> None:
    by_command = {name for name in LOCK_STEP if FAULTS[name].sim}
    assert by_command | set(lock_step.INJECT) == set(LOCK_STEP)
    assert not by_command & set(lock_step.INJECT)
    assert {*stages.STAGES, *stages.REFUSED} == set(REAL)
    assert set(stages.REFUSED) == {name for name in REAL if FAULTS[name].tier == "refuse"}


def test_no_event_asks_for_hold() -> None:
    assert "hold" not in {rule.tier for rule in load_safety().events.values()}  # so hold is settling's end


def test_the_log_of_a_lock_step_row_is_an_event_or_a_latch() -> None:
    events = {event.name for event in Event}
    latches = {f"gateway: {reason.name.lower()}" for reason in Reason}
    assert {FAULTS[name].log for name in LOCK_STEP} <= {"", *events, *latches}


def test_only_what_stops_the_robot_needs_a_time_limit() -> None:
    assert {fault.tier for fault in FAULTS.values() if fault.limit_ms is None} == {"none", "refuse"}


def test_the_documented_table_is_the_list() -> None:
    text = DOC.read_text(encoding="utf-8")
    table = fault_table(FAULTS)
    assert with_table(text, table, BEGIN, END) == text, (
        "run: python -m onboard.safety.fault_table docs/safety.md"
    )


def test_the_simulator_knows_the_robots_own_faults_alone() -> None:
    assert sim_command("tick_frozen") == "fault frozen 1000000"
    with pytest.raises(
        ConfigError, match="fault 'control_kill' is not one of the robot's; the simulator knows:"
    ):
        sim_command("control_kill")
    with pytest.raises(ConfigError, match="fault 'meteor' is not in the list"):
        sim_command("meteor")
