"""A linear inverse through the gains: the same torque as through the target."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onboard.configs.errors import ConfigError, PolicyError
from onboard.configs.events import Arm
from onboard.policies.residual.files import load_residual
from onboard.policies.residual.gains import GainSlot, make_slot
from tests.policies.models import ROBOT
from tests.policies.residual.support import SLOTS, Bench, linear


def gain_slot(bench: Bench, folder: Path, a: float, b: float, arm: Arm = Arm.KEEP) -> GainSlot:
    path = folder / "gains.yaml"
    path.write_text(yaml.safe_dump({"residual": linear(a, b, through="gains", fade_s=0.1)}))
    slot = make_slot(load_residual(path, ROBOT, bench.policy.bundle.contract), bench.policy, ROBOT, arm)
    assert isinstance(slot, GainSlot)
    return slot


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a=st.floats(-0.49, 0.9), b=st.floats(0.0, 0.1), seed=st.integers(0, 1000))
def test_the_torque_is_that_of_the_moved_target(tmp_path: Path, a: float, b: float, seed: int) -> None:
    bench = Bench(tmp_path, linear(a, b), seed=seed)
    slot, policy, q, dq = gain_slot(bench, tmp_path, a, b), bench.policy, bench.state.q, bench.state.dq
    moved = policy.kp * (bench.tick() - q) - policy.kd * dq
    assert slot.combine(bench.ask(), bench.base) is bench.base
    kp, kd = slot.gains(policy.kp, policy.kd)
    assert np.allclose(kp * (bench.wanted() - q) - kd * dq, moved, atol=2e-3)
    assert np.allclose(slot.added, bench.slot.added, atol=1e-5)


def test_other_joints_keep_their_gains_and_every_switch_fades(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear())
    slot, policy = gain_slot(bench, tmp_path, -0.4, 0.0, Arm.DROP), bench.policy
    others = [joint for joint in range(29) if joint not in SLOTS]
    shares = []
    for arm in (Arm.DROP, *[Arm.KEEP] * 5, *[Arm.DROP] * 5):
        slot.arm = arm
        slot.combine(bench.ask(), bench.base)
        bench.step += 1
        kp, _ = slot.gains(policy.kp, policy.kd)
        assert np.array_equal(kp[others], policy.kp[others])
        shares.append((kp[4] / policy.kp[4] - 1) / (1 / 0.6 - 1))
    assert shares == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1, 0.8, 0.6, 0.4, 0.2, 0], abs=1e-5)


def test_a_shadow_leaves_the_gains_alone_and_says_what_it_would_do(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear())
    slot = gain_slot(bench, tmp_path, -0.4, 0.0, Arm.SHADOW)
    slot.combine(bench.ask(), bench.base)
    assert slot.gains(bench.policy.kp, bench.policy.kd) == (bench.policy.kp, bench.policy.kd)
    assert slot.added.any()


@pytest.mark.parametrize(
    "changes", [{"mode": "add"}, {"bound_rad": 0.1}, {"lowpass_hz": 5.0}], ids=["add", "bound", "filter"]
)
def test_only_a_plain_linear_inverse_goes_through_the_gains(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "residual.yaml"
    path.write_text(yaml.safe_dump({"residual": linear(through="gains", **changes)}))
    with pytest.raises(ConfigError, match="through gains"):
        load_residual(path, ROBOT, None)


def test_a_negative_damping_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear())
    with pytest.raises(PolicyError, match="use through: target"):
        gain_slot(bench, tmp_path, -0.4, -0.1)
