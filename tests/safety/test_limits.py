import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onboard.configs.robot import N_JOINTS
from onboard.configs.safety import load_safety
from onboard.runtime.link import Float32Array
from onboard.safety.limits import Bounds, Cut, Limited, Tally, limit_target, make_bounds, resend, usable
from tests.safety.support import CONFIG, PERIOD_S, ROBOT, STAND

BOUNDS = make_bounds(CONFIG.limits, ROBOT, PERIOD_S)
TIGHT = make_bounds(
    load_safety("g1", ["limits.soft_range=0.8", "limits.rate_rad_s=5"]).limits, ROBOT, PERIOD_S
)
ZEROS = np.zeros(N_JOINTS, np.float32)
KP = np.full(N_JOINTS, 20, np.float32)
KD = np.full(N_JOINTS, 2, np.float32)
KNEE, WRIST = 3, 20


def joints(low: float, high: float) -> st.SearchStrategy[Float32Array]:
    return hnp.arrays(np.float32, N_JOINTS, elements=st.floats(low, high, width=32))


ANY = hnp.arrays(np.float32, N_JOINTS, elements=st.floats(width=32))
INSIDE = hnp.arrays(np.float32, N_JOINTS, elements=st.floats(0, 1, width=32)).map(
    lambda share: np.clip(ROBOT.lower + share * (ROBOT.upper - ROBOT.lower), ROBOT.lower, ROBOT.upper)
)


def limited(
    target: Float32Array,
    *,
    q: Float32Array = STAND,
    dq: Float32Array = ZEROS,
    kp: Float32Array = KP,
    kd: Float32Array = KD,
    previous: Float32Array = STAND,
    bounds: Bounds = BOUNDS,
) -> Limited:
    out = Limited()
    limit_target(target, q, dq, kp, kd, previous, bounds, out)
    return out


def at(joint: int, value: float, base: Float32Array = STAND) -> Float32Array:
    changed: Float32Array = base.copy()
    changed[joint] = value
    return changed


def test_a_modest_target_passes_unchanged() -> None:
    target = STAND + np.float32(0.1)
    out = limited(target)
    np.testing.assert_array_equal(out.sent, target)
    assert not out.mask.any()


@given(ANY, ANY, ANY, ANY, ANY, INSIDE)
def test_for_any_input_the_sent_target_is_finite_and_inside_the_physical_range(
    target: Float32Array,
    q: Float32Array,
    dq: Float32Array,
    kp: Float32Array,
    kd: Float32Array,
    previous: Float32Array,
) -> None:
    sent = limited(target, q=q, dq=dq, kp=kp, kd=kd, previous=previous).sent
    assert np.all((sent >= ROBOT.lower) & (sent <= ROBOT.upper))  # false for NaN


@given(joints(-20, 20), INSIDE)
def test_where_the_torque_allows_it_the_step_is_at_most_the_rate(
    target: Float32Array, previous: Float32Array
) -> None:
    out = limited(target, kp=ZEROS, previous=previous, bounds=TIGHT)
    assert np.all(np.abs(out.sent - previous) <= TIGHT.step_rad * np.float32(1 + 1e-5))
    cut_by_rate = (out.mask & Cut.RATE).astype(bool)
    wanted = np.clip(target, TIGHT.soft_lower, TIGHT.soft_upper)
    np.testing.assert_array_equal(cut_by_rate, np.abs(wanted - previous) > TIGHT.step_rad)


@given(joints(-20, 20), joints(-3, 3), joints(-30, 30), joints(1, 400), joints(0, 10), INSIDE)
def test_the_torque_asked_for_stays_below_the_share_unless_the_range_forbids_it(
    target: Float32Array,
    q: Float32Array,
    dq: Float32Array,
    kp: Float32Array,
    kd: Float32Array,
    previous: Float32Array,
) -> None:
    out = limited(target, q=q, dq=dq, kp=kp, kd=kd, previous=previous)
    torque = kp * (out.sent - q) - kd * dq
    free = (out.mask & Cut.PHYSICAL) == 0
    assert np.all(np.abs(torque[free]) <= 0.95 * ROBOT.effort[free] * 1.001 + 0.01)


@given(joints(-20, 20), joints(-3, 3), joints(-30, 30), joints(0, 400), joints(0, 10), INSIDE)
def test_the_mask_tells_exactly_which_joints_changed(
    target: Float32Array,
    q: Float32Array,
    dq: Float32Array,
    kp: Float32Array,
    kd: Float32Array,
    previous: Float32Array,
) -> None:
    out = limited(target, q=q, dq=dq, kp=kp, kd=kd, previous=previous)
    changed = out.sent != target
    assert np.all(out.mask[changed] != 0)
    assert not np.any(out.mask & Cut.RESENT)


@given(joints(-20, 20), joints(-3, 3), INSIDE)
def test_the_same_inputs_give_the_same_output_whatever_the_buffers_held(
    target: Float32Array, q: Float32Array, previous: Float32Array
) -> None:
    dirty = Limited()
    for array in (dirty.steps, dirty.changed, dirty.mask, *dirty.rate, *dirty.torque):
        array[:] = 77
    limit_target(target, q, ZEROS, KP, KD, previous, BOUNDS, dirty)
    clean = limited(target, q=q, previous=previous)
    np.testing.assert_array_equal(dirty.sent, clean.sent)
    np.testing.assert_array_equal(dirty.mask, clean.mask)


def test_arguments_are_left_alone() -> None:
    target, q, dq, kp, kd, previous = arguments = [STAND + 3, STAND + 1, ZEROS + 1, KP * 2, KD * 2, STAND * 2]
    copies = [argument.copy() for argument in arguments]
    limit_target(target, q, dq, kp, kd, previous, BOUNDS, Limited())
    np.testing.assert_array_equal(arguments, copies)


def test_the_soft_range_lies_about_the_middle_of_the_joint() -> None:
    lower, upper = float(ROBOT.lower[KNEE]), float(ROBOT.upper[KNEE])
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    previous = at(KNEE, middle + 0.8 * half)
    out = limited(at(KNEE, upper), q=previous, previous=previous, bounds=TIGHT)
    assert out.sent[KNEE] == pytest.approx(middle + 0.8 * half, abs=1e-6)
    assert out.mask[KNEE] == Cut.RANGE
    previous = at(KNEE, middle - 0.8 * half)
    out = limited(at(KNEE, lower), q=previous, previous=previous, bounds=TIGHT)
    assert out.sent[KNEE] == pytest.approx(middle - 0.8 * half, abs=1e-6)


def test_a_whole_soft_range_is_the_physical_range() -> None:
    np.testing.assert_array_equal(BOUNDS.soft_lower, ROBOT.lower)
    np.testing.assert_array_equal(BOUNDS.soft_upper, ROBOT.upper)


def test_range_comes_before_rate() -> None:
    """From 0.3 a target of 9 goes to the range's end first; the step is then one of 0.1."""
    out = limited(at(KNEE, 9.0), kp=ZEROS, bounds=TIGHT)
    assert out.sent[KNEE] == pytest.approx(0.4, abs=1e-6)
    assert out.mask[KNEE] == Cut.RANGE | Cut.RATE
    start = at(KNEE, 0.5)
    out = limited(at(KNEE, -9.0), kp=ZEROS, previous=start, bounds=TIGHT)
    assert out.sent[KNEE] == pytest.approx(0.4, abs=1e-6)


def test_rate_comes_before_torque() -> None:
    """The rate asks for 0.4, the torque allows 0.25 ± 0.95 · 139 / 1000 = 0.382."""
    q = at(KNEE, 0.25)
    out = limited(at(KNEE, 1.5), q=q, kp=at(KNEE, 1000.0, KP), bounds=TIGHT)
    assert out.sent[KNEE] == pytest.approx(0.25 + 0.95 * 139 / 1000, abs=1e-5)
    assert out.mask[KNEE] == Cut.RATE | Cut.TORQUE


def test_the_torque_window_may_ask_for_more_than_the_rate() -> None:
    """The joint was pushed far away: the torque limit follows it, whatever the last target was."""
    q = at(KNEE, 2.5)
    out = limited(at(KNEE, 0.3), q=q, kp=at(KNEE, 300.0, KP), bounds=TIGHT)
    assert out.sent[KNEE] == pytest.approx(2.5 - 0.95 * 139 / 300, abs=1e-5)
    assert out.mask[KNEE] == Cut.TORQUE


def test_the_physical_range_comes_last() -> None:
    """The joint is pushed past its stop; the torque window lies outside the range."""
    upper = float(ROBOT.upper[KNEE])
    out = limited(at(KNEE, upper), q=at(KNEE, upper + 1), previous=at(KNEE, upper), kp=at(KNEE, 1000.0, KP))
    assert out.sent[KNEE] == ROBOT.upper[KNEE]
    assert out.mask[KNEE] == Cut.TORQUE | Cut.PHYSICAL


@pytest.mark.parametrize("dq", [-8.0, 8.0])
def test_damping_moves_the_torque_window(dq: float) -> None:
    """target in q + (kd·dq ± m·tau) / kp"""
    kp, kd = 200.0, 5.0
    most = 0.95 * float(ROBOT.effort[WRIST])
    for end in (1, -1):
        out = limited(
            at(WRIST, end * 0.9), dq=at(WRIST, dq, ZEROS), kp=at(WRIST, kp, KP), kd=at(WRIST, kd, KD)
        )
        assert out.sent[WRIST] == pytest.approx((kd * dq + end * most) / kp, abs=1e-6)


@pytest.mark.parametrize(("kp", "cut"), [(0.0, False), (0.0009, False), (-5.0, False), (100.0, True)])
def test_a_joint_without_stiffness_is_not_torque_limited(kp: float, cut: bool) -> None:
    out = limited(at(WRIST, 0.5), dq=at(WRIST, 1e4, ZEROS), kp=at(WRIST, kp, KP), kd=at(WRIST, 10.0, KD))
    assert bool(out.mask[WRIST] & Cut.TORQUE) == cut
    if not cut:
        assert out.sent[WRIST] == np.float32(0.5)


def test_stiffness_at_the_floor_is_limited() -> None:
    out = limited(at(WRIST, 0.5), dq=at(WRIST, -1e4, ZEROS), kp=at(WRIST, 0.001, KP), kd=at(WRIST, 1.0, KD))
    assert out.mask[WRIST] & Cut.TORQUE


def test_resending_marks_every_joint() -> None:
    out = Limited()
    previous = np.linspace(-0.1, 0.1, N_JOINTS, dtype=np.float32)
    np.testing.assert_array_equal(resend(previous, out), previous)
    assert out.sent is not previous
    assert set(out.mask.tolist()) == {int(Cut.RESENT)}
    limit_target(STAND, STAND, ZEROS, KP, KD, STAND, BOUNDS, out)
    assert not out.mask.any(), "the next tick starts from a clean mask"


@pytest.mark.parametrize(
    ("values", "fit"),
    [
        (np.full(5, 2.0, np.float32), True),
        (np.full(5, -2.0, np.float32), True),
        (np.array([0, 0, 0, 0, 2.0001], np.float32), False),
        (np.array([0, 0, -2.0001, 0, 0], np.float32), False),
        (np.array([0, 0, np.nan, 0, 0], np.float32), False),
        (np.array([0, 0, 0, 0, -np.inf], np.float32), False),
        (np.zeros(4, np.float32), False),
        (np.zeros((1, 5), np.float32), False),
        (None, False),
    ],
)
def test_usable_output_is_whole_finite_and_not_absurd(values: Float32Array | None, fit: bool) -> None:
    assert usable(values, 5, 2.0) is fit


def test_an_empty_output_is_usable_where_none_is_expected() -> None:
    assert usable(np.zeros(0, np.float32), 0, 1.0)


def test_the_tally_tells_shares_and_the_largest_cut() -> None:
    tally = Tally()
    assert tally.summary() == {
        "ticks": 0,
        "resent": 0,
        "range": 0,
        "rate": 0,
        "torque": 0,
        "physical": 0,
        "largest_cut_rad": 0,
    }
    for target in (STAND, at(KNEE, 0.6), at(KNEE, 9.0), STAND):
        tally.add(target, limited(target, kp=ZEROS, bounds=TIGHT))
    out = Limited()
    resend(STAND, out)
    tally.add(np.full(N_JOINTS, np.nan, np.float32), out)
    summary = tally.summary()
    assert summary["largest_cut_rad"] == pytest.approx(8.6, abs=1e-5)
    del summary["largest_cut_rad"]
    assert summary == {"ticks": 5, "resent": 0.2, "range": 0.2, "rate": 0.4, "torque": 0, "physical": 0}
