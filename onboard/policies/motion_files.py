"""Motion files: CSV; npz of BeyondMimic, mjlab and instinct; pickles of ASAP, PHC and TWIST2.

Each reader gives the same: the root's pose, the joints in a named order, and the frame rate.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError
from onboard.configs.untrusted import read_npz, read_whole
from onboard.policies.contract import Motion
from onboard.policies.safe_pickle import read_pickle

Floats = NDArray[np.float64]

_POSITION = ("root_trans_offset", "root_pos", "body_pos_w", "base_pos_w")
_ROTATION = ("root_rot", "body_quat_w", "base_quat_w")
_JOINTS = ("dof", "dof_pos", "joint_pos")
_RATE = ("fps", "framerate")
"""Names of the same thing in npz files and pickles; bodies' arrays begin with the root."""

LARGEST = 1e6
"""No position, angle or speed of a motion is larger, m, rad, rad/s: what is larger is damaged."""


@dataclass(frozen=True)
class RawMotion:
    """A reference as its file holds it.

    Attributes:
        root_pos: (T, 3) m.
        root_quat: (T, 4) world from root, in the order that the contract states.
        joint_pos: (T, J) rad.
        joints: names of the J columns.
        rate_hz: of the frames.
        joint_vel: (T, J) rad/s, or None where the file has none.
        body_quat: (T, B, 4) of all bodies, or None.
    """

    root_pos: Floats
    root_quat: Floats
    joint_pos: Floats
    joints: tuple[str, ...]
    rate_hz: float
    joint_vel: Floats | None = None
    body_quat: Floats | None = None


def read_motion(path: Path, motion: Motion, joints: Sequence[str]) -> RawMotion:
    """Read one file, in whichever format its name says.

    Args:
        path: of the file.
        motion: the contract's description of it.
        joints: order of the file's joints, for files that name none.

    Raises:
        PolicyError: missing, damaged, of another shape, or the frame rate is not known.
    """
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise PolicyError(f"{path}: unknown kind of motion file; there are: {', '.join(_READERS)}")
    if not path.exists():
        raise PolicyError(f"{path}: the contract's motion file is missing; copy it there or set motion.file")
    raw = reader(path, motion, tuple(joints))
    arrays = [raw.root_pos, raw.root_quat, raw.joint_pos]
    arrays += [array for array in (raw.joint_vel, raw.body_quat) if array is not None]
    widths = (raw.root_pos.shape[1:], raw.root_quat.shape[1:])
    if len({len(array) for array in arrays}) != 1 or widths != ((3,), (4,)):
        raise PolicyError(f"{path}: arrays of shapes {[array.shape for array in arrays]} are not one motion")
    if len(raw.root_pos) < 2 or not all((np.abs(array) <= LARGEST).all() for array in arrays):
        raise PolicyError(
            f"{path}: {len(raw.root_pos)} rows; expected at least two, and finite numbers throughout, "
            f"none beyond {LARGEST:g}"
        )
    return raw


def _read_csv(path: Path, motion: Motion, joints: tuple[str, ...]) -> RawMotion:
    """Rows of root x y z, root quaternion, joints; no header."""
    try:
        text = io.StringIO(read_whole(path).decode())
        table: Floats = np.loadtxt(text, delimiter=",", dtype=np.float64, ndmin=2)
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"{path}: not a table of numbers ({error}); expected rows without a header"
        ) from error
    columns = 7 + len(joints)
    if table.shape[1] != columns:
        raise PolicyError(
            f"{path}: {table.shape[1]} columns, expected {columns}: root x y z, quaternion, "
            f"{len(joints)} joints"
        )
    return RawMotion(table[:, :3], table[:, 3:7], table[:, 7:], joints, _rate(path, motion, None))


def _read_npz(path: Path, motion: Motion, joints: tuple[str, ...]) -> RawMotion:
    try:
        data: dict[str, Any] = {**read_npz(path)}
    except (OSError, ValueError) as error:
        raise PolicyError(f"{path}: can't be read as a motion ({error}); expected an .npz") from error
    names = _names(path, data["joint_names"]) if "joint_names" in data else joints
    return _from_arrays(path, motion, data, names)


def _names(path: Path, names: NDArray[Any]) -> tuple[str, ...]:
    """Joint names of an npz, as text or as ASCII bytes."""
    if names.ndim != 1 or names.dtype.kind not in "SU":
        raise PolicyError(f"{path}: 'joint_names' is a {names.dtype} array of shape {names.shape}, not names")
    try:
        return tuple(names.astype(np.str_).tolist())
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path}: 'joint_names' are no names ({error})") from error


def _read_pickle(path: Path, motion: Motion, joints: tuple[str, ...]) -> RawMotion:
    """One motion, or a mapping of names to motions, of which `motion.clip` chooses."""
    data = read_pickle(path)
    if not isinstance(data, dict):
        raise PolicyError(f"{path}: expected a mapping of motions, found {type(data).__name__}")
    if not any(key in data for key in _JOINTS):
        data = _chosen(path, motion, data)
    return _from_arrays(path, motion, data, joints)


def _chosen(path: Path, motion: Motion, clips: Mapping[str, Any]) -> Mapping[str, Any]:
    clip = motion.clip if motion.clip is not None or len(clips) != 1 else next(iter(clips))
    chosen = clips.get(clip) if clip is not None else None
    if not isinstance(chosen, dict):
        names = ", ".join(map(str, clips))
        raise PolicyError(f"{path}: no motion '{clip}' in it; choose one with motion.clip: {names}")
    return chosen


def _from_arrays(path: Path, motion: Motion, data: Mapping[str, Any], joints: tuple[str, ...]) -> RawMotion:
    bodies = _array(path, data, ("body_quat_w",), 3) if "body_quat_w" in data else None
    position, rotation = _root(_array(path, data, _POSITION)), _root(_array(path, data, _ROTATION))
    joint_pos = _array(path, data, _JOINTS, 2)
    if joint_pos.shape[1] != len(joints):
        raise PolicyError(
            f"{path}: {joint_pos.shape[1]} joints, but motion.joints names {len(joints)}; name those of the "
            "file, in its order"
        )
    return RawMotion(
        root_pos=position,
        root_quat=rotation,
        joint_pos=joint_pos,
        joints=joints,
        rate_hz=_rate(path, motion, next((data[key] for key in _RATE if key in data), None)),
        joint_vel=_array(path, data, ("joint_vel",), 2) if "joint_vel" in data else None,
        body_quat=bodies,
    )


def _root(values: Floats) -> Floats:
    """Of arrays of bodies the first one's."""
    return values[:, 0] if values.ndim == 3 and values.shape[1] else values


def _array(path: Path, data: Mapping[str, Any], names: tuple[str, ...], axes: int | None = None) -> Floats:
    name = next((name for name in names if name in data), None)
    if name is None:
        raise PolicyError(
            f"{path}: none of {', '.join(names)} in it; it has: {', '.join(map(str, data)) or 'nothing'}"
        )
    try:
        array = np.asarray(data[name])
    except ValueError as error:
        raise PolicyError(f"{path}: '{name}' is no array ({error})") from error
    if array.dtype.kind not in "fiu" or array.ndim < 2 or axes not in (None, array.ndim):
        raise PolicyError(f"{path}: '{name}' is a {array.dtype} array of shape {array.shape}")
    return array.astype(np.float64)


def _rate(path: Path, motion: Motion, in_file: Any) -> float:  # noqa: ANN401
    """Frames a second: the file's own, the contract's, and never two different ones."""
    stated = motion.rate_hz
    if in_file is None:
        if stated is None:
            raise PolicyError(f"{path}: its frame rate is not stated; --set motion.rate_hz=30, or what it is")
        return stated
    rate = _one_number(in_file)
    if not rate > 0:
        raise PolicyError(f"{path}: its frame rate is {str(in_file)[:80]}, expected one positive number")
    if stated is not None and abs(stated - rate) > 1e-3:
        raise PolicyError(
            f"{path}: its own frame rate is {rate:g} Hz, but motion.rate_hz is {stated:g}; --set "
            f"motion.rate_hz={rate:g} if the file is right"
        )
    return rate


def _one_number(value: Any) -> float:  # noqa: ANN401
    """Of a number or an array of one; NaN of anything else."""
    try:
        array = np.asarray(value)
    except ValueError:
        return np.nan
    return float(array.item()) if array.size == 1 and array.dtype.kind in "fiu" else np.nan


_READERS: dict[str, Callable[[Path, Motion, tuple[str, ...]], RawMotion]] = {
    ".csv": _read_csv,
    ".npz": _read_npz,
    ".pkl": _read_pickle,
    ".joblib": _read_pickle,
}
