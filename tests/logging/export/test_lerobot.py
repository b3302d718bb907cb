"""LeRobot dataset, read as LeRobot 0.4.4 and 0.6.1 read it (both: format v3.0).

LeRobot itself needs torch, which the tests do not install. Its loader (`lerobot.datasets`) does no more than
this: `meta/info.json` with the version, the rate and the features; `meta/tasks.parquet` by pandas, the task's
text as the row's label; `meta/stats.json` as arrays; every `meta/episodes/*/*.parquet`; every
`data/*/*.parquet` in the order of their names, cast to the types and lengths of the features; then rows by
index, and neighbours clamped to `dataset_from_index ... dataset_to_index` of the row's episode. `load` below
does the same with pyarrow and pandas. Where LeRobot is installed the last test runs its own code.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pd_files
import pytest

from onboard.configs.errors import ConfigError, RolloutError
from onboard.logging.export import lerobot
from onboard.logging.export.clips import Cut, clips
from onboard.logging.export.formats import Wish, export
from onboard.logging.export.lerobot_stats import feature_stats, merge_stats
from onboard.logging.preprocess.clock import align
from onboard.logging.preprocess.pipeline import Step
from onboard.logging.rollout import Rollout
from tests.logging.export.recorded import NAMES, POLICY_START, data, run_info, write

LENGTHS = [300, 150, 150]
"""Frames of the episodes: a whole walk, and one with a gap in the middle."""


class Loaded(NamedTuple):
    """What LeRobot holds after loading."""

    info: dict[str, Any]
    tasks: pd.DataFrame
    stats: dict[str, dict[str, np.ndarray]]
    episodes: list[dict[str, Any]]
    frames: pa.Table


def load(root: Path) -> Loaded:
    info = json.loads((root / "meta/info.json").read_text())
    stats = json.loads((root / "meta/stats.json").read_text())
    episodes = pd_files.dataset(sorted((root / "meta/episodes").glob("*/*.parquet"))).to_table()
    frames = pd_files.dataset(sorted((root / "data").glob("*/*.parquet"))).to_table()
    schema = pa.schema([(name, arrow_type(feature)) for name, feature in info["features"].items()])
    return Loaded(
        info,
        pd.read_parquet(root / "meta/tasks.parquet"),
        {name: {key: np.array(value) for key, value in each.items()} for name, each in stats.items()},
        episodes.to_pylist(),
        frames.select(schema.names).cast(schema),
    )


def arrow_type(feature: dict[str, Any]) -> pa.DataType:
    """As `get_hf_features_from_features`: a value for shape (1,), a list of that length for others."""
    kind = {"float32": pa.float32(), "float64": pa.float64(), "int8": pa.int8()}
    scalar = {**kind, "int64": pa.int64(), "bool": pa.bool_()}[feature["dtype"]]
    (length,) = feature["shape"]
    return scalar if length == 1 else pa.list_(scalar, length)


def matrix(loaded: Loaded, name: str) -> np.ndarray:
    return np.array(loaded.frames[name].to_pylist())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sources")
    broken = data(pose=False)
    broken["tick"][-200:] += 5
    second = write(folder / "broken", broken)
    renamed = second.rename(second.with_name("broken.h5"))
    return [write(folder / "whole"), renamed]


@pytest.fixture(scope="module")
def root(sources: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dataset") / "walks"
    made = export(sources, "lerobot", root, Wish())
    assert (made.stretches, made.rows, made.files) == (3, sum(LENGTHS), [str(root)])
    assert made.missing == []
    return root


def test_info_says_what_is_there(root: Path) -> None:
    info = load(root).info
    assert (info["codebase_version"], info["fps"], info["robot_type"]) == ("v3.0", 50, "g1_29dof")
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (3, 600, 1)
    assert info["splits"] == {"train": "0:3"}
    assert info["features"]["action"]["names"] == [f"{name}.q" for name in NAMES]
    state = info["features"]["observation.state"]
    assert state["shape"] == [len(state["names"])] == [29 + 29 + 4 + 3 + 8]
    policies_see = [name for name in info["features"] if name.startswith(("observation", "action"))]
    assert policies_see == ["observation.state", "action"]


def test_frames_hold_the_state_and_the_target_computed_from_it(root: Path) -> None:
    loaded, table = load(root), data()[POLICY_START : POLICY_START + 300]
    names = loaded.info["features"]["observation.state"]["names"]
    state = matrix(loaded, "observation.state")[:300]
    for slot, name in enumerate(NAMES):
        np.testing.assert_allclose(state[:, names.index(f"{name}.q")], table["q"][:, slot])
        np.testing.assert_allclose(state[:, names.index(f"{name}.dq")], table["dq"][:, slot])
    np.testing.assert_allclose(state[:, names.index("imu.quat.w")], table["quat_wxyz"][:, 0])
    np.testing.assert_allclose(state[:, names.index("imu.gyro.z")], table["gyro_body"][:, 2])
    np.testing.assert_allclose(state[:, names.index("command.wz")], table["command"][:, 2])
    np.testing.assert_allclose(matrix(loaded, "action")[:300], table["action_sent"])
    np.testing.assert_array_equal(matrix(loaded, "tick")[:300], table["tick"])


def test_episodes_end_where_the_rollout_breaks(root: Path) -> None:
    loaded = load(root)
    assert [each["length"] for each in loaded.episodes] == LENGTHS
    bounds = [(each["dataset_from_index"], each["dataset_to_index"]) for each in loaded.episodes]
    assert bounds == [(0, 300), (300, 450), (450, 600)]
    done = matrix(loaded, "next.done")
    assert np.flatnonzero(done).tolist() == [299, 449, 599]
    np.testing.assert_array_equal(matrix(loaded, "episode_index"), np.repeat(range(3), LENGTHS))
    np.testing.assert_array_equal(matrix(loaded, "index"), range(600))
    frame = np.concatenate([np.arange(length) for length in LENGTHS])
    np.testing.assert_array_equal(matrix(loaded, "frame_index"), frame)
    np.testing.assert_allclose(matrix(loaded, "timestamp"), frame / 50, atol=1e-4)
    for each in loaded.episodes:
        path = loaded.info["data_path"].format(
            chunk_index=each["data/chunk_index"], file_index=each["data/file_index"]
        )
        assert each["episode_index"] in pd.read_parquet(root / path)["episode_index"].tolist()
        assert (each["meta/episodes/chunk_index"], each["meta/episodes/file_index"]) == (0, 0)


def test_tasks_are_found_by_their_text(sources: list[Path], tmp_path: Path) -> None:
    noted = write(tmp_path / "noted", info=msgspec.structs.replace(run_info(), note="over the cable"))
    export([*sources, noted], "lerobot", tmp_path / "set", Wish())
    loaded = load(tmp_path / "set")
    assert loaded.tasks.index.tolist() == ["walk", "walk: over the cable"]
    assert int(loaded.tasks.loc["walk: over the cable"].task_index) == 1
    texts = [
        loaded.tasks.iloc[k].name for k in (loaded.frames["task_index"][row].as_py() for row in (0, 700))
    ]
    assert texts == ["walk", "walk: over the cable"]
    assert loaded.episodes[3]["tasks"] == ["walk: over the cable"]


def test_statistics_are_those_of_the_frames(root: Path) -> None:
    loaded = load(root)
    assert set(loaded.stats) == set(loaded.info["features"])
    for name, found in loaded.stats.items():
        values = matrix(loaded, name).reshape(600, -1).astype(float)
        assert found["count"].tolist() == [600]
        for key, wanted in {"min": values.min(0), "max": values.max(0), "mean": values.mean(0)}.items():
            np.testing.assert_allclose(found[key], wanted, rtol=1e-5, atol=1e-6, err_msg=f"{name} {key}")
        np.testing.assert_allclose(found["std"], values.std(0), rtol=1e-4, atol=1e-6, err_msg=name)
        assert all((found["q01"] <= found["q50"]) & (found["q50"] <= found["q99"]))
    assert {f"stats/action/{key}" for key in loaded.stats["action"]} <= set(loaded.episodes[0])


def test_merged_statistics_are_weighted_by_length() -> None:
    values = np.random.default_rng(1).normal(size=(400, 3))
    merged = merge_stats([feature_stats(values[:100]), feature_stats(values[100:])])
    whole = feature_stats(values)
    for key in ("min", "max", "mean", "std", "count"):
        np.testing.assert_allclose(merged[key], whole[key])
    np.testing.assert_allclose(merged["q50"], whole["q50"], atol=0.1)


def test_large_sets_go_into_several_files(
    sources: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lerobot, "FILE_MB", 0)
    monkeypatch.setattr(lerobot, "CHUNK_FILES", 2)
    export(sources, "lerobot", tmp_path / "set", Wish())
    loaded = load(tmp_path / "set")
    places = [(each["data/chunk_index"], each["data/file_index"]) for each in loaded.episodes]
    assert places == [(0, 0), (0, 1), (1, 0)]
    np.testing.assert_array_equal(matrix(loaded, "index"), range(600))


def test_preprocessing_and_origin_stand_beside_the_dataset(sources: list[Path], tmp_path: Path) -> None:
    export(sources, "lerobot", tmp_path / "set", Wish(Cut(steps=[Step(align)])))
    episodes = json.loads((tmp_path / "set/meta/onboard.json").read_text())["episodes"]
    assert [each["source"] for each in episodes] == [sources[0].name, "broken.h5", "broken.h5"]
    assert all(each["preprocessing"][0]["step"] == "align" for each in episodes)


def test_contact_that_was_never_known_is_marked(tmp_path: Path) -> None:
    blind = data()
    blind["contact"] = -1
    made = export([write(tmp_path / "blind", blind)], "lerobot", tmp_path / "set", Wish())
    assert made.missing == ["contact"]
    assert (matrix(load(tmp_path / "set"), "contact") == -1).all()


def test_a_folder_that_is_not_empty_is_left_alone(sources: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not an empty folder"):
        export(sources, "lerobot", tmp_path, Wish())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failed_export_leaves_nothing(sources: list[Path], tmp_path: Path) -> None:
    with Rollout(sources[0]) as rollout:
        (clip,) = clips(rollout, Cut())
    with pytest.raises(RolloutError, match="one robot at one rate"):
        lerobot.export([clip, dataclasses.replace(clip, period_s=0.01)], tmp_path / "set")
    assert list(tmp_path.iterdir()) == []


def test_lerobot_itself_loads_it(root: Path) -> None:
    package = pytest.importorskip(
        "lerobot.datasets.lerobot_dataset", reason="LeRobot (with torch) is not installed"
    )
    window = {"action": [0.0, 0.02], "observation.state": [-0.02, 0.0]}
    dataset = package.LeRobotDataset("local/walks", root=root, delta_timestamps=window)
    assert (len(dataset), dataset.num_episodes, dataset.fps) == (600, 3, 50)
    table = data()[POLICY_START : POLICY_START + 300]
    last = dataset[299]
    np.testing.assert_allclose(last["action"][0].numpy(), table["action_sent"][299])
    assert last["action_is_pad"].tolist() == [False, True], "the next frame is another episode's"
    np.testing.assert_allclose(last["observation.state"][0, :29].numpy(), table["q"][298])
    assert (bool(last["next.done"]), last["task"]) == (True, "walk")
    second = package.LeRobotDataset("local/walks", root=root, episodes=[1])
    assert (len(second), int(second[0]["index"])) == (150, 300)
