"""No nominal run trips anything: states of real policies, made by an independent simulation."""

import numpy as np
import pytest

from onboard.configs.events import Mode, Tier, names
from onboard.safety.limits import Cut
from tests.safety.support import ROBOT, Bench
from tests.shared import shared_folder

WALKING = (
    *("holosoma_loco_ppo", "holosoma_loco_fastsac", "unitree_rl_lab_velocity", "unitree_rl_mjlab_velocity"),
    *("asap_dec_loco", "falcon", "falcon_dec_loco", "mujoco_playground_g1"),
)


@pytest.mark.parametrize("policy", WALKING)
def test_walking_policies_trip_nothing_and_are_hardly_limited(policy: str) -> None:
    golden = np.load(shared_folder("golden", f"{policy}.npz"))
    kp, kd = golden["kp"].astype(np.float32), golden["kd"].astype(np.float32)
    bench = Bench()
    bench.mode = Mode.POLICY
    state = bench.state
    for tick in range(len(golden["q"])):
        state.q[:], state.dq[:] = golden["q"][tick], golden["dq"][tick]
        state.quat_wxyz[:], state.gyro_body[:] = golden["quat_wxyz"][tick], golden["gyro"][tick]
        target = golden["q_des"][tick].astype(np.float32)
        asked = kp * (target - state.q) - kd * state.dq
        state.tau_est[:] = np.clip(asked, -ROBOT.effort, ROBOT.effort)
        assert bench.tick() is Tier.NONE, names(bench.gate.events)
        bench.gate.limit(target, state, kp, kd, golden["raw_action"][tick].astype(np.float32))
        assert not np.any(bench.gate.limit_mask & (Cut.RESENT | Cut.RATE))
    assert bench.gate.limited()["physical"] == 0
