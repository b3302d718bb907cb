"""MCAP, read back as Foxglove and PlotJuggler read it: by schema, by topic, by time."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader

from onboard.logging.export.formats import Wish, export
from onboard.logging.export.mcap import TOPICS
from onboard.logging.layout import DERIVED, JOINED, ROW
from onboard.logging.rollout import Rollout
from tests.logging.export.recorded import NAMES, POLICY_START, data, write

NEVER_KNOWN = {
    "torso_quat_wxyz",
    "torso_gyro",
    "contact_force",
    "external_pose",
    "external_pose_ns",
    "external_age_s",
    "external_velocity",
}


@pytest.fixture(scope="module")
def file(rollout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcap") / "walk.mcap"
    export([rollout], "mcap", path, Wish())
    return path


def read(path: Path, *topics: str) -> list[dict[str, Any]]:
    with path.open("rb") as stream:
        found = make_reader(stream, validate_crcs=True).iter_messages(topics=list(topics))
        return [json.loads(message.data) for _, _, message in found]


def test_every_column_but_the_remote_is_in_one_topic() -> None:
    columns = [column for names in TOPICS.values() for column in names]
    assert len(columns) == len(set(columns))
    assert {field.name for field in (*ROW, *JOINED, *DERIVED)} - set(columns) == {"remote"}


def test_messages_hold_the_rows(file: Path) -> None:
    table = data()
    state, command, run = (read(file, topic) for topic in ("/state", "/command", "/run"))
    assert len(state) == len(command) == len(run) == len(table)
    for row in (0, 230, 500):
        for slot in (0, 3, 28):
            assert state[row]["q"][NAMES[slot]] == pytest.approx(table["q"][row, slot])
            assert command[row]["action_sent"][NAMES[slot]] == pytest.approx(table["action_sent"][row, slot])
        assert state[row]["quat_wxyz"]["x"] == pytest.approx(table["quat_wxyz"][row, 1])
        assert run[row]["mode"] == table["mode"][row]
    motors = read(file, "/motors")
    assert motors[5]["motor_temperature"][NAMES[2]] == {"casing": 35, "winding": 35}


def test_times_are_the_wall_clock_at_which_the_state_was_taken(file: Path, rollout: Path) -> None:
    with Rollout(rollout) as opened:
        clock = json.loads(opened.attributes["clock"])
    wanted = data()["recv_ns"] - clock["monotonic_ns"] + clock["wall_ns"]
    with file.open("rb") as stream:
        messages = list(make_reader(stream).iter_messages(topics=["/state"]))
    assert [message.log_time for _, _, message in messages] == wanted.tolist()
    assert [message.sequence for _, _, message in messages] == list(range(len(wanted)))


def test_every_message_fits_its_schema(file: Path) -> None:
    with file.open("rb") as stream:
        reader = make_reader(stream)
        summary = reader.get_summary()
        assert summary is not None
        seen = set()
        for schema, channel, message in reader.iter_messages():
            assert schema is not None
            assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
            if message.sequence % 97 == 0 or channel.topic == "/log":
                _check(json.loads(message.data), json.loads(schema.data), channel.topic)
            seen.add(channel.topic)
    assert seen == {channel.topic for channel in summary.channels.values()}
    assert seen >= {"/state", "/joint_states", "/tf", "/log", "/policy/walk", "/estimates"}


def _check(value: Any, schema: dict[str, Any], where: str) -> None:
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "null": type(None),
    }
    allowed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert any(isinstance(value, kinds[kind]) for kind in allowed), f"{where}: {value!r} is no {allowed}"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, part in value.items():
            _check(
                part,
                properties[name] if name in properties else schema["additionalProperties"],
                f"{where}.{name}",
            )
        assert not properties or set(value) == set(properties), where
    if isinstance(value, list):
        for part in value:
            _check(part, schema["items"], where)


def test_policy_messages_come_where_it_was_in_charge(file: Path) -> None:
    table = data()
    found = read(file, "/policy/walk")
    rows = np.flatnonzero(table["policy"] == 0)
    assert len(found) == len(rows)
    np.testing.assert_allclose(found[3]["obs"], table["obs"][rows[3]], rtol=1e-6)
    np.testing.assert_allclose(found[3]["extras"]["pre_tanh"], table["extras"][rows[3]], rtol=1e-6)


def test_foxglove_schemas_carry_the_robot(file: Path) -> None:
    joints = read(file, "/joint_states")[300]["joints"]
    assert [joint["name"] for joint in joints] == list(NAMES)
    assert joints[4]["effort"] == pytest.approx(data()["tau_est"][300, 4])
    frame = read(file, "/tf")[300]
    assert (frame["parent_frame_id"], frame["child_frame_id"]) == ("world", "pelvis")
    assert frame["translation"]["x"] == pytest.approx(data()["external_pose"][300, 0])


def test_the_log_tells_every_change(file: Path) -> None:
    lines = [(message["line"], message["message"]) for message in read(file, "/log")]
    assert lines[:5] == [
        (0, "mode damp"),
        (20, "mode ramp"),
        (170, "mode hold"),
        (POLICY_START, "mode policy"),
        (300, "mark 1"),
    ]


def test_what_was_never_known_has_no_field_and_is_named(poseless: Path, tmp_path: Path) -> None:
    made = export([poseless], "mcap", tmp_path / "out", Wish())
    (path,) = map(Path, made.files)
    assert path == tmp_path / "out" / f"{poseless.stem}.mcap"
    assert set(made.missing) == NEVER_KNOWN
    assert "external_pose" not in read(path, "/estimates")[0]
    frame = read(path, "/tf")[0]
    assert frame["parent_frame_id"] == "imu"
    with path.open("rb") as stream:
        (metadata,) = make_reader(stream).iter_metadata()
    assert set(json.loads(metadata.metadata["missing"])) == NEVER_KNOWN
    assert metadata.metadata["robot"] == "g1_29dof"


def test_a_stale_external_pose_is_no_transform(tmp_path: Path) -> None:
    table = data()
    table["external_age_s"][:10] = 0.5
    path = tmp_path / "stale.mcap"
    export([write(tmp_path / "rollouts", table)], "mcap", path, Wish())
    parents = [frame["parent_frame_id"] for frame in read(path, "/tf")]
    assert parents[:10] == ["imu"] * 10
    assert set(parents[10:]) == {"world"}
