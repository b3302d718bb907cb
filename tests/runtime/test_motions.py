import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.robot import N_JOINTS
from onboard.runtime.motions import FadeIn, HoldBlend, RampProfile, smooth

PERIOD_S = 0.02
POSES = st.lists(st.floats(-3, 3, width=32), min_size=N_JOINTS, max_size=N_JOINTS).map(
    lambda values: np.array(values, np.float32)
)


def ramp(**changes: float) -> RampProfile:
    settings = {"seconds": 3.0, "max_speed_rad_s": 1.0, "kp_start": 0.1} | changes
    return RampProfile(PERIOD_S, **settings)


@given(st.floats(-1, 2), st.floats(0, 1))
def test_smooth_is_monotone_and_stays_between_zero_and_one(x: float, step: float) -> None:
    assert 0.0 <= smooth(x) <= smooth(x + step) <= 1.0


@pytest.mark.parametrize(("x", "y"), [(-0.5, 0.0), (0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (7.0, 1.0)])
def test_smooth_passes_through_its_known_points(x: float, y: float) -> None:
    assert smooth(x) == pytest.approx(y)


@given(POSES, POSES)
def test_ramp_goes_from_the_measured_pose_to_the_goal_without_passing_the_speed_limit(
    q: np.ndarray, goal: np.ndarray
) -> None:
    profile = ramp()
    profile.begin(q, goal)
    previous, scale = q.copy(), 0.1
    for _ in range(profile.length_ticks):
        assert not profile.done
        target = profile.step()
        assert np.max(np.abs(target - previous)) <= 1.0 * PERIOD_S * 1.001 + 1e-6
        assert np.all(np.abs(goal - target) <= np.abs(goal - previous) + 1e-6), "moved away from the goal"
        assert scale <= profile.kp_scale <= 1.0
        previous, scale = target.copy(), profile.kp_scale
    assert profile.done
    assert profile.kp_scale == 1.0
    np.testing.assert_array_equal(target, goal)
    np.testing.assert_array_equal(profile.step(), goal)


def test_ramp_lasts_at_least_its_seconds_and_longer_for_a_long_way() -> None:
    profile = ramp()
    here = np.zeros(N_JOINTS, np.float32)
    profile.begin(here, here)
    assert profile.length_ticks == 150
    there = here.copy()
    there[3] = -2.0
    profile.begin(here, there)
    assert profile.length_ticks == 188  # 1.875 · 2 rad at 1 rad/s: 3.75 s


def test_ramp_stiffens_before_it_moves() -> None:
    profile = ramp(seconds=4.0)
    here = np.zeros(N_JOINTS, np.float32)
    profile.begin(here, here + 1)
    assert profile.kp_scale == pytest.approx(0.1)
    assert np.max(profile.step()) < 1e-4
    assert profile.kp_scale == pytest.approx(0.1, abs=0.001)
    profile.step(24)
    assert profile.kp_scale == pytest.approx(0.55)
    np.testing.assert_allclose(profile.step(25), 0.1035, atol=1e-4)
    assert profile.kp_scale == 1.0
    np.testing.assert_allclose(profile.step(50), 0.5, atol=1e-6)


def test_ramp_begins_anew_after_it_was_done() -> None:
    profile = ramp()
    here = np.zeros(N_JOINTS, np.float32)
    profile.begin(here, here + 1)
    profile.step(1000)
    assert profile.done
    profile.begin(here, here - 1)
    assert not profile.done
    assert profile.kp_scale == pytest.approx(0.1)
    assert np.max(np.abs(profile.step())) < 1e-4


@given(POSES, POSES, st.integers(1, 5))
def test_hold_blends_from_the_sent_target_to_the_pose_and_stays(
    sent: np.ndarray, goal: np.ndarray, periods: int
) -> None:
    blend = HoldBlend(PERIOD_S, 0.3)
    assert blend.length_ticks == 15
    blend.begin(sent, goal)
    previous = sent.copy()
    for _ in range(0, blend.length_ticks, periods):
        target = blend.step(periods)
        assert np.all(np.abs(goal - target) <= np.abs(goal - previous) + 1e-6)
        bound = np.abs(goal - sent) * 1.875 * periods / blend.length_ticks + 1e-5
        assert np.all(np.abs(target - previous) <= bound)
        previous = target.copy()
    np.testing.assert_array_equal(target, goal)
    np.testing.assert_array_equal(blend.step(), goal)


def test_hold_keeps_its_own_copies() -> None:
    sent, goal = np.zeros(N_JOINTS, np.float32), np.ones(N_JOINTS, np.float32)
    blend = HoldBlend(PERIOD_S, 0.1)
    blend.begin(sent, goal)
    sent[:], goal[:] = 9, 9
    assert np.all(blend.step() < 1)
    np.testing.assert_array_equal(blend.step(10), np.ones(N_JOINTS, np.float32))


def test_fade_changes_nothing_before_it_is_begun() -> None:
    target = np.linspace(-1, 1, N_JOINTS, dtype=np.float32)
    np.testing.assert_array_equal(FadeIn(PERIOD_S, 0.1).step(target), target)


@given(POSES, POSES)
def test_fade_reaches_a_moving_target_after_its_ticks(sent: np.ndarray, target: np.ndarray) -> None:
    fade = FadeIn(PERIOD_S, 0.1)
    assert fade.length_ticks == 5
    fade.begin(sent)
    shares = []
    for tick in range(5):
        moving = target + np.float32(0.01 * tick)
        mixed = fade.step(moving)
        low, high = np.minimum(sent, moving), np.maximum(sent, moving)
        assert np.all((mixed >= low - 1e-6) & (mixed <= high + 1e-6))
        shares.append(mixed.copy())
    np.testing.assert_array_equal(shares[-1], moving)


def test_fade_steps_follow_the_quintic_and_count_skipped_periods() -> None:
    sent, target = np.zeros(N_JOINTS, np.float32), np.ones(N_JOINTS, np.float32)
    fade = FadeIn(PERIOD_S, 0.1)
    fade.begin(sent)
    for tick in range(1, 6):
        np.testing.assert_allclose(fade.step(target), smooth(tick / 5), rtol=1e-6)
    fade.begin(sent)
    np.testing.assert_allclose(fade.step(target, 3), smooth(0.6), rtol=1e-6)


@pytest.mark.parametrize("kind", [HoldBlend, FadeIn])
def test_a_zero_duration_jumps_in_one_tick(kind: type[HoldBlend] | type[FadeIn]) -> None:
    motion = kind(PERIOD_S, 0.0)
    assert motion.length_ticks == 1


def test_progress_of_blend_and_fade_runs_from_zero_to_one() -> None:
    zeros = np.zeros(N_JOINTS, np.float32)
    blend, fade = HoldBlend(PERIOD_S, 0.1), FadeIn(PERIOD_S, 0.1)
    blend.begin(zeros, zeros)
    fade.begin(zeros)
    for tick in range(1, 8):
        blend.step()
        fade.step(zeros)
        assert blend.progress == fade.progress == min(tick / 5, 1.0)
