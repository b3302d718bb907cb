"""Contact labels and phases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onboard.logging.preprocess.contact import (
    Phase,
    Support,
    contact_from_force,
    foot_phases,
    robot_phase,
    support,
)

F, S, T, L, U = Phase.FLIGHT, Phase.STANCE, Phase.TOUCHDOWN, Phase.LIFT_OFF, Phase.UNKNOWN


def one_foot(flags: list[int], buffer: int = 1, linked: list[bool] | None = None) -> list[int]:
    contact = np.array(flags, np.int8)[:, None]
    phases = foot_phases(contact, buffer, None if linked is None else np.array(linked))
    return [int(phase) for phase in phases[:, 0]]


def test_more_than_ten_newtons_is_contact() -> None:
    assert contact_from_force(np.array([[9.9, 10.1], [np.nan, 10.0]])).tolist() == [[0, 1], [-1, 0]]


def test_changes_own_the_rows_around_them() -> None:
    assert one_foot([0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0]) == [F, F, T, T, T, S, S, L, L, L, F]
    assert one_foot([0, 0, 1, 1], buffer=0) == [F, F, T, S]


def test_between_two_changes_the_nearer_wins() -> None:
    assert one_foot([0, 0, 1, 1, 1, 0, 0], buffer=2) == [T, T, T, T, L, L, L]


def test_a_change_across_a_break_is_none() -> None:
    assert one_foot([0, 0, 1, 1], linked=[True, False, True]) == [F, F, S, S]
    assert one_foot([0, 1, 1, 1], linked=[True, False, True]) == [T, T, S, S]


def test_unknown_stays_unknown() -> None:
    assert one_foot([0, -1, 1, 1]) == [F, U, S, S]
    assert one_foot([0, 1, -1, 1]) == [T, T, U, S]


def test_robot_is_in_the_most_eventful_phase_of_its_feet() -> None:
    feet = np.array([[F, F], [S, F], [L, S], [L, T], [U, T]], np.int8)
    assert robot_phase(feet).tolist() == [F, S, L, T, U]


def test_support_names_the_loaded_feet() -> None:
    contact = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [-1, 1]], np.int8)
    assert support(contact).tolist() == [
        Support.NONE,
        Support.LEFT,
        Support.RIGHT,
        Support.BOTH,
        Support.UNKNOWN,
    ]


@pytest.mark.parametrize("n", [0, 1])
def test_too_short_for_a_change(n: int) -> None:
    assert foot_phases(np.ones((n, 2), np.int8)).tolist() == [[S, S]] * n


@given(
    contact=hnp.arrays(np.int8, st.tuples(st.integers(2, 40), st.just(2)), elements=st.integers(-1, 1)),
    buffer=st.integers(0, 4),
    data=st.data(),
)
def test_phases_against_a_row_by_row_reference(contact: np.ndarray, buffer: int, data: st.DataObject) -> None:
    n = len(contact)
    linked = np.array(data.draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1)), bool)
    found = foot_phases(contact, buffer, linked)
    for foot in range(2):
        for row in range(n):
            assert found[row, foot] == _reference(contact[:, foot].tolist(), linked.tolist(), buffer, row)


def _reference(flags: list[int], linked: list[bool], buffer: int, row: int) -> int:
    if flags[row] < 0:
        return int(U)
    best = (buffer + 1.0, int(S if flags[row] else F))
    for k in range(1, len(flags)):
        change = (flags[k - 1], flags[k])
        if not linked[k - 1] or change not in {(0, 1), (1, 0)}:
            continue
        between = range(min(k, row), max(k, row))
        if not all(linked[j] for j in between):
            continue
        order = 0 if change == (0, 1) else 1
        best = min(best, (abs(row - k) + order * 1e-9, int(T if order == 0 else L)))
    return best[1] if best[0] < buffer + 0.5 else int(S if flags[row] else F)
