"""Messages that follow Foxglove's own schemas: joint states, a transform, a log."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from onboard.configs.events import Mode, names
from onboard.logging.export.messages import WXYZ, XYZ
from onboard.logging.export.rootpose import is_fresh
from onboard.logging.rollout import Rollout

NANOSECONDS = 1_000_000_000
WORLD, PELVIS, IMU = "world", "pelvis", "imu"

_TIME = {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}}
_NUMBER = {"type": "number"}
_TEXT = {"type": "string"}


def _object(title: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "type": "object", "properties": properties}


JOINT_STATES = _object(
    "foxglove.JointStates",
    {
        "timestamp": _TIME,
        "joints": {
            "type": "array",
            "items": _object(
                "foxglove.JointState",
                {"name": _TEXT, "position": _NUMBER, "velocity": _NUMBER, "effort": _NUMBER},
            ),
        },
    },
)

TRANSFORM = _object(
    "foxglove.FrameTransform",
    {
        "timestamp": _TIME,
        "parent_frame_id": _TEXT,
        "child_frame_id": _TEXT,
        "translation": _object("foxglove.Vector3", dict.fromkeys(XYZ, _NUMBER)),
        "rotation": _object("foxglove.Quaternion", dict.fromkeys(WXYZ, _NUMBER)),
    },
)

LOG = _object(
    "foxglove.Log",
    {
        "timestamp": _TIME,
        "level": {"type": "integer"},
        "message": _TEXT,
        "name": _TEXT,
        "file": _TEXT,
        "line": {"type": "integer"},
    },
)
INFO, WARNING = 2, 3


def stamp(time_ns: int) -> dict[str, int]:
    """A time as Foxglove writes it."""
    return {"sec": time_ns // NANOSECONDS, "nsec": time_ns % NANOSECONDS}


def joint_states(rollout: Rollout, block: slice, time_ns: list[int]) -> list[dict[str, Any]]:
    """Positions, velocities and efforts of all joints, one message a row."""
    columns = [rollout.column(name, block).tolist() for name in ("q", "dq", "tau_est")]
    return [
        {
            "timestamp": stamp(when),
            "joints": [
                {"name": name, "position": q, "velocity": dq, "effort": tau}
                for name, q, dq, tau in zip(rollout.joint_names, *row, strict=True)
            ],
        }
        for when, *row in zip(time_ns, *columns, strict=True)
    ]


def transform(rollout: Rollout, block: slice, time_ns: list[int]) -> list[dict[str, Any]]:
    """The pelvis in the world by the external pose; where none is fresh, its rotation in the IMU's frame.

    The IMU knows no position: its frame lies in the pelvis, and the translation is zero by definition.
    """
    pose, imu = rollout.column("external_pose", block), rollout.column("quat_wxyz", block)
    known = is_fresh(pose, rollout.column("external_age_s", block))
    place = np.where(known[:, None], pose[:, :3], 0.0).tolist()
    turn = np.where(known[:, None], pose[:, 3:], imu).tolist()
    return [
        {
            "timestamp": stamp(when),
            "parent_frame_id": WORLD if external else IMU,
            "child_frame_id": PELVIS,
            "translation": dict(zip(XYZ, position, strict=True)),
            "rotation": dict(zip(WXYZ, rotation, strict=True)),
        }
        for when, external, position, rotation in zip(time_ns, known.tolist(), place, turn, strict=True)
    ]


def log_lines(rollout: Rollout, offset_ns: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Row and message of every change: mode, episode, the operator's marks, safety events."""
    columns = [rollout.column(name) for name in ("mode", "episode", "mark", "safety_events")]
    time_ns = rollout.column("recv_ns") + offset_ns
    changed = np.ones(len(time_ns), bool)
    changed[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    before: tuple[int, ...] = (-1, 0, 0, 0)
    for row in np.flatnonzero(changed).tolist():
        now = tuple(int(column[row]) for column in columns)
        for level, text in _changes(before, now):
            where = {"name": "onboard", "file": rollout.path.name, "line": row}
            yield row, {"timestamp": stamp(int(time_ns[row])), "level": level, "message": text, **where}
        before = now


def _changes(before: tuple[int, ...], now: tuple[int, ...]) -> Iterator[tuple[int, str]]:
    """Level and text of what changed in (mode, episode, mark, events)."""
    mode, episode, mark, events = now
    if mode != before[0]:
        yield INFO, f"mode {Mode(mode).name.lower()}"
    if episode != before[1]:
        yield INFO, f"episode {episode}"
    if mark != before[2]:
        yield INFO, f"mark {mark}"
    for level, word, mask in (
        (WARNING, "raised", events & ~before[3]),
        (INFO, "over", before[3] & ~events),
    ):
        if mask:
            yield level, f"{word}: {', '.join(name.lower() for name in names(mask))}"
