"""Logs to trajectories: rollouts, and plain npz files of other tools with the exporter's keys."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from onboard.analysis.fit.trajectory import Float64Array, Trajectory
from onboard.configs.errors import RolloutError
from onboard.configs.loader import load
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.configs.sim import per_joint
from onboard.configs.untrusted import read_npz
from onboard.logging.export.clips import Clip, Cut, clips
from onboard.logging.export.rootpose import is_fresh
from onboard.logging.preprocess.pipeline import Track
from onboard.logging.rollout import Rollout

PERIOD_S = 0.02
"""Of the control grid on which the delta is recomputed; other logs are brought to it."""
SHORTEST_S = 1.0
GAP_S = 0.1
"""Between two rows of another tool's log; over a longer one nothing is interpolated."""

_OPTIONAL = {"contact": (2, -1.0), "base_velocity": (3, np.nan)}
"""Columns that a log may lack: width, and what stands for unknown."""
_SHAPES = {"q": N_JOINTS, "dq": N_JOINTS, "target": N_JOINTS, "quat": 4, "gyro": 3}


@dataclass(frozen=True)
class Gains:
    """Stiffness and damping that a log itself does not tell, (29,) N·m/rad and N·m·s/rad."""

    kp: Float64Array
    kd: Float64Array


class _GainsFile(Struct, frozen=True, forbid_unknown_fields=True):
    kp: dict[str, float]
    kd: dict[str, float]


def load_gains(path: Path, robot: RobotConfig) -> Gains:
    """Gains from a YAML file: `kp` and `kd`, each from joint names or patterns to numbers.

    Raises:
        ConfigError: the file does not fit.
    """
    found = load(path, _GainsFile)
    return Gains(per_joint(found.kp, robot, f"{path}: kp"), per_joint(found.kd, robot, f"{path}: kd"))


def read_trajectories(path: Path, robot: RobotConfig, gains: Gains | None = None) -> list[Trajectory]:
    """Every stretch of a log under constant gains that lasts at least a second.

    Args:
        path: rollout, journal, or npz with `t, q, dq, target, quat, gyro` and, where it knows them,
            `kp, kd` (29,) or (n, 29), `contact`, `base_velocity` and `joint_names`.
        robot: the joints' order.
        gains: taken instead of what the log says.

    Raises:
        RolloutError: unreadable, of another robot, without gains, or too short.
    """
    pieces = list(_npz_pieces(path, robot) if path.suffix == ".npz" else _rollout_pieces(path, robot))
    if not pieces:
        raise RolloutError(f"{path}: no stretch of {SHORTEST_S:g} s in which the robot followed a target")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    found = [trajectory for piece in pieces for trajectory in _even_gains(piece, gains, digest)]
    if not found:
        raise RolloutError(
            f"{path}: its gains are not known, or never constant for {SHORTEST_S:g} s; give --gains FILE"
        )
    return found


@dataclass(frozen=True)
class _Piece:
    """A stretch with gains by row, (n, 29), NaN where unknown."""

    name: str
    columns: Mapping[str, Float64Array]
    kp: Float64Array
    kd: Float64Array


def _rollout_pieces(path: Path, robot: RobotConfig) -> Iterator[_Piece]:
    with Rollout(path) as rollout:
        if rollout.joint_names != robot.joint_names:
            raise RolloutError(
                f"{path}: recorded on {rollout.attributes['robot']}, expected joints of {robot.name}"
            )
        for clip in clips(rollout, Cut(min_s=SHORTEST_S)):
            yield _from_clip(clip)


def _from_clip(clip: Clip) -> _Piece:
    track = clip.track
    columns = {
        "t": track["time_s"].astype(np.float64),
        "q": track["q"],
        "dq": track["dq"],
        "target": track["action_sent"],
        "quat": track["quat_wxyz"],
        "gyro": track["gyro_body"],
        "contact": track["contact"],
        "base_velocity": _base_velocity(track),
    }
    return _Piece(clip.name, columns, track["kp"], track["kd"])


def _base_velocity(track: Track) -> Float64Array:
    """(n, 3) what came with a fresh external pose, else the robot's own estimate."""
    heard = track["external_velocity"].astype(np.float64)
    fresh = is_fresh(track["external_pose"], track["external_age_s"]) & np.isfinite(heard).all(axis=1)
    return np.where(fresh[:, None], heard, track["base_velocity"])


def _npz_pieces(path: Path, robot: RobotConfig) -> Iterator[_Piece]:
    data = _load_npz(path)
    if absent := {"t", *_SHAPES} - data.keys():
        raise RolloutError(
            f"{path}: lacks {', '.join(sorted(absent))}; expected t, q, dq, target, quat, gyro"
        )
    names = data.get("joint_names")
    if names is not None and tuple(names.reshape(-1).tolist()) != robot.joint_names:
        raise RolloutError(f"{path}: joint_names differ from those of {robot.name} in SDK motor order")
    rows = data["t"].size
    shapes = {"t": (rows,)} | {name: (rows, width) for name, width in _SHAPES.items()}
    for name, shape in shapes.items():
        found = data[name]
        if found.shape != shape or found.dtype.kind not in "fiu":
            raise RolloutError(
                f"{path}: '{name}' has shape {found.shape}, expected {shape} of numbers, found {found.dtype}"
            )
    columns = {name: data[name].astype(np.float64) for name in ("t", *_SHAPES)}
    for name, (width, nothing) in _OPTIONAL.items():
        columns[name] = data.get(name, np.full((rows, width), nothing)).astype(np.float64)
        if columns[name].shape != (rows, width):
            raise RolloutError(f"{path}: '{name}' has shape {columns[name].shape}, expected {(rows, width)}")
    if rows < 2 or not (np.diff(columns["t"]) > 0).all():
        raise RolloutError(f"{path}: 't' must rise from row to row, in seconds")
    if not all(np.isfinite(columns[name]).all() for name in ("t", *_SHAPES)):
        raise RolloutError(f"{path}: holds numbers that are not finite; cut those rows out")
    kp, kd = (_gains_by_row(path, name, data.get(name), rows) for name in ("kp", "kd"))
    for piece in _unbroken(_Piece(path.stem, columns, kp, kd)):
        yield _on_grid(piece)


def _gains_by_row(
    path: Path, name: str, values: NDArray[np.generic] | None, rows: int
) -> NDArray[np.float64]:
    """(rows, 29), NaN where the log does not say them."""
    if values is None:
        values = np.full(N_JOINTS, np.nan)
    if values.dtype.kind not in "fiu" or values.shape not in ((N_JOINTS,), (rows, N_JOINTS)):
        raise RolloutError(
            f"{path}: '{name}' is {values.dtype} of shape {values.shape}, expected {N_JOINTS} numbers, or a "
            "row of them for each of 't'"
        )
    return np.broadcast_to(values.astype(np.float64), (rows, N_JOINTS))


def _load_npz(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        return read_npz(path)
    except (OSError, ValueError) as error:
        raise RolloutError(f"{path}: not an npz of plain arrays ({error})") from error


def _unbroken(piece: _Piece) -> Iterator[_Piece]:
    """Cut where rows are missing; what is shorter than a second is left out."""
    t = piece.columns["t"]
    edges = [0, *(np.flatnonzero(np.diff(t) > GAP_S) + 1).tolist(), len(t)]
    for first, last in itertools.pairwise(edges):
        if t[last - 1] - t[first] >= SHORTEST_S - PERIOD_S:
            columns = {name: column[first:last] for name, column in piece.columns.items()}
            name = piece.name if len(edges) == 2 else f"{piece.name} from {t[first] - t[0]:.2f} s"
            yield _Piece(name, columns, piece.kp[first:last], piece.kd[first:last])


def _on_grid(piece: _Piece) -> _Piece:
    """Bring a log of another or uneven rate to the control grid: states interpolated, targets held."""
    t = piece.columns["t"]
    if (np.abs(np.diff(t) / PERIOD_S - 1) < 0.25).all():
        return piece
    grid = np.arange(t[0], t[-1], PERIOD_S)
    held = np.searchsorted(t, grid, side="right") - 1
    columns = {
        name: column[held]
        if name in {"target", "contact"}
        else np.stack([np.interp(grid, t, values) for values in column.T], axis=1)
        for name, column in piece.columns.items()
        if name != "t"
    }
    return _Piece(piece.name, {"t": grid, **columns}, piece.kp[held], piece.kd[held])


def _even_gains(piece: _Piece, gains: Gains | None, digest: str) -> Iterator[Trajectory]:
    """Cut where the gains change; parts without known gains are left out."""
    columns = piece.columns
    kp, kd = (piece.kp, piece.kd) if gains is None else (gains.kp, gains.kd)
    kp, kd = (np.broadcast_to(values, columns["q"].shape) for values in (kp, kd))
    both = np.concatenate([kp, kd], axis=1)
    changes = np.flatnonzero((both[1:] != both[:-1]).any(axis=1)) + 1
    edges = [0, *changes.tolist(), len(both)]
    for first, last in itertools.pairwise(edges):
        t = columns["t"][first:last]
        if not np.isfinite(both[first]).all() or t[-1] - t[0] < SHORTEST_S - PERIOD_S:
            continue
        parts = {name: column[first:last].astype(np.float64) for name, column in columns.items()}
        yield Trajectory(
            name=piece.name if len(t) == len(both) else f"{piece.name}+{first}",
            sha256=digest,
            t_s=parts["t"],
            q=parts["q"],
            dq=parts["dq"],
            target=parts["target"],
            kp=kp[first].astype(np.float64),
            kd=kd[first].astype(np.float64),
            quat_wxyz=parts["quat"],
            gyro_body=parts["gyro"],
            base_velocity=parts["base_velocity"],
            contact=parts["contact"].astype(np.int8),
        )
