"""MCAP with JSON messages and their schemas, for Foxglove and PlotJuggler; no ROS needed.

One topic a group of columns, one message a row; joints and axes by name, so that a plot's path reads
`/state.q.left_knee_joint`. `/joint_states`, `/tf` and `/log` follow Foxglove's own schemas. Times are
CLOCK_REALTIME: when the state was taken, moved from CLOCK_MONOTONIC by the calibration in the rollout.
What was never known in a run (a contact, an external pose) has no field, and the metadata names it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from mcap.well_known import MessageEncoding, SchemaEncoding
from mcap.writer import Writer

import onboard
from onboard.logging.export.files import write_file
from onboard.logging.export.foxglove import JOINT_STATES, LOG, TRANSFORM, joint_states, log_lines, transform
from onboard.logging.export.messages import (
    Topic,
    attribute_texts,
    column_schema,
    message_columns,
    unknown_columns,
)
from onboard.logging.layout import POLICY_FIELDS
from onboard.logging.rollout import Rollout

BLOCK_ROWS = 512

TOPICS: Mapping[str, tuple[str, ...]] = {
    "/state": (
        "time_s",
        "epoch",
        "robot_tick",
        "q",
        "dq",
        "tau_est",
        "quat_wxyz",
        "gyro_body",
        "accel_body",
        "torso_quat_wxyz",
        "torso_gyro",
    ),
    "/motors": ("motor_temperature", "motor_fault"),
    "/estimates": (
        "contact",
        "contact_force",
        "base_velocity",
        "external_pose",
        "external_pose_ns",
        "external_age_s",
        "external_velocity",
    ),
    "/command": ("target", "action_sent", "limit_mask", "kp_scale", "command", "phase", "motion_index"),
    "/run": (
        "tick",
        "number",
        "mode",
        "arm",
        "policy",
        "episode",
        "step",
        "mark",
        "tier",
        "safety_flag",
        "safety_events",
        "gateway_state",
    ),
    "/timing": (
        "state_age_s",
        "state_new",
        "crc_ok",
        "source_time_ns",
        "recv_ns",
        "made_ns",
        "send_ns",
        "wake_late_ns",
        "skipped_ticks",
        "stage_ns",
    ),
}
"""Columns of the group `rollout` by topic; the remote's bytes are in no topic."""


def export(rollout: Rollout, path: Path) -> list[str]:
    """Write one rollout.

    Returns:
        The columns that are left out because the run never knew them.

    Raises:
        RolloutError: the rollout is damaged or the disk refuses.
    """
    unknown = unknown_columns(rollout)

    def fill(file: Any) -> None:  # noqa: ANN401 - a binary file, which mcap types in its own way
        writer = Writer(file)
        writer.start(profile="", library=f"onboard {onboard.__version__}")
        _write(writer, rollout, unknown)
        writer.add_metadata("rollout", {**attribute_texts(rollout), "missing": json.dumps(unknown)})
        writer.finish()  # type: ignore[no-untyped-call] # mcap forgot its return type

    write_file(path, fill)
    return unknown


def _write(writer: Writer, rollout: Rollout, unknown: list[str]) -> None:
    known = [
        Topic(name, tuple(column for column in columns if column not in unknown))
        for name, columns in TOPICS.items()
    ]
    topics = [topic for topic in known if topic.columns]
    channels = {topic: _channel(writer, topic.name, column_schema(topic, rollout)) for topic in topics}
    policies = [_channel(writer, f"/policy/{p.name}", _policy_schema(p.name)) for p in rollout.policies]
    states = _channel(writer, "/joint_states", JOINT_STATES)
    frames = _channel(writer, "/tf", TRANSFORM)
    offset_ns = _wall_offset_ns(rollout)
    for start in range(0, len(rollout), BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, len(rollout)))
        time_ns = (rollout.column("recv_ns", block) + offset_ns).tolist()
        for topic in topics:
            _add(writer, channels[topic], time_ns, message_columns(topic, rollout, block), start)
        for index, channel in enumerate(policies):
            for row, message in _policy_messages(rollout, index, block):
                _add(writer, channel, [time_ns[row - start]], [message], row)
        _add(writer, states, time_ns, joint_states(rollout, block, time_ns), start)
        _add(writer, frames, time_ns, transform(rollout, block, time_ns), start)
    log = _channel(writer, "/log", LOG)
    for row, message in log_lines(rollout, offset_ns):
        stamp = message["timestamp"]
        _add(writer, log, [stamp["sec"] * 1_000_000_000 + stamp["nsec"]], [message], row)


def _channel(writer: Writer, topic: str, schema: Mapping[str, Any]) -> int:
    data = json.dumps(schema).encode()
    number = writer.register_schema(str(schema["title"]), SchemaEncoding.JSONSchema, data)
    return writer.register_channel(topic, MessageEncoding.JSON, number)


def _add(
    writer: Writer, channel: int, time_ns: list[int], messages: list[dict[str, Any]], first_row: int
) -> None:
    for row, (when, message) in enumerate(zip(time_ns, messages, strict=True), start=first_row):
        writer.add_message(channel, when, msgspec.json.encode(message), when, row)


def _policy_messages(rollout: Rollout, index: int, block: slice) -> Iterator[tuple[int, dict[str, Any]]]:
    policy = rollout.policies[index]
    at = slice(*np.searchsorted(policy.rows, [block.start, block.stop]).tolist())
    names = [field.name for field in POLICY_FIELDS[:-1]]
    columns = {name: policy.column(name, at).tolist() for name in names}
    extras = {name: policy.column(name, at).tolist() for name in policy.extras}
    for k, row in enumerate(policy.rows[at].tolist()):
        message: dict[str, Any] = {name: column[k] for name, column in columns.items()}
        yield row, {**message, "extras": {name: column[k] for name, column in extras.items()}}


def _policy_schema(name: str) -> dict[str, Any]:
    numbers = {"type": "array", "items": {"type": ["number", "null"]}}
    properties = {field.name: {**numbers, "description": field.about} for field in POLICY_FIELDS[:-1]}
    extras = {"type": "object", "additionalProperties": numbers, "description": "named further outputs"}
    return {
        "title": "onboard.Policy",
        "type": "object",
        "description": f"what the policy {name} saw and said",
        "properties": {**properties, "extras": extras},
    }


def _wall_offset_ns(rollout: Rollout) -> int:
    """CLOCK_REALTIME less CLOCK_MONOTONIC at the start of the run."""
    clock = json.loads(str(rollout.attributes.get("clock", "{}")))
    return int(clock.get("wall_ns", 0)) - int(clock.get("monotonic_ns", 0))
