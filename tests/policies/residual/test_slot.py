"""The slot: what reaches the target, when it fades, when it gives up."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onboard.configs.errors import PolicyError
from onboard.configs.events import Arm
from onboard.policies.residual.slot import NoResidual
from tests.policies.residual.support import ANKLES, SCALE, SLOTS, Bench, linear

OTHERS = [slot for slot in range(29) if slot not in SLOTS]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a=st.floats(-0.49, 0.9), b=st.floats(-0.1, 0.1), seed=st.integers(0, 1000))
def test_the_linear_inverse_undoes_the_delta(tmp_path: Path, a: float, b: float, seed: int) -> None:
    bench = Bench(tmp_path, linear(a, b), seed=seed)
    wanted, found = bench.wanted(), bench.tick()
    q, dq = bench.state.q[SLOTS], bench.state.dq[SLOTS]
    answer = found[SLOTS] + a * (found[SLOTS] - q) + b * dq
    assert np.allclose(answer, wanted[SLOTS], atol=1e-5)
    assert np.allclose(found[OTHERS], wanted[OTHERS])


def test_adding_adds_the_delta(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(-0.4, 0.02, mode="add"))
    wanted, found = bench.wanted(), bench.tick()
    delta = -0.4 * (wanted - bench.state.q) + 0.02 * bench.state.dq
    assert np.allclose(found[SLOTS], (wanted + delta)[SLOTS], atol=1e-6)


def test_the_inverse_gain_is_capped(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(-0.75, 0.0))
    wanted, found, q = bench.wanted(), bench.tick(), bench.state.q
    assert np.allclose(found[SLOTS], (q + 2 * (wanted - q))[SLOTS], atol=1e-5)


def test_what_it_added_stands_in_raw_units(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(-0.4, 0.0))
    wanted, found = bench.wanted(), bench.tick()
    assert np.allclose(bench.slot.added[SLOTS] * SCALE, (found - wanted)[SLOTS], atol=1e-6)
    assert np.count_nonzero(bench.slot.added) == 2


def test_a_shadow_computes_and_does_not_apply(tmp_path: Path) -> None:
    bench, kept = Bench(tmp_path / "a", linear(), Arm.SHADOW), Bench(tmp_path / "b", linear())
    assert np.array_equal(bench.tick(), bench.wanted())
    kept.tick()
    assert np.array_equal(bench.slot.added, kept.slot.added)
    assert np.any(bench.slot.added)


def test_a_dropped_arm_computes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(), Arm.DROP)
    assert np.array_equal(bench.tick(), bench.wanted())
    assert not np.any(bench.slot.added)
    assert bench.slot.tally.ticks == 0


def test_every_switch_fades(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(-0.4, 0.0, fade_s=0.1), Arm.DROP)
    full = (1 / 0.6 - 1) * (bench.wanted() - bench.state.q)[SLOTS]
    bench.tick()
    bench.slot.arm = Arm.KEEP
    shares = [(bench.tick() - bench.wanted())[SLOTS] / full for _ in range(6)]
    bench.slot.arm = Arm.DROP
    shares += [(bench.tick() - bench.wanted())[SLOTS] / full for _ in range(6)]
    assert np.allclose(shares, np.array([[0.2, 0.4, 0.6, 0.8, 1, 1, 0.8, 0.6, 0.4, 0.2, 0, 0]]).T, atol=1e-4)


def test_skipped_periods_count_in_the_fade(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(-0.4, 0.0, fade_s=0.1), Arm.DROP)
    bench.tick()
    bench.slot.arm = Arm.KEEP
    bench.step += 4
    full = (1 / 0.6 - 1) * (bench.wanted() - bench.state.q)[SLOTS]
    assert np.allclose((bench.tick() - bench.wanted())[SLOTS], full, atol=1e-5)


def test_the_lowpass_takes_its_share_of_a_step(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(-0.4, 0.0, lowpass_hz=5.0))
    full = (1 / 0.6 - 1) * (bench.wanted() - bench.state.q)[SLOTS]
    shares = [(bench.tick() - bench.wanted())[SLOTS] / full for _ in range(3)]
    left = np.exp(-2 * np.pi * 5 * 0.02)
    assert np.allclose(shares, np.array([[1 - left, 1 - left**2, 1 - left**3]]).T, atol=1e-4)


def test_a_bound_that_is_reached_for_long_drops_the_residual(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(-0.4, 0.0, bound_rad=0.01, fade_s=0.1, drop_on={"bound_saturated_s": 0.2}))
    moved = [np.abs(bench.tick() - bench.wanted())[SLOTS].max() for _ in range(16)]
    assert max(moved) <= 0.01 + 1e-6
    assert bench.slot.dropped == "at its bound"
    assert bench.slot.tally.drops == 1
    assert bench.slot.tally.bounded == 10
    assert moved[8] == pytest.approx(0.01, abs=1e-6)
    assert 0 < moved[10] < moved[9]
    assert moved[-1] == 0.0
    bench.slot.reset()
    assert bench.slot.dropped == ""
    bench.step = 0
    assert np.abs(bench.tick() - bench.wanted())[SLOTS].max() > 0


def test_what_is_not_finite_drops_and_never_reaches_the_target(tmp_path: Path) -> None:
    bench = Bench(tmp_path, linear(fade_s=0.1))
    for _ in range(5):
        bench.tick()
    bench.state.dq[SLOTS[0]] = np.nan
    before = np.inf
    for _ in range(6):
        moved = np.abs(bench.tick() - bench.wanted())[SLOTS].max()
        assert np.isfinite(moved)
        assert moved <= before
        before = moved
    assert bench.slot.dropped == "not finite"
    assert before == 0.0


def test_a_run_without_a_residual_sends_the_policys_own_action(tmp_path: Path) -> None:
    bench, slot = Bench(tmp_path, linear()), NoResidual(12)
    combined = slot.combine(bench.ask(), bench.base)
    assert combined is bench.base
    assert slot.feedback(bench.base, combined) is bench.base
    assert not slot.added.any()


def test_feedback_is_the_policys_own_action_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    for feedback, combined_is_fed in (("base", False), ("combined", True)):
        bench = Bench(tmp_path / feedback, linear(feedback=feedback))
        combined = bench.slot.combine(bench.ask(), bench.base)
        assert (bench.slot.feedback(bench.base, combined) is combined) == combined_is_fed


def test_by_contact_takes_the_part_of_the_phase(tmp_path: Path) -> None:
    gains = {"flight": 0.1, "left": 0.2, "right": 0.3, "both": 0.4}
    phases = {phase: {"coefficients": {name: {"a": a} for name in ANKLES}} for phase, a in gains.items()}
    data = linear(kind="by_contact", mode="add", coefficients={}, phases=phases)
    bench = Bench(tmp_path, data)
    error = (bench.wanted() - bench.state.q)[SLOTS]
    for contact, gain in (((0, 0), 0.1), ((1, 0), 0.2), ((0, 1), 0.3), ((1, 1), 0.4)):
        bench.contact[:] = contact
        assert np.allclose((bench.tick() - bench.wanted())[SLOTS], gain * error, atol=1e-5)


def test_by_contact_drops_when_the_contact_is_unknown(tmp_path: Path) -> None:
    phases = {
        phase: {"coefficients": {name: {"a": 0.2} for name in ANKLES}}
        for phase in ("flight", "left", "right", "both")
    }
    bench = Bench(tmp_path, linear(kind="by_contact", mode="add", coefficients={}, phases=phases))
    bench.tick()
    bench.contact[:] = (1, -1)
    bench.tick()
    assert bench.slot.dropped == ""
    bench.tick()
    assert bench.slot.dropped == "the contact is not known"


def test_a_policy_that_does_not_drive_the_joint_is_refused(tmp_path: Path) -> None:
    data = linear(joints=["waist_yaw_joint"], coefficients={"waist_yaw_joint": {"a": -0.1}})
    with pytest.raises(PolicyError, match="policy tiny does not drive waist_yaw_joint"):
        Bench(tmp_path, data)


@pytest.mark.parametrize("step", ["look", "correction"])
def test_one_that_raises_drops_itself_and_the_policy_goes_on(tmp_path: Path, step: str) -> None:
    bench = Bench(tmp_path, linear(fade_s=0.1))
    bench.tick()

    def fail(*_: object) -> None:
        raise RuntimeError("the graph failed")

    setattr(bench.slot._delta, step, fail)
    for _ in range(8):
        found = bench.tick()
    assert bench.slot.dropped == "RuntimeError: the graph failed"
    assert np.array_equal(found, bench.wanted())


def test_an_answer_of_a_wrong_shape_drops_the_residual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, linear(fade_s=0.1))
    bench.tick()
    monkeypatch.setattr(bench.slot._delta, "correction", lambda: np.zeros(1, np.float32))
    bench.tick()
    assert bench.slot.dropped == "(1,) values instead of (2,)"
