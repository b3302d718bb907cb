"""The picture of a rollout: drawn from any rollout, a real PNG, nothing else touched."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onboard.configs.errors import RolloutError
from onboard.configs.events import Mode
from onboard.logging.convert import convert
from tests.logging.synthetic import journal, rows

plots = pytest.importorskip("onboard.analysis.plots", exc_type=ModuleNotFoundError)


def pixels(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    image: np.ndarray = imread(path)
    return image


def test_whole_run_becomes_a_picture(tmp_path: Path) -> None:
    out = plots.plot_rollout(convert(journal(tmp_path, rows())), tmp_path / "plot.png")
    image = pixels(out)
    assert image.shape[0] > 1000
    assert image.shape[1] > 1800
    inked = np.any(image[..., :3] < 0.97, axis=-1)
    top, bottom = np.array_split(inked, 2)
    for part in (*np.array_split(top, 2, axis=1), *np.array_split(bottom, 2, axis=1)):
        assert 0.05 < part.mean() < 0.95, "every quarter of the page is drawn on, none is blotted out"


def test_unknown_estimates_and_a_run_without_policy_are_drawn_too(tmp_path: Path) -> None:
    data = rows(phases=((30, Mode.DAMP), (40, Mode.RAMP)))
    data["base_velocity"] = np.nan
    data["torso_gyro"] = np.nan
    path = convert(journal(tmp_path, data))
    assert plots.plot_rollout(path, tmp_path / "plot.png").stat().st_size > 20_000


def test_two_rows_are_enough_and_one_is_refused(tmp_path: Path) -> None:
    paths = {}
    for count in (1, 2):
        folder = tmp_path / str(count)
        folder.mkdir()
        paths[count] = journal(folder, rows()[:count])
    assert plots.plot_rollout(paths[2], tmp_path / "two.png").exists()
    with pytest.raises(RolloutError, match="has 1 rows, nothing to draw"):
        plots.plot_rollout(paths[1], tmp_path / "one.png")


def test_folder_that_does_not_exist_is_one_clear_line(tmp_path: Path) -> None:
    path = journal(tmp_path, rows()[:10])
    with pytest.raises(RolloutError, match=r"the plot can't be written .*; give --out FILE"):
        plots.plot_rollout(path, tmp_path / "none" / "plot.png")


def test_reading_rollouts_imports_no_plotting() -> None:
    modules = "onboard.logging.rollout, onboard.logging.recorder, onboard.logging.summary, onboard.cli.log"
    script = (
        f"import sys, {modules}\n"
        "print({'matplotlib', 'scipy', 'mujoco'} & {name.partition('.')[0] for name in sys.modules})"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
