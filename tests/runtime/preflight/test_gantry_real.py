"""`onboard check --gantry` as users type it, on a simulated robot on real DDS: healthy, then each defect."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from onboard.cli.sim_process import SimProcess
from onboard.runtime.free_domain import free_domain_id
from tests.runtime.flight import POLICY, plan

pytestmark = pytest.mark.slow

PATIENCE_S = 200.0
TRIES = 3
"""A machine that is busy with something else can stop a run: the gateway then damps, as it must."""
SWAPPED_LEGS = (
    'gap.wiring={"left_hip_*": "right_hip_*", "right_hip_*": "left_hip_*", "left_knee_*": "right_knee_*", '
    '"right_knee_*": "left_knee_*", "left_ankle_*": "right_ankle_*", "right_ankle_*": "left_ankle_*"}'
)
MACHINE = ("network.rate", "timing.loop", "timing.inference", "timing.disk_speed")
"""What they find is this machine's load, not the robot's health."""
MOVING = ("wiring", "velocity_noise", "torque", "strength", "delay", "friction")


def check(folder: Path, only: Sequence[str], sim: Sequence[str]) -> dict[str, Any]:
    """Rows of one check by name, `seconds` of the whole beside them."""
    plan()  # skips where the policy is not installed
    with free_domain_id() as domain:
        hanging = ["--domain", str(domain), "--gantry", "--set", "gantry.height_m=1.1"]
        hanging += [part for text in sim for part in ("--set", text)]
        arguments = ["check", POLICY, "--domain", str(domain), "--gantry", "--release"]
        arguments += ["--out", str(folder), "--json", str(folder / "check.json")]
        arguments += [part for name in only for part in ("--only", name)]
        arguments += [part for name in MACHINE for part in ("--waive", name)]
        with SimProcess(hanging, folder / "sim.json") as robot:
            begin = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-m", "onboard", *arguments], stdin=subprocess.DEVNULL
            )
            try:
                while process.poll() is None:
                    assert time.monotonic() < begin + PATIENCE_S, "the check did not end"
                    robot.tell("press start 0.1")  # confirms the release; later there is nothing to start
                    time.sleep(0.5)
            finally:
                process.kill()
                process.wait()
            seconds = time.monotonic() - begin
    result = json.loads((folder / "check.json").read_text())
    return {row["check"]: row for row in result["checks"]} | {"seconds": seconds, "ok": result["ok"]}


def probed(
    folder: Path, sim: Sequence[str] = (), only: Sequence[str] = ("network.motion_service",)
) -> dict[str, Any]:
    """A check whose probe no busy machine cut short."""
    for _ in range(TRIES):
        rows = check(folder, only, sim)
        if "gateway" not in rows["robot.probe"]["measured"]:
            break
    return rows


def failed(rows: dict[str, Any]) -> dict[str, str]:
    """What was found, less what is the machine's."""
    found = {name: row for name, row in rows.items() if isinstance(row, dict) and name not in MACHINE}
    return {name: row["measured"] for name, row in found.items() if row["verdict"] == "fail"}


def test_a_healthy_robot_passes_within_three_minutes(tmp_path: Path) -> None:
    rows = probed(tmp_path, only=())
    assert failed(rows) == {}
    assert {name: rows[f"robot.{name}"]["verdict"] for name in MOVING} == dict.fromkeys(MOVING, "pass")
    assert abs(rows["latency.command"]["values"]["latency_ms"]) < 2.0
    assert rows["seconds"] < 180.0


def test_swapped_legs_are_named_joint_by_joint(tmp_path: Path) -> None:
    found = failed(probed(tmp_path, [SWAPPED_LEGS]))
    assert "left_hip_pitch_joint commands move right_hip_pitch_joint" in found["robot.wiring"]
    assert "right_ankle_roll_joint commands move left_ankle_roll_joint" in found["robot.wiring"]


@pytest.mark.parametrize(
    ("sim", "row", "said"),
    [
        ("gap.gain.left_knee_joint=0.5", "robot.strength", "left_knee_joint"),
        ("gap.gain.right_wrist_pitch_joint=0.5", "robot.strength", "right_wrist_pitch_joint"),
        ("gap.gain.right_hip_yaw_joint=0.0", "robot.wiring", "right_hip_yaw_joint does not obey"),
        ("gap.command_latency_s.left_ankle_roll_joint=0.04", "robot.delay", "left_ankle_roll_joint"),
        (
            "gap.wiring={left_wrist_yaw_joint: -left_wrist_yaw_joint}",
            "robot.wiring",
            "left_wrist_yaw_joint turns the wrong way",
        ),
    ],
)
def test_a_defect_is_found_and_named(tmp_path: Path, sim: str, row: str, said: str) -> None:
    found = failed(probed(tmp_path, [sim]))
    assert list(found) == [row]
    assert said in found[row]
