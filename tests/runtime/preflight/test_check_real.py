"""`onboard check` as a whole against `onboard sim` on real DDS, and what `onboard run` makes of it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from onboard.cli.run_options import run_config
from onboard.cli.sim_process import SimProcess
from onboard.logging.rollout import Rollout
from onboard.runtime.assembly import make_plan
from onboard.runtime.dds import DdsDomain
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.idl import BATTERY_TOPIC, BmsState
from onboard.runtime.preflight.record import plain_row, store_rows, subjects
from onboard.runtime.preflight.report import Finding, Row, Verdict
from tests.runtime.flight import POLICY, plan
from tests.runtime.preflight.tracks import follow

pytestmark = pytest.mark.slow

HANGING = ("--gantry", "--released", "--start-pose", "crouch")
BUSY = {"network.rate", "timing.loop", "timing.inference", "timing.disk_speed"}
"""What a machine that is busy with other tests may fail in."""


class Robot:
    """A simulated robot and `onboard check` beside it."""

    def __init__(self, sim: SimProcess, domain: int, folder: Path) -> None:
        self.sim, self.domain, self.folder = sim, domain, folder

    def check(
        self, *arguments: str, obey: Callable[[str], str | None] = lambda prompt: None
    ) -> dict[str, Any]:
        """The result of a check; `obey` turns what a person is asked for into the simulator's commands."""
        command = [sys.executable, "-m", "onboard", "check", POLICY, "--domain", str(self.domain)]
        command += ["--out", str(self.folder / "out"), "--seconds", "1", "--json", "-", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stderr is not None
        with process:
            for line in process.stderr:
                told = obey(line) if ">>" in line else None
                if told:
                    self.sim.tell(told)
            result: dict[str, Any] = json.loads(process.stdout.read())
        assert process.returncode == (0 if result["ok"] else 1)
        return result


@contextmanager
def robot(folder: Path, *options: str) -> Iterator[Robot]:
    plan()  # skips where the policy is not installed
    with free_domain_id() as domain:
        arguments = ["--domain", str(domain), *options]
        with SimProcess(arguments, folder / "sim.json") as sim:
            found = Robot(sim, domain, folder)
            for _ in range(10):
                if "network.rate" not in found.check("--only", "network.rate")["failed"]:
                    break
            yield found


def verdicts(result: dict[str, Any]) -> dict[str, str]:
    return {row["check"]: row["verdict"] for row in result["checks"]}


def test_a_healthy_robot_passes_everything_the_guided_tilt_included(tmp_path: Path) -> None:
    with robot(tmp_path, *HANGING) as healthy:
        result = healthy.check("--tilt", obey=follow)
    found = verdicts(result)
    groups = {name.split(".")[0] for name in found}
    assert groups == {"policy", "network", "timing", "imu", "robot"}
    others = {name: verdict for name, verdict in found.items() if verdict != "pass" and name not in BUSY}
    assert others in ({}, {"robot.encoders": "warn"}), "a limp robot may hang in a joint's stop"
    assert {"imu.tilt_forward", "imu.tilt_left", "imu.tilt_gyro", "policy.observation"} <= {*found}
    assert all(row["seconds"] >= 0 and row["measured"] for row in result["checks"])
    assert json.loads(Path(result["stored"]).read_text())["subject"]["domain"] == healthy.domain


@pytest.mark.parametrize(
    ("knobs", "failed"),
    [
        (("gap.imu_rotation_rad.pelvis=[1.5707963, 0, 0]",), "imu.upright"),
        (("gap.imu_rotation_rad.pelvis=[0, 3.1415927, 0]",), "imu.upright"),
        (("gap.imu_rotation_rad.pelvis=[0, 0, 1.5707963]",), "imu.tilt_forward"),
        (("gap.imu_rotation_rad.pelvis=[0, 0, 3.1415927]",), "imu.tilt_forward"),
        (("gap.quat_order=xyzw",), "imu.quaternion"),
    ],
)
def test_a_turned_imu_and_another_order_are_found(tmp_path: Path, knobs: Sequence[str], failed: str) -> None:
    options = [part for knob in knobs for part in ("--set", knob)]
    with robot(tmp_path, *HANGING, *options) as turned:
        tilt = ("--tilt",) if "tilt" in failed else ()
        assert failed in turned.check("--only", "imu", *tilt, obey=follow)["failed"]


def test_loss_another_type_and_a_second_commander_are_found(tmp_path: Path) -> None:
    with robot(tmp_path, *HANGING) as faulty:
        faulty.sim.tell("fault loss 0.05")
        assert "network.loss" in faulty.check("--only", "network.loss")["failed"]
        faulty.sim.tell("fault loss 0")
        faulty.sim.tell("fault mode_machine 6")
        assert "network.robot_type" in faulty.check("--only", "network.robot_type")["failed"]
        with SimProcess(["--domain", str(faulty.domain), *HANGING], tmp_path / "other.json"):
            found = [faulty.check("--only", "network.publishers")["failed"] for _ in range(8)]
        assert ["network.publishers"] in found


def test_a_policy_whose_first_action_is_a_radian_away_is_found(tmp_path: Path) -> None:
    contract = plan().bundle.contract
    start = list(plan().bundle.start_rad)
    for side in ("left", "right"):
        start[contract.joints.index(f"{side}_shoulder_pitch_joint")] += 1.2
    with robot(tmp_path, *HANGING) as healthy:
        result = healthy.check("--only", "policy", "--set", f"start_rad={start}")
    assert "policy.first_action" in result["failed"]


def status_of(run: subprocess.Popen[str], domain: int) -> dict[str, Any]:
    """What `onboard status` says of a run once it ramps, on a robot that publishes its battery."""
    command = [sys.executable, "-m", "onboard", "status", "--pid", str(run.pid), "--once", "--json", "-"]
    with DdsDomain(domain, "lo") as dds:
        battery = dds.writer(BATTERY_TOPIC, BmsState)
        while run.poll() is None:
            battery.write(BmsState(soc=77).serialize())
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            look: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
            if look and look["state"]["mode"] in {"ramp", "hold"} and look["battery_percent"] is not None:
                return look
    raise AssertionError("the run ended before it was seen to ramp")


def test_a_run_is_refused_by_a_failed_check_and_goes_on_when_it_is_waived(tmp_path: Path) -> None:
    steps = "  - {press: start, until: ramp}\n  - {until: hold}\n  - {for_s: 8}\n"
    (tmp_path / "script.yaml").write_text(f"steps:\n{steps}")
    with robot(tmp_path, *HANGING) as hanging:
        the_plan = make_plan(run_config(policy=POLICY, domain=hanging.domain, out=str(tmp_path / "out")))
        failed = Row(
            "timing.disk_speed", Finding(Verdict.FAIL, "64 KiB on disk in 200 ms", "another disk"), 1.0
        )
        latency = Row("latency.command", Finding(Verdict.PASS, "20 ms", "", {"latency_ms": 20.0}), 1.0)
        store_rows(tmp_path / "out", subjects(the_plan)[0], [plain_row(failed), plain_row(latency)])
        command = [
            sys.executable,
            "-m",
            "onboard",
            "run",
            POLICY,
            "--domain",
            str(hanging.domain),
            "--gantry",
        ]
        command += ["--out", str(tmp_path / "out"), "--script", str(tmp_path / "script.yaml")]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert refused.returncode == 2
        assert "timing.disk_speed failed 0 min ago (64 KiB on disk in 200 ms)" in refused.stderr
        assert "give --waive timing.disk_speed" in refused.stderr
        assert not list((tmp_path / "out").glob("*.h5"))
        waiving = [*command, "--waive", "timing.disk_speed"]
        with subprocess.Popen(waiving, stderr=subprocess.PIPE, text=True) as process:
            look = status_of(process, hanging.domain)
            errors = process.communicate(timeout=100)[1]
    assert process.returncode == 0, errors
    assert look["battery_percent"] == 77
    assert look["link"]["rate_hz"] > 300
    assert look["state"]["mode"] in {"ramp", "hold"}
    assert {"tier", "arm", "episode", "active_events"} <= {*look["state"]}
    assert {"nearest_limit_rad", "hottest_winding_c", "hottest_casing_c"} <= {*look["joints"]}
    assert set(look["processes"]) == {"control", "gateway", "recorder"}
    assert look["timing"]["tick_us"]["p99"] > 0
    assert "WAIVED: timing.disk_speed failed" in errors
    (path,) = (tmp_path / "out").glob("*.h5")
    with Rollout(path) as rollout:
        told = json.loads(str(rollout.attributes["check"]))
    assert told["waived"] == ["timing.disk_speed"]
    rows = {row["check"]: row for row in told["checks"][0]["rows"]}
    assert rows["latency.command"]["values"] == {"latency_ms": 20.0}
