"""Logs of other tools, and rollouts."""

from pathlib import Path

import numpy as np
import pytest

from onboard.analysis.fit.reading import load_gains, read_trajectories
from onboard.analysis.fit.trajectory import Float64Array
from onboard.configs.errors import ConfigError, RolloutError
from onboard.logging.rollout import Rollout
from tests.analysis.fit.bench import ROBOT, write
from tests.logging.export.recorded import FADE_ROWS, KP, POLICY_START
from tests.logging.export.recorded import write as write_rollout

Arrays = dict[str, Float64Array]


def test_an_npz_is_read_as_it_is(logs: tuple[Path, Path], weak: tuple[Arrays, Arrays]) -> None:
    (found,) = read_trajectories(logs[0], ROBOT)
    np.testing.assert_array_equal(found.target, weak[0]["target"])
    np.testing.assert_array_equal(found.kp, weak[0]["kp"])
    assert len(found.sha256) == 64


def test_a_log_at_another_rate_is_brought_to_the_control_grid(
    tmp_path: Path, weak: tuple[Arrays, Arrays]
) -> None:
    fast = {name: c.repeat(4, axis=0) if c.ndim == 2 else c for name, c in weak[0].items()}
    fast["t"] = np.linspace(0.0, 0.005 * (len(fast["q"]) - 1), len(fast["q"]))
    (found,) = read_trajectories(write(tmp_path / "fast.npz", fast), ROBOT)
    assert np.diff(found.t_s) == pytest.approx(0.02)
    np.testing.assert_allclose(found.target, weak[0]["target"])
    np.testing.assert_allclose(found.q, weak[0]["q"])


def test_a_log_is_cut_where_rows_are_missing_and_nothing_is_made_up_between(
    tmp_path: Path, weak: tuple[Arrays, Arrays]
) -> None:
    rows = len(weak[0]["t"])
    late = {**weak[0], "t": weak[0]["t"] + 1e9 * (np.arange(rows) >= rows // 2)}
    first, second = read_trajectories(write(tmp_path / "late.npz", late), ROBOT)
    assert (first.rows, second.rows) == (rows // 2, rows - rows // 2)
    np.testing.assert_array_equal(second.q, weak[0]["q"][rows // 2 :])
    short = {**weak[0], "t": weak[0]["t"] + 1e9 * (np.arange(rows) // 40)}
    with pytest.raises(RolloutError, match="no stretch of 1 s"):
        read_trajectories(write(tmp_path / "short.npz", short), ROBOT)


def test_a_row_that_is_missing_shifts_nothing(tmp_path: Path, weak: tuple[Arrays, Arrays]) -> None:
    kept = np.arange(len(weak[0]["t"])) != 30
    holed = {name: values[kept] if len(values) == len(kept) else values for name, values in weak[0].items()}
    (found,) = read_trajectories(write(tmp_path / "holed.npz", holed), ROBOT)
    assert np.diff(found.t_s) == pytest.approx(0.02)
    np.testing.assert_allclose(found.q[31:], weak[0]["q"][31 : 31 + len(found.q[31:])], atol=1e-9)


def test_stretches_are_cut_where_gains_change(tmp_path: Path, weak: tuple[Arrays, Arrays]) -> None:
    kp = np.tile(weak[0]["kp"], (100, 1))
    kp[:20] *= np.linspace(0, 0.9, 20)[:, None]
    (found,) = read_trajectories(write(tmp_path / "ramp.npz", {**weak[0], "kp": kp}), ROBOT)
    np.testing.assert_array_equal(found.q, weak[0]["q"][20:])


def test_gains_can_come_from_a_file(tmp_path: Path, weak: tuple[Arrays, Arrays]) -> None:
    bare = write(tmp_path / "bare.npz", {k: v for k, v in weak[0].items() if k not in ("kp", "kd")})
    with pytest.raises(RolloutError, match="give --gains"):
        read_trajectories(bare, ROBOT)
    file = tmp_path / "gains.yaml"
    file.write_text("kp: {'*': 20, left_knee_joint: 99}\nkd: {'*': 2}\n")
    (found,) = read_trajectories(bare, ROBOT, load_gains(file, ROBOT))
    assert (found.kp[3], found.kp[4], found.kd[4]) == (99, 20, 2)
    file.write_text("kp: {knee: 99}\nkd: {'*': 2}\n")
    with pytest.raises(ConfigError, match="'knee' matches no joint"):
        load_gains(file, ROBOT)


def test_a_rollout_gives_its_policy_stretch_with_the_gains_of_its_contract(tmp_path: Path) -> None:
    path = write_rollout(tmp_path / "run")
    (found,) = read_trajectories(path, ROBOT)
    assert set(found.kp.tolist()) == set(KP)
    with Rollout(path) as rollout:
        sent = rollout.column("action_sent")[POLICY_START + FADE_ROWS :][: found.rows]
    np.testing.assert_array_equal(found.target, sent)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": None}, "lacks q"),
        ({"q": np.zeros((100, 23))}, r"'q' has shape \(100, 23\), expected \(100, 29\)"),
        ({"t": np.zeros(100)}, "'t' must rise"),
        ({"gyro": np.full((100, 3), np.nan)}, "not finite"),
        ({"joint_names": np.array(["a"] * 29)}, "joint_names differ"),
    ],
)
def test_what_does_not_fit_is_named(
    change: dict[str, np.ndarray | None], message: str, tmp_path: Path, weak: tuple[Arrays, Arrays]
) -> None:
    columns = {name: value for name, value in {**weak[0], **change}.items() if value is not None}
    with pytest.raises(RolloutError, match=message):
        read_trajectories(write(tmp_path / "odd.npz", columns), ROBOT)


def test_pickles_inside_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "pickled.npz"
    np.savez(path, t=np.array([{}], dtype=object))
    with pytest.raises(RolloutError, match="not an npz of plain arrays"):
        read_trajectories(path, ROBOT)
