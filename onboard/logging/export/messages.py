"""Columns of a rollout with the names of joints and axes, and as JSON messages with schemas."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onboard.logging.layout import COMMAND_FIELDS, DERIVED, JOINED, ROW, STAGES, Field
from onboard.logging.rollout import Rollout

FIELDS: dict[str, Field] = {field.name: field for field in (*ROW, *JOINED, *DERIVED)}

XYZ = ("x", "y", "z")
WXYZ = ("w", "x", "y", "z")
SIDES = ("left", "right")

_AXES: dict[str, tuple[str, ...]] = {
    "quat_wxyz": WXYZ,
    "torso_quat_wxyz": WXYZ,
    "gyro_body": XYZ,
    "accel_body": XYZ,
    "torso_gyro": XYZ,
    "base_velocity": XYZ,
    "contact": SIDES,
    "contact_force": SIDES,
    "phase": SIDES,
    "command": COMMAND_FIELDS,
    "stage_ns": STAGES,
    "external_velocity": XYZ,
    "external_pose": (*XYZ, "qw", "qx", "qy", "qz"),
}
_TEMPERATURES = ("casing", "winding")

_MAY_BE_UNKNOWN = (
    "torso_quat_wxyz",
    "torso_gyro",
    "contact",
    "contact_force",
    "base_velocity",
    "external_pose",
    "external_velocity",
)


class Topic(NamedTuple):
    """A topic and its columns."""

    name: str
    columns: tuple[str, ...]


def unknown_columns(rollout: Rollout) -> list[str]:
    """Columns in which nothing was known throughout the run: all NaN, or all -1 for contact."""
    unknown = []
    for name in _MAY_BE_UNKNOWN:
        values = rollout.column(name)
        known = values >= 0 if name == "contact" else ~np.isnan(values)
        if not known.any():
            unknown.append(name)
    return [*unknown, "external_pose_ns", "external_age_s"] if "external_pose" in unknown else unknown


def column_schema(topic: Topic, rollout: Rollout) -> dict[str, Any]:
    """JSON schema of a topic's messages."""
    return {
        "title": f"onboard.{topic.name.removeprefix('/').capitalize()}",
        "type": "object",
        "properties": {name: _property(FIELDS[name], rollout) for name in topic.columns},
    }


def message_columns(topic: Topic, rollout: Rollout, block: slice) -> list[dict[str, Any]]:
    """One message a row; NaN becomes null."""
    columns = [_named(name, rollout.column(name, block), rollout) for name in topic.columns]
    return [dict(zip(topic.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def axis_names(name: str, rollout: Rollout) -> tuple[str, ...]:
    """Names of a column's numbers; () for a single one."""
    if name in _AXES:
        return _AXES[name]
    return rollout.joint_names if FIELDS[name].shape else ()


def attribute_texts(rollout: Rollout) -> dict[str, str]:
    """Attributes of the file as text; lists as JSON."""
    return {
        name: value if isinstance(value, str) else _json(value) for name, value in rollout.attributes.items()
    }


def _json(value: Any) -> str:  # noqa: ANN401 - whatever an HDF5 attribute holds
    return json.dumps(value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value)


def _property(field: Field, rollout: Rollout) -> dict[str, Any]:
    about = f"{field.about} [{field.unit}]" if field.unit else field.about
    number = {"type": "integer"} if np.dtype(field.code).kind in "iu" else {"type": ["number", "null"]}
    if len(field.shape) > 1:
        number = _object(_TEMPERATURES, number)
    names = axis_names(field.name, rollout)
    return {**(_object(names, number) if names else number), "description": about}


def _object(names: Sequence[str], number: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, number)}


def _named(name: str, values: np.ndarray, rollout: Rollout) -> list[Any]:
    names = axis_names(name, rollout)
    rows: list[Any] = values.tolist()
    if not names:
        return rows
    if values.ndim > 2:
        rows = [[dict(zip(_TEMPERATURES, pair, strict=True)) for pair in row] for row in rows]
    return [dict(zip(names, row, strict=True)) for row in rows]
