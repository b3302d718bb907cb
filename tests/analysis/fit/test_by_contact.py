"""Phases of a log, and what is refused; the fit itself is tested through the verb (tests/cli)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onboard.analysis.fit.by_contact import Together
from onboard.analysis.fit.fit import Wish
from onboard.analysis.fit.free import free_model, on_the_floor
from onboard.analysis.fit.knobs import Parameters, Settings, nominal_settings
from onboard.analysis.fit.phases import STRIDE_ROWS, WINDOW_ROWS, gather_phases, windows
from onboard.analysis.fit.shooting import Shooter
from onboard.analysis.fit.solve import Target, Tuned
from onboard.analysis.fit.trajectory import Float64Array, Trajectory
from onboard.configs.errors import RolloutError
from onboard.logging.preprocess.contact import Support
from tests.analysis.fit.bench import FIRST, ROBOT, SECOND, record, still, trajectory, write
from tests.analysis.fit.stands import ANKLE, LEAD, ROWS, SLOT, stands

Arrays = dict[str, Float64Array]
FREE = free_model(ROBOT)


@pytest.fixture(scope="module")
def standing() -> Arrays:
    return stands({}, seed=1, moments=2)


@pytest.fixture(scope="module")
def hanging() -> Arrays:
    """A bench run that knows that no foot stands."""
    arrays = record(FIRST, ())
    return {**arrays, "contact": np.zeros((len(arrays["t"]), 2))}


def walked(arrays: Arrays) -> Trajectory:
    contact = arrays["contact"].astype(np.int8)
    return replace(trajectory(arrays), base_velocity=arrays["base_velocity"], contact=contact)


def with_contact(flags: list[tuple[int, int]]) -> Trajectory:
    rows = len(flags)
    return replace(still(rows), contact=np.array(flags, np.int8), base_velocity=np.zeros((rows, 3)))


def test_windows_lie_within_one_phase_and_away_from_its_ends() -> None:
    log = with_contact([(1, 1)] * 20 + [(1, 0)] * 30 + [(1, 1)] * 3 + [(0, 1)] * 30)
    starts = [int(window.target[window.first, 0]) for window in windows(log, Support.LEFT)]
    # The rows of the change at 20 and the two that follow belong to the lift-off, as those from 48 on.
    assert starts == [23, 27, 31, 35, 39]
    assert all(window.rows == WINDOW_ROWS + 1 for window in windows(log, Support.RIGHT))
    assert STRIDE_ROWS < WINDOW_ROWS


def test_windows_need_a_known_contact_and_velocity() -> None:
    log = with_contact([(1, 1)] * 30)
    assert len(windows(log, Support.BOTH)) == 6
    assert not windows(log, Support.LEFT)
    unknown = log.contact.copy()
    unknown[12] = -1
    assert len(windows(replace(log, contact=unknown), Support.BOTH)) < 6
    nowhere = np.full((30, 3), np.nan)
    assert not windows(replace(log, base_velocity=nowhere), Support.BOTH)


def test_the_nominal_robot_stays_on_its_recording_for_a_window(standing: Arrays) -> None:
    found = [
        w for feet in (Support.LEFT, Support.RIGHT, Support.BOTH) for w in windows(walked(standing), feet)
    ]
    assert len(found) == 3 * 2 * len(range(LEAD, ROWS - WINDOW_ROWS, STRIDE_ROWS))
    with Shooter(FREE, found) as shooter:
        errors = Target(shooter, np.arange(12)).errors(nominal_settings(1, 29))
    assert np.degrees(np.abs(errors).max()) < 0.2


def test_a_pelvis_starts_with_a_sole_on_the_floor_and_moves_as_in_its_own_frame() -> None:
    half = np.sqrt(0.5)
    turned_left = np.array([[half, 0.0, 0.0, half]])
    pose, motion = on_the_floor(
        FREE, np.zeros((1, 29)), turned_left, np.array([[0.1, 0.2, 0.3]]), np.array([[1.0, 0.0, 0.5]])
    )
    assert 0.7 < pose[0, 2] < 0.85
    np.testing.assert_allclose(motion[0], [0.0, 1.0, 0.5, 0.1, 0.2, 0.3], atol=1e-9)


def test_phases_fitted_together_are_simulated_once_for_each_different_point(
    monkeypatch: pytest.MonkeyPatch, standing: Arrays
) -> None:
    parameters = Parameters(("a", "b"), [SLOT], 29, latency=True)
    feet = (Support.LEFT, Support.BOTH)
    one, other = (Shooter(FREE, windows(walked(standing), each)[:1]) for each in feet)
    asked: list[int] = []
    simulate = Shooter.simulate

    def counting(self: Shooter, settings: Settings) -> Float64Array:
        asked.append(len(settings.latency_s))
        return simulate(self, settings)

    monkeypatch.setattr(Shooter, "simulate", counting)
    with one, other:
        problems = [Tuned(Target(shooter, np.array([SLOT])), parameters) for shooter in (one, other)]
        together = Together(problems, [np.array([0, 1, 4]), np.array([2, 3, 4])])
        points = 0.1 * np.eye(5)
        errors = together.residual(points)
        # Its own two numbers, the latency, and one point for all at which only the other's differ.
        assert asked == [4, 4]
        assert errors.shape == (together.size, 5)
        for k in range(5):
            np.testing.assert_array_equal(errors[:, [k]], together.residual(points[:, [k]]))


Change = Callable[[Arrays, Arrays], tuple[Arrays, Arrays]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, s: (h, without(s, "contact")), "its contact is not known in any row"),
        (lambda h, s: (h, without(s, "base_velocity")), "its base velocity is not known in any row"),
        (lambda h, s: (h, s), r"phase left: \d windows of 0.16 s to fit \(stand.npz\), expected at least 10"),
        (lambda h, s: (s, s), "phase flight: no log of a hanging robot"),
        (lambda h, s: (h, h), "phase left: 0 windows of 0.16 s to fit .no log of a robot on the ground"),
        (lambda h, s: (h | {"target": 0 * h["target"]}, s), "phase flight: .*no joint to fit has a target"),
    ],
)
def test_what_can_not_be_fitted_is_refused_in_one_line(
    change: Change, message: str, hanging: Arrays, standing: Arrays, tmp_path: Path
) -> None:
    logs = tuple(
        write(tmp_path / f"{name}.npz", arrays)
        for name, arrays in zip(("hang", "stand"), change(hanging, standing), strict=True)
    )
    with pytest.raises(RolloutError, match=message) as error:
        gather_phases(Wish(logs, joints=(ANKLE,)), ROBOT)
    assert "\n" not in str(error.value)


def without(arrays: Arrays, name: str) -> Arrays:
    return {key: value for key, value in arrays.items() if key != name}


def test_of_each_kind_the_last_log_is_held_out(hanging: Arrays, tmp_path: Path) -> None:
    other = record(SECOND, ())
    walks = [stands({}, seed, moments=5) for seed in (1, 2)]
    logs = [
        write(tmp_path / "bench_a.npz", hanging),
        write(tmp_path / "walk_a.npz", walks[0]),
        write(tmp_path / "bench_b.npz", {**other, "contact": np.zeros((len(other["t"]), 2))}),
        write(tmp_path / "walk_b.npz", walks[1]),
    ]
    data = gather_phases(Wish(tuple(logs), joints=(ANKLE,)), ROBOT)
    assert list(data) == ["flight", "left", "right", "both"]
    assert list(data["flight"].files) == ["bench_a.npz"]
    assert list(data["flight"].held_out_files) == ["bench_b.npz"]
    assert all(list(data[phase].files) == ["walk_a.npz"] for phase in ("left", "right", "both"))
    assert all(list(data[phase].held_out_files) == ["walk_b.npz"] for phase in ("left", "right", "both"))
    split = gather_phases(Wish((*logs[:2], logs[3]), joints=(ANKLE,)), ROBOT)
    assert split["flight"].files == split["flight"].held_out_files
    assert split["flight"].fitted[0].t_s[-1] <= split["flight"].held_out[0].t_s[-1]
