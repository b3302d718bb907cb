"""The formats by name, and the one way into all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from onboard.configs.bodies import BodyTable, load_bodies
from onboard.configs.errors import ConfigError, OnboardError, RolloutError
from onboard.logging.export import asap, beyondmimic, listener_deltaa, npz
from onboard.logging.export.clips import Clip, Cut, clips
from onboard.logging.export.files import write_file, write_npz
from onboard.logging.rollout import Check, Rollout

Name = Literal["asap", "listener_deltaa", "npz", "beyondmimic", "mcap", "parquet", "lerobot"]

ABOUT: Mapping[str, str] = {
    "asap": "joblib pickle of motions for ASAP's delta training, one file for all",
    "listener_deltaa": "npz with the keys of ASAP's listener_deltaa, one file a stretch",
    "npz": "plain npz (t, q, dq, target, tau, quat, gyro) for fits, one file a stretch",
    "beyondmimic": "motion npz of BeyondMimic and mjlab, one file a stretch",
    "mcap": "JSON messages for Foxglove and PlotJuggler, one file a rollout",
    "parquet": "all columns, one row a tick, for pandas, polars and DuckDB, one file a rollout",
    "lerobot": "dataset for LeRobot (format v3.0), one folder for all, an episode a stretch",
}


@dataclass(frozen=True)
class Wish:
    """What to export.

    Attributes:
        cut: stretches and preprocessing; `mcap` and `parquet` write whole rollouts and do not look at it.
        action: for `asap`.
        order: for `beyondmimic`.
        check: as for `Rollout`.
    """

    cut: Cut = field(default_factory=Cut)
    action: asap.Kind = "raw"
    order: beyondmimic.Order = "isaac"
    check: Check = True


class Exported(Struct, frozen=True):
    """What was written.

    Attributes:
        files: that were written.
        stretches: how many; of `mcap` and `parquet`, how many rollouts.
        rows: in all of them.
        missing: what the rollouts did not hold and the files therefore mark as missing.
        preprocessing: by stretch, what each step did.
    """

    format: str
    files: list[str]
    stretches: int
    rows: int
    missing: list[str]
    preprocessing: dict[str, list[dict[str, Any]]]


def export(paths: Sequence[Path], form: Name, out: Path, wish: Wish) -> Exported:
    """Write rollouts in a format.

    Args:
        paths: rollouts or journals.
        form: name of the format.
        out: a file, or a folder where there is more than one to write.
        wish: what to take and how.

    Raises:
        RolloutError: a rollout can't be read or holds nothing to export, or the disk refuses.
        ConfigError: `out` names one file and there are several to write.
        OnboardError: a library of the extra `export` is not installed.
    """
    if form in ("mcap", "parquet"):
        return _export_whole(paths, form, out, wish)
    if form == "lerobot":
        return _export_lerobot(paths, out, wish)
    if form == "asap":
        return _export_asap(paths, out, wish)
    return _export_npz(paths, form, out, wish)


def _export_npz(paths: Sequence[Path], form: Name, out: Path, wish: Wish) -> Exported:
    made: dict[Name, Callable[[Clip], dict[str, np.ndarray]]] = {
        "npz": npz.arrays,
        "listener_deltaa": listener_deltaa.arrays,
        "beyondmimic": lambda clip: beyondmimic.arrays(clip, _bodies(clip.robot), wish.order),
    }
    lone = _lone_file(out, ".npz")
    found = list(_all_clips(paths, wish)) if lone else _all_clips(paths, wish)
    if isinstance(found, list) and len(found) > 1:
        raise ConfigError(
            f"--out {out} names one file and there are {len(found)} stretches; name a folder, "
            "or leave short ones out with --min-s"
        )
    files, rows, missing, done = [], 0, set[str](), {}
    for clip in found:
        arrays = made[form](clip)
        path = out if lone else out / f"{clip.name}.npz"
        write_npz(path, arrays)
        files.append(str(path))
        rows += len(next(column for column in arrays.values() if column.ndim == 2))
        missing |= set(arrays.get("missing", np.array([], str)).tolist()) | _unknown_gains(arrays)
        done[clip.name] = clip.done
    return Exported(form, files, len(files), rows, sorted(missing), done)


def _unknown_gains(arrays: Mapping[str, np.ndarray]) -> set[str]:
    return {name for name in ("kp", "kd") if name in arrays and np.isnan(arrays[name]).all()}


def _export_asap(paths: Sequence[Path], out: Path, wish: Wish) -> Exported:
    joblib = _library("joblib")
    motions, done, missing = {}, {}, set[str]()
    for clip in _all_clips(paths, wish):
        bodies = _bodies(clip.robot)
        if bodies is None:
            raise RolloutError(
                f"{clip.source}: no table of links for {clip.robot}, whose joint axes ASAP needs"
            )
        motion = asap.motion(clip, bodies, wish.action)
        motions[clip.name], done[clip.name] = motion, clip.done
        if not motion["root_valid"].all():
            missing.add("root_trans_offset")
    path = out if _lone_file(out, ".pkl") else out / "motions.pkl"
    write_file(path, lambda file: joblib.dump(motions, file))
    rows = sum(len(motion["dof"]) for motion in motions.values())
    return Exported("asap", [str(path)], len(motions), rows, sorted(missing), done)


def _export_whole(paths: Sequence[Path], form: Name, out: Path, wish: Wish) -> Exported:
    """Formats that hold whole rollouts, gaps and unsafe stretches included."""
    _library({"mcap": "mcap", "parquet": "pyarrow"}[form])
    write = import_module(f"onboard.logging.export.{form}").export
    lone = _lone_file(out, f".{form}")
    if lone and len(paths) > 1:
        raise ConfigError(f"--out {out} names one file and there are {len(paths)} rollouts; name a folder")
    files, rows, missing = [], 0, set[str]()
    for path in paths:
        with Rollout(path, check=wish.check) as rollout:
            target = out if lone else out / f"{path.stem}.{form}"
            missing |= set(write(rollout, target))
            rows += len(rollout)
        files.append(str(target))
    return Exported(form, files, len(files), rows, sorted(missing), {})


def _export_lerobot(paths: Sequence[Path], out: Path, wish: Wish) -> Exported:
    _library("pyarrow")
    from onboard.logging.export import lerobot

    made, done = lerobot.export(_all_clips(paths, wish), out)
    missing = [] if made.contact_known else ["contact"]
    return Exported("lerobot", [str(out)], len(done), made.rows, missing, done)


def _all_clips(paths: Sequence[Path], wish: Wish) -> Iterator[Clip]:
    """Stretches of all rollouts. Raises RolloutError when there is none at all."""
    found = False
    for path in paths:
        with Rollout(path, check=wish.check) as rollout:
            for clip in clips(rollout, wish.cut):
                found = True
                yield clip
    if not found:
        names = ", ".join(path.name for path in paths)
        raise RolloutError(
            f"{names}: no unbroken stretch of {wish.cut.min_s:g} s in the modes asked for; "
            "look with onboard log info, or lower --min-s"
        )


def _lone_file(out: Path, suffix: str) -> bool:
    """Whether `out` names a file of the format; a folder otherwise."""
    return out.suffix == suffix and not out.is_dir()


def _bodies(robot: str) -> BodyTable | None:
    """The table of a robot's links; None where none is shipped."""
    try:
        return load_bodies(robot)
    except ConfigError:
        return None


def _library(name: str) -> Any:  # noqa: ANN401 - a module
    try:
        return __import__(name)
    except ModuleNotFoundError as error:
        raise OnboardError(
            f"this format needs {error.name}; install it with: pip install 'onboard[export]'"
        ) from error
