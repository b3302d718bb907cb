import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.events import Event, bits
from onboard.configs.robot import N_JOINTS
from onboard.safety.conditions import JOINT_EVENTS, make_rules
from onboard.safety.debounce import NO_JOINT_TICKS, Ticks, count_joints, debounce, drop
from tests.safety.support import CONFIG, PERIOD_S, ROBOT

RULES = make_rules(CONFIG, ROBOT, PERIOD_S)
SPEED_ROW, PAST_ROW, NEAR_ROW = (
    JOINT_EVENTS.index(event) for event in (Event.JOINT_SPEED, Event.JOINT_PAST_LIMIT, Event.JOINT_NEAR_LIMIT)
)


def test_consecutive_ticks_count_and_a_gap_starts_anew() -> None:
    mask = bits(Event.GATEWAY_LATCHED)
    counts: Ticks = ()
    history = []
    for holds in (1, 1, 0, 1, 1, 1, 1):
        fired, counts = debounce(mask if holds else 0, mask, counts, RULES)
        history.append(fired)
    assert history == [0, 0, 0, 0, 0, mask, mask]


def test_events_outside_the_scope_keep_their_count() -> None:
    inside, outside = bits(Event.PROVIDER_OLD), bits(Event.ROLL)
    _, counts = debounce(inside | outside, inside | outside, (), RULES)
    assert dict(counts) == {Event.PROVIDER_OLD: 1, Event.ROLL: 1}
    fired, counts = debounce(inside | outside, inside, counts, RULES)
    assert fired == inside
    assert dict(counts) == {Event.PROVIDER_OLD: 2, Event.ROLL: 1}
    fired, counts = debounce(0, inside, counts, RULES)
    assert (fired, dict(counts)) == (0, {Event.ROLL: 1})


@given(st.lists(st.integers(0, (1 << 45) - 1), max_size=8), st.integers(0, (1 << 45) - 1))
def test_what_fires_held_for_its_whole_debounce(masks: list[int], scope: int) -> None:
    counts: Ticks = ()
    runs = dict.fromkeys(Event, 0)
    for mask in masks:
        fired, counts = debounce(mask, scope, counts, RULES)
        for event in Event:
            runs[event] = runs[event] + 1 if (mask & scope) >> event & 1 else 0
            assert bool(fired >> event & 1) == (runs[event] >= RULES.need[event])


def test_dropping_forgets_the_events_of_the_scope_alone() -> None:
    counts = ((int(Event.ROLL), 1), (int(Event.FALL), 2))
    assert drop(bits(Event.ROLL), counts) == ((int(Event.FALL), 2),)
    assert drop(bits(Event.ROLL), ()) == ()


def hits(*cells: tuple[int, int]) -> np.ndarray:
    matrix = np.zeros((len(JOINT_EVENTS), N_JOINTS), bool)
    for cell in cells:
        matrix[cell] = True
    return matrix


def test_no_hit_returns_the_shared_zeros() -> None:
    ticks, active, fired, joint = count_joints(hits(), NO_JOINT_TICKS + np.int16(4), RULES)
    assert ticks is NO_JOINT_TICKS
    assert (active, fired, joint) == (0, 0, None)


def test_each_joint_counts_for_itself() -> None:
    ticks = NO_JOINT_TICKS
    for joint in (3, 9, 3, 9):
        ticks, active, fired, worst = count_joints(hits((SPEED_ROW, joint)), ticks, RULES)
        assert (active, fired, worst) == (bits(Event.JOINT_SPEED), 0, None)
    for expected in (0, 0, bits(Event.JOINT_SPEED)):
        ticks, _, fired, worst = count_joints(hits((SPEED_ROW, 28), (SPEED_ROW, 4)), ticks, RULES)
        assert fired == expected
    assert worst == 4
    assert not NO_JOINT_TICKS.any()


def test_the_joint_named_is_one_of_the_most_severe_event() -> None:
    both = hits((NEAR_ROW, 1), (PAST_ROW, 7), (NEAR_ROW, 7))
    ticks = NO_JOINT_TICKS
    for tick in range(5):
        ticks, _, fired, joint = count_joints(both, ticks, RULES)
        assert joint == (1 if tick < 4 else 7)
    assert fired == bits(Event.JOINT_NEAR_LIMIT, Event.JOINT_PAST_LIMIT)


def test_counting_stops_before_it_overflows() -> None:
    ticks = np.full_like(NO_JOINT_TICKS, 29_999)
    for _ in range(3):
        ticks, _, fired, _ = count_joints(hits((SPEED_ROW, 0)), ticks, RULES)
        assert fired
    assert ticks[SPEED_ROW, 0] == 30_000
