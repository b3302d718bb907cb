"""The external pose from end to end: the simulator sends it, the run records it, the exporter hands it on."""

import socket
from pathlib import Path

import joblib
import numpy as np
import pytest

from onboard.configs.events import Mode
from onboard.logging.export.formats import Wish, export
from onboard.logging.rollout import Rollout
from tests.runtime.real_run import real_run

STAND = "steps:\n  - {press: start, until: ramp}\n  - {until: hold, for_s: 2}\n"
HIGH_M, LOW_M = 0.9, 0.8


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_a_pose_sent_by_udp_reaches_the_rollout_and_asaps_motion(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with real_run(
        tmp_path,
        STAND,
        "--external-pose",
        f"udp:{address}",
        gantry_m=HIGH_M,
        sim_options=("--pose-udp", address),
    ) as run:
        run.until_mode(Mode.HOLD)
        run.sim.tell(f"gantry height {LOW_M}")
        code, result = run.end()
    assert code == 0
    with Rollout(result["rollout"]) as rollout:
        pose, age_s = rollout.column("external_pose"), rollout.column("external_age_s")
        stamp_ns, imu = rollout.column("external_pose_ns"), rollout.column("quat_wxyz")
        velocity = rollout.column("external_velocity")
        facts = str(rollout.attributes["facts"])
    assert np.isfinite(pose).all()
    assert age_s.min() >= 0.0
    assert np.median(age_s) < 0.03
    assert np.isfinite(velocity).all()
    assert velocity[-100:, 2].mean() == pytest.approx(0.0, abs=0.02), "it hangs still at the end"
    assert (np.diff(stamp_ns) >= 0).all()
    assert np.median(np.diff(stamp_ns)) == pytest.approx(20e6, rel=0.6)
    assert pose[:50, 2].mean() == pytest.approx(HIGH_M, abs=0.03)
    assert pose[-1, 2] < pose[:50, 2].mean() - 0.05
    turned = np.abs((pose[:, 3:] * imu).sum(1))
    assert np.median(turned) > 0.999, "the same attitude as the IMU's"
    assert '"external_pose_dropped": 0' in facts
    export([Path(result["rollout"])], "asap", tmp_path / "motion.pkl", Wish(action="sent"))
    (motion,) = joblib.load(tmp_path / "motion.pkl").values()
    valid = motion["root_valid"]
    assert valid.mean() > 0.9
    height = motion["root_trans_offset"][valid, 2]
    assert height.max() == pytest.approx(HIGH_M, abs=0.03)
    assert height.min() < HIGH_M - 0.05
