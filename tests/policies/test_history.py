import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onboard.policies.history import FrameWindow


@given(depth=st.integers(1, 6), width=st.integers(1, 4), ticks=st.integers(1, 20), data=st.data())
def test_the_window_is_the_last_frames_oldest_first(
    depth: int, width: int, ticks: int, data: st.DataObject
) -> None:
    window = FrameWindow(depth, width)
    frames = [np.zeros(width, np.float32)] * depth
    for tick in range(ticks):
        frame = np.arange(width, dtype=np.float32) + 100 * tick
        window.present[:] = frame
        assert np.array_equal(window.flat, np.concatenate([*frames[1:], frame]))
        for age in range(depth):
            for column in range(width):
                expected = frame[column] if age == 0 else frames[depth - age][column]
                assert window.flat[window.index(age, column)] == expected
        if data.draw(st.booleans(), label="the tick counted"):
            window.advance()
            frames = [*frames[1:], frame]


def test_repeating_the_present_frame_touches_only_the_columns_given() -> None:
    window = FrameWindow(3, 2)
    window.present[:] = (7, 8)
    window.repeat_present(np.array([True, False]))
    assert window.flat.tolist() == [7, 0, 7, 0, 7, 8]


def test_clearing_forgets_everything() -> None:
    window = FrameWindow(2, 1)
    window.present[:] = 5
    window.advance()
    window.clear()
    assert window.flat.tolist() == [0, 0]
