"""LeRobot dataset, format v3.0: a folder for `LeRobotDataset(NAME, root=FOLDER)` of LeRobot 0.4 and later.

Every stretch is an episode; frame k holds a state and the target that was computed from it:

- `observation.state` float32: joint positions (29, rad) and velocities (29, rad/s) in SDK motor order,
  pelvis IMU orientation (w x y z) and angular velocity (3, rad/s, body frame), the operator's command (8);
- `action` float32 (29): joint positions that reached the motors, rad, after residual and limits;
- `next.done`: True in an episode's last frame.

Further features, which LeRobot's policies leave alone: `tau_est`, `contact`, `time_s` (the robot's clock;
`timestamp` is the grid k/fps, as LeRobot wants it) and `tick` (of the rollout's row). The task is
"policy: note". `meta/onboard.json` says for every episode where it comes from and what preprocessing did.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onboard.configs.errors import ConfigError, RolloutError
from onboard.logging.export.clips import Clip
from onboard.logging.export.lerobot_stats import Stats, feature_stats, merge_stats
from onboard.logging.export.parquet import list_array
from onboard.logging.layout import COMMAND_FIELDS

VERSION = "v3.0"
CHUNK_FILES = 1000
"""Data files a folder."""
FILE_MB = 100
"""Uncompressed MB after which the next data file begins."""
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"

INDEX_FEATURES = {
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
"""Scalars that every LeRobot dataset has."""


class Dataset:
    """Writes episodes one after the other; memory does not grow with them.

    Args:
        folder: of the new dataset.
        joint_names: (29,) of every clip.
        robot: its name.
        fps: whole rows a second.

    Attributes:
        rows: written so far.
        contact_known: in any of them; -1 stands where it is not.
    """

    def __init__(self, folder: Path, joint_names: tuple[str, ...], robot: str, fps: int) -> None:
        self._folder, self._robot, self.fps = folder, robot, fps
        self.joint_names = joint_names
        self.rows = 0
        self.contact_known = False
        self._tasks: dict[str, int] = {}
        self._episodes: list[dict[str, Any]] = []
        self._accounts: list[dict[str, Any]] = []
        self._stats: dict[str, list[Stats]] = {}
        self._features = features(joint_names)
        self._writer: pq.ParquetWriter | None = None
        self._file_bytes = 0
        self._file = 0

    def add(self, clip: Clip) -> None:
        """Append one episode."""
        number, rows = len(self._episodes), len(clip)
        task = self._tasks.setdefault(_task(clip), len(self._tasks))
        columns = {**_numbers(clip, self.fps), **_indices(number, rows, self.rows, task)}
        table = pa.table({name: list_array(columns[name]) for name in self._features})
        self._write(table)
        stats = {name: feature_stats(values) for name, values in columns.items()}
        self._episodes.append(
            {
                "episode_index": number,
                "tasks": [_task(clip)],
                "length": rows,
                "dataset_from_index": self.rows,
                "dataset_to_index": self.rows + rows,
                "data/chunk_index": self._file // CHUNK_FILES,
                "data/file_index": self._file % CHUNK_FILES,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
                **{f"stats/{name}/{key}": v for name, found in stats.items() for key, v in found.items()},
            }
        )
        for name, found in stats.items():
            self._stats.setdefault(name, []).append(found)
        self._accounts.append(json.loads(clip.account(arm=int(clip.track["arm"][0]))))
        self.rows += rows
        self.contact_known |= bool((columns["contact"] >= 0).any())

    def finish(self) -> None:
        """Write what is known only at the end."""
        self._close_file()
        meta = self._folder / "meta"
        episodes = self._folder / "meta/episodes" / FILE.format(chunk_index=0, file_index=0)
        episodes.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(self._episodes), episodes)
        pq.write_table(_task_table(self._tasks), meta / "tasks.parquet")
        _write_json(meta / "stats.json", {name: merge_stats(each) for name, each in self._stats.items()})
        _write_json(meta / "info.json", self._info())
        about = {"joint_names": self.joint_names, "episodes": self._accounts}
        _write_json(meta / "onboard.json", about)

    def _write(self, table: pa.Table) -> None:
        """One row group an episode, in the present file or the next."""
        if self._writer is not None and self._file_bytes + table.nbytes > FILE_MB << 20:
            self._close_file()
            self._file += 1
        if self._writer is None:
            index = {"chunk_index": self._file // CHUNK_FILES, "file_index": self._file % CHUNK_FILES}
            path = self._folder / "data" / FILE.format(**index)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer, self._file_bytes = pq.ParquetWriter(path, table.schema), 0
        self._writer.write_table(table, row_group_size=len(table))
        self._file_bytes += table.nbytes

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _info(self) -> dict[str, Any]:
        return {
            "codebase_version": VERSION,
            "robot_type": self._robot,
            "total_episodes": len(self._episodes),
            "total_frames": self.rows,
            "total_tasks": len(self._tasks),
            "chunks_size": CHUNK_FILES,
            "data_files_size_in_mb": FILE_MB,
            "video_files_size_in_mb": 200,
            "fps": self.fps,
            "splits": {"train": f"0:{len(self._episodes)}"},
            "data_path": f"data/{FILE}",
            "video_path": None,
            "features": self._features,
        }


def export(clips: Iterable[Clip], folder: Path) -> tuple[Dataset, dict[str, list[dict[str, Any]]]]:
    """Write a dataset; the folder appears whole or not at all.

    Args:
        clips: at least one, all of one robot and rate.
        folder: new or empty.

    Returns:
        What was written, and what preprocessing did to each clip.

    Raises:
        ConfigError: the folder holds something.
        RolloutError: clips of different robots or rates, or the disk refuses.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"--out {folder}: exists and is not an empty folder; name a new one")
    aside = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    done, dataset = {}, None
    try:
        for clip in clips:
            dataset = dataset or Dataset(aside, clip.joint_names, clip.robot, _fps(clip))
            _check(clip, dataset)
            dataset.add(clip)
            done[clip.name] = clip.done
        assert dataset is not None, "clips are never none at all"
        dataset.finish()
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside.replace(folder)
    except OSError as error:
        raise RolloutError(
            f"{folder}: can't be written ({error.strerror or error}); name another --out"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return dataset, done


def features(joint_names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Columns of the data files with types, shapes and names, as `info.json` holds them."""
    state = [f"{joint}.{what}" for what in ("q", "dq") for joint in joint_names]
    state += [f"imu.quat.{axis}" for axis in "wxyz"] + [f"imu.gyro.{axis}" for axis in "xyz"]
    state += [f"command.{name}" for name in COMMAND_FIELDS]
    vectors = {
        "observation.state": ("float32", state),
        "action": ("float32", [f"{joint}.q" for joint in joint_names]),
        "tau_est": ("float32", [f"{joint}.tau" for joint in joint_names]),
        "contact": ("int8", ["left", "right"]),
    }
    scalars = {"next.done": "bool", "time_s": "float64", "tick": "int64", **INDEX_FEATURES}
    return {
        **{n: {"dtype": t, "shape": [len(names)], "names": names} for n, (t, names) in vectors.items()},
        **{name: {"dtype": kind, "shape": [1], "names": None} for name, kind in scalars.items()},
    }


def _numbers(clip: Clip, fps: int) -> dict[str, np.ndarray]:
    track, rows = clip.track, len(clip)
    parts = ("q", "dq", "quat_wxyz", "gyro_body", "command")
    return {
        "observation.state": np.hstack([track[name] for name in parts]).astype(np.float32),
        "action": track["action_sent"].astype(np.float32),
        "tau_est": track["tau_est"].astype(np.float32),
        "contact": track["contact"].astype(np.int8),
        "next.done": np.arange(rows) == rows - 1,
        "time_s": track["time_s"].astype(np.float64),
        "tick": track["tick"].astype(np.int64),
        "timestamp": (np.arange(rows) / fps).astype(np.float32),
    }


def _indices(episode: int, rows: int, before: int, task: int) -> dict[str, np.ndarray]:
    frames = np.arange(rows, dtype=np.int64)
    return {
        "frame_index": frames,
        "episode_index": np.full(rows, episode, np.int64),
        "index": before + frames,
        "task_index": np.full(rows, task, np.int64),
    }


def _task(clip: Clip) -> str:
    policy = clip.contract.name if clip.contract else "no policy"
    return f"{policy}: {clip.note}" if clip.note else policy


def _task_table(tasks: Mapping[str, int]) -> pa.Table:
    """Tasks by index; pandas' metadata make the text the row's label, by which LeRobot finds it."""
    types = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
    columns = [
        {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy, "metadata": None}
        for name, (kind, numpy) in types.items()
    ]
    about = {"index_columns": ["task"], "column_indexes": [], "columns": columns, "pandas_version": "2.0.0"}
    table = pa.table(
        {"task_index": pa.array(tasks.values(), pa.int64()), "task": pa.array(tasks, pa.string())}
    )
    return table.replace_schema_metadata({"pandas": json.dumps(about)})


def _fps(clip: Clip) -> int:
    fps = 1 / clip.period_s
    if abs(fps - round(fps)) > 1e-6:
        raise RolloutError(f"{clip.source}: {fps:g} rows a second; LeRobot wants a whole number")
    return round(fps)


def _check(clip: Clip, dataset: Dataset) -> None:
    if clip.joint_names != dataset.joint_names or _fps(clip) != dataset.fps:
        raise RolloutError(
            f"{clip.source}: other joints or another rate than the rollouts before; "
            "a LeRobot dataset holds one robot at one rate, export them one by one"
        )


def _write_json(path: Path, data: object) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
