"""Whether an HDF5 file is a rollout down to every type and shape, so that readers need not ask again.

A dataset can name another file, stand for more numbers than there is memory, or be of any type: what the
recorder would not have written is refused before a number of it is read.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from onboard.configs.errors import RolloutError
from onboard.configs.robot import N_JOINTS
from onboard.configs.untrusted import DAMAGED
from onboard.logging.layout import DERIVED, JOINED, LOWSTATE, POLICY_FIELDS, ROW, ROW_INDEX, Field

PACKED = 64
"""Numbers may take so many times the bytes of their file: what whoever packed a rollout may have gained."""

TEXTS = ("completeness", "completeness_why", "end_reason", "started_utc", "robot")
JSON_TEXTS = ("config", "facts", "models_sha256", "software", "machine", "clock")


def check_attributes(attributes: dict[str, Any], where: str) -> None:
    """Types and ranges of the root attributes.

    Raises:
        RolloutError: one that readers need is missing, or is something else.
    """
    if absent := sorted({*TEXTS, "period_s", "joint_names"} - attributes.keys()):
        raise RolloutError(f"{where}: the rollout lacks the attributes {', '.join(absent)}")
    wrong = [name for name in TEXTS if not isinstance(attributes[name], str)]
    wrong += [name for name in JSON_TEXTS if name in attributes and not _is_json(attributes[name])]
    joints = np.asarray(attributes["joint_names"]).reshape(-1).tolist()
    if len(joints) != N_JOINTS or not all(isinstance(name, str) for name in joints):
        wrong.append("joint_names")
    period_s = attributes["period_s"]
    if not (isinstance(period_s, float) and math.isfinite(period_s) and period_s > 0):
        wrong.append("period_s")
    if not isinstance(attributes.get("rows_lost", 0), int | np.integer):
        wrong.append("rows_lost")
    robot = str(attributes["robot"])
    if Path(robot).name != robot or Path(robot).suffix in {".yaml", ".yml"}:
        wrong.append("robot")  # a name, never the path of a description
    if wrong:
        raise RolloutError(f"{where}: attributes that are not what a recorder writes: {', '.join(wrong)}")


def check_datasets(h5: h5py.File, file_bytes: int, where: str) -> None:
    """Every dataset that readers use.

    Raises:
        RolloutError: one is missing, lies elsewhere, or has another type, length or width.
    """
    most = PACKED * file_bytes
    rollout = _group(h5, "rollout", where)
    rows = _check_columns(rollout, (*ROW, *JOINED, *DERIVED), most, f"{where}: rollout")
    if "lowstate" in h5:
        lowstate = _group(h5, "lowstate", where)
        _check_columns(lowstate, (*LOWSTATE, *DERIVED), most, f"{where}: lowstate")
    if "policies" in h5:
        policies = _group(h5, "policies", where)
        for index in policies:
            _check_policy(_group(policies, index, where), rows, most, f"{where}: policies/{index}")


def _check_columns(group: h5py.Group, fields: Iterable[Field], most: int, where: str) -> int:
    """All of one length, which is returned."""
    lengths = {}
    for field in fields:
        dataset = _dataset(group, field.name, most, where)
        if dataset.dtype != np.dtype(field.code) or dataset.shape[1:] != field.shape or not dataset.shape:
            raise RolloutError(
                f"{where}: '{field.name}' is {dataset.dtype} of shape {dataset.shape}, expected {field.code} "
                f"with rows of {field.shape}"
            )
        lengths[field.name] = dataset.shape[0]
    first = next(iter(lengths.values()))
    if odd := [name for name, length in lengths.items() if length != first]:
        raise RolloutError(f"{where}: missing or shorter than the others: {', '.join(odd)}")
    return int(first)


def _check_policy(group: h5py.Group, rows: int, most: int, where: str) -> None:
    if not isinstance(group.attrs.get("name"), str):
        raise RolloutError(f"{where}: has no name")
    index = _dataset(group, ROW_INDEX.name, most, where)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise RolloutError(f"{where}: '{ROW_INDEX.name}' is {index.dtype} of shape {index.shape}")
    at = index[:]
    if len(at) and not (at[0] >= 0 and at[-1] < rows and (np.diff(at.astype(np.int64)) > 0).all()):
        raise RolloutError(f"{where}: '{ROW_INDEX.name}' does not rise from 0 to below {rows}")
    extras = _group(group, "extras", where)
    columns = [_dataset(group, field.name, most, where) for field in POLICY_FIELDS[:-1]]
    columns += [_dataset(extras, name, most, f"{where}/extras") for name in extras]
    for column in columns:
        if column.ndim != 2 or column.dtype.kind != "f" or column.shape[0] != len(at):
            raise RolloutError(
                f"{where}: '{column.name}' is {column.dtype} of shape {column.shape}, expected {len(at)} "
                "rows of numbers"
            )


def _group(holder: h5py.Group, name: str, where: str) -> h5py.Group:
    found = _own(holder, name, where)
    if not isinstance(found, h5py.Group):
        raise RolloutError(f"{where}: '{name}' is no group")
    return found


def _dataset(holder: h5py.Group, name: str, most: int, where: str) -> h5py.Dataset:
    found = _own(holder, name, where)
    if not isinstance(found, h5py.Dataset):
        raise RolloutError(f"{where}: '{name}' is no dataset")
    if found.external is not None or found.is_virtual:
        raise RolloutError(f"{where}: '{name}' keeps its numbers in another file; copy them into this one")
    if found.dtype.hasobject or found.size is None or found.size * found.dtype.itemsize > most:
        raise RolloutError(f"{where}: '{name}' claims more than the file can hold, or holds no numbers")
    return found


def _own(holder: h5py.Group, name: str, where: str) -> Any:  # noqa: ANN401
    link = holder.get(name, getlink=True)
    if link is None:
        raise RolloutError(f"{where}: missing or shorter than the others: {name}")
    if not isinstance(link, h5py.HardLink):
        raise RolloutError(f"{where}: '{name}' is a link to elsewhere; copy what it names into the file")
    return holder[name]


def _is_json(text: object) -> bool:
    try:
        return isinstance(json.loads(text), dict | list) if isinstance(text, str) else False
    except DAMAGED:
        return False
