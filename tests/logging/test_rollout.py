"""The reader: whole files, leftover journals, and files that are no rollouts."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import h5py
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from onboard.configs.errors import RolloutError
from onboard.configs.events import Mode
from onboard.configs.robot import load_robot
from onboard.logging.convert import convert
from onboard.logging.layout import DERIVED, JOINED, POLICY_FIELDS, ROW, SafetyFlag
from onboard.logging.record import RolloutRecord
from onboard.logging.rollout import Rollout
from onboard.logging.summary import spread, summarize
from tests.logging.synthetic import journal, rows


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convert(journal(tmp_path_factory.mktemp("rollout"), rows()))


def test_a_record_has_every_column_of_its_row(file: Path) -> None:
    data = rows()
    with Rollout(file) as rollout:
        for index in (0, 254, 300, -1):
            record = rollout[index]
            for field in (*ROW, *JOINED):
                np.testing.assert_array_equal(
                    getattr(record, field.name), data[field.name][index], err_msg=field.name
                )
        assert record.mode is Mode.DAMP
        assert record.safety_flag is SafetyFlag.EMERGENCY_STOP
        assert record.obs is None
        assert record.extras == {}
        walking = rollout[300]
        assert walking.obs is not None
        np.testing.assert_array_equal(walking.obs, data["obs"][300])
        np.testing.assert_array_equal(walking.extras["pre_tanh"], data["extras"][300])
        with pytest.raises(IndexError):
            rollout[len(rollout)]


def test_record_type_names_exactly_what_the_file_has() -> None:
    columns = {field.name for field in (*ROW, *JOINED, *DERIVED, *POLICY_FIELDS)}
    assert {field.name for field in fields(RolloutRecord)} == columns | {"row"}


def test_iteration_gives_every_tick_in_order(file: Path) -> None:
    data = rows()
    with Rollout(file) as rollout:
        records = list(rollout)
        assert [record.row for record in records] == list(range(len(data)))
        np.testing.assert_array_equal([record.q[5] for record in records], data["q"][:, 5])
        assert [record.row for record in records if record.obs is not None] == rollout.policies[
            0
        ].rows.tolist()


def test_columns_are_read_in_part(file: Path) -> None:
    with Rollout(file) as rollout:
        np.testing.assert_array_equal(rollout.column("dq", slice(10, 20)), rows()["dq"][10:20])
        policy = rollout.policies[0]
        assert (policy.name, policy.extras) == ("walk", ("pre_tanh",))
        np.testing.assert_array_equal(policy.column("obs", slice(5)), rows()["obs"][policy.rows[:5]])
        with pytest.raises(RolloutError, match=r"no dataset 'speed'; there are: accel_body"):
            rollout.column("speed")
        with pytest.raises(RolloutError, match="no full-rate stream"):
            rollout.lowstate("q")


def test_leftover_journal_opens_without_a_trace(tmp_path: Path) -> None:
    path = journal(tmp_path, rows(), finish=False)
    with Rollout(path) as rollout:
        assert rollout.completeness == "recovered"
        np.testing.assert_array_equal(rollout.column("q"), rows()["q"])
    assert list(tmp_path.iterdir()) == [path]


def test_missing_rollout_points_at_its_journal(tmp_path: Path) -> None:
    path = journal(tmp_path, rows()[:5])
    with pytest.raises(RolloutError, match="its journal is there; onboard log recover"):
        Rollout(path.with_suffix(".h5"))
    with pytest.raises(RolloutError, match=r"none\.h5: can't be read \(No such file"):
        Rollout(tmp_path / "none.h5")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + bytes(4096)])
def test_what_is_no_rollout_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.h5"
    path.write_bytes(content)
    with pytest.raises(RolloutError, match=r"foreign\.h5") as error:
        Rollout(path)
    assert "\n" not in str(error.value)


def test_other_hdf5_files_are_refused(tmp_path: Path, file: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as h5:
        h5["data"] = [1, 2]
    with pytest.raises(RolloutError, match="not a rollout of onboard"):
        Rollout(tmp_path / "other.h5", check=False)
    with pytest.raises(RolloutError, match="neither a rollout nor a journal"):
        Rollout(tmp_path / "other.h5")
    changes = {
        "future": ("schema", 99, "schema 99"),
        "bare": ("period_s", None, "lacks the attributes period_s"),
    }
    for name, (attribute, value, message) in changes.items():
        path = tmp_path / f"{name}.h5"
        path.write_bytes(file.read_bytes())
        with h5py.File(path, "r+") as h5:
            del h5.attrs[attribute]
            h5.attrs.update({} if value is None else {attribute: value})
        with pytest.raises(RolloutError, match=message):
            Rollout(path, check=False)


def test_a_column_that_is_shorter_than_the_others_is_refused(tmp_path: Path, file: Path) -> None:
    path = tmp_path / "short.h5"
    path.write_bytes(file.read_bytes())
    with h5py.File(path, "r+") as h5:
        values = h5["rollout/dq"][:-1]
        del h5["rollout/dq"]
        h5["rollout/dq"] = values
    with pytest.raises(RolloutError, match="missing or shorter than the others: dq"):
        Rollout(path, check=False)
    with h5py.File(path, "r+") as h5:
        del h5["rollout/dq"]
    with pytest.raises(RolloutError, match="missing or shorter than the others: dq"):
        Rollout(path, check=False)


def _elsewhere(h5: h5py.File, folder: Path) -> None:
    (folder / "secret").write_bytes(bytes(4096))
    h5.create_dataset("rollout/mode", (100,), "u1", external=[(str(folder / "secret"), 0, 100)])


def _virtual(h5: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout((100,), "u1")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "x", (100,))
    h5.create_virtual_dataset("rollout/mode", layout)


def _huge(h5: h5py.File, _folder: Path) -> None:
    h5.create_dataset("rollout/mode", (1 << 40,), "u1")


def _external_link(h5: h5py.File, folder: Path) -> None:
    h5["rollout/mode"] = h5py.ExternalLink(str(folder / "other.h5"), "/x")


def _of_another_type(h5: h5py.File, _folder: Path) -> None:
    h5["rollout/mode"] = np.zeros(100, "f4,i4")


@pytest.mark.parametrize(
    ("put", "message"),
    [
        (_elsewhere, "'mode' keeps its numbers in another file"),
        (_virtual, "'mode' keeps its numbers in another file"),
        (_huge, "'mode' claims more than the file can hold"),
        (_external_link, "'mode' is a link to elsewhere"),
        (_of_another_type, "'mode' is .* expected u1"),
        (lambda h5, _: h5.create_group("rollout/mode"), "'mode' is no dataset"),
    ],
)
def test_a_rollout_that_was_made_to_be_hostile_is_refused_before_it_is_read(
    tmp_path: Path, file: Path, put: Callable[[h5py.File, Path], object], message: str
) -> None:
    path = tmp_path / "hostile.h5"
    path.write_bytes(file.read_bytes())
    with h5py.File(path, "r+") as h5:
        del h5["rollout/mode"]
        put(h5, tmp_path)
    with pytest.raises(RolloutError, match=message):
        Rollout(path, check=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("facts", "{"),
        ("joint_names", ["a"]),
        ("period_s", -1.0),
        ("period_s", np.nan),
        ("robot", 3),
        ("robot", "../g1.yaml"),
    ],
)
def test_an_attribute_of_another_kind_is_refused(
    tmp_path: Path, file: Path, name: str, value: object
) -> None:
    path = tmp_path / "hostile.h5"
    path.write_bytes(file.read_bytes())
    with h5py.File(path, "r+") as h5:
        h5.attrs[name] = value
    with pytest.raises(RolloutError, match=f"attributes that are not what a recorder writes: {name}"):
        Rollout(path, check=False)


@pytest.mark.parametrize("config", ["[]", "{}", '{"robot": ""}', '{"robot": 3}'])
def test_a_rollout_without_its_robot_has_the_shipped_one_of_that_name(
    tmp_path: Path, file: Path, config: str
) -> None:
    path = tmp_path / "old.h5"
    path.write_bytes(file.read_bytes())
    with h5py.File(path, "r+") as h5:
        h5.attrs["config"] = config
    with Rollout(path, check=False) as rollout:
        assert rollout.robot == load_robot("g1_29dof")
        assert rollout.config_text("run") == ""


@given(cut=st.none() | st.floats(0, 0.9999), at=st.floats(0, 1), bit=st.integers(0, 7))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_never_reach_the_hdf5_library(
    tmp_path: Path, file: Path, cut: float | None, at: float, bit: int
) -> None:
    data = bytearray(file.read_bytes())
    if cut is None:
        where = int(at * (len(data) - 1))
        assume(not 20 <= where < 512)  # the user block's text and padding mean nothing
        data[where] ^= 1 << bit
    else:
        del data[int(len(data) * cut) :]
    path = tmp_path / "damaged.h5"
    path.write_bytes(data)
    with pytest.raises(RolloutError, match=r"damaged\.h5: (damaged|neither|\d+ bytes where)"):
        Rollout(path)


def test_summary_says_what_happened(file: Path) -> None:
    with Rollout(file) as rollout:
        summary = summarize(rollout)
    assert summary.modes == pytest.approx({"damp": 1.5, "ramp": 3.0, "hold": 2.0, "policy": 5.0})
    assert (summary.rows, summary.policy_rows, summary.rows_lost) == (575, 250, 0)
    assert summary.rate_hz == pytest.approx(50, abs=0.05)
    assert summary.events == {"emergency_stop": 50}
    assert summary.flags == {"emergency_stop": 50}
    assert (summary.marks, summary.episodes, summary.skipped_ticks, summary.unpublished) == (1, 1, 0, 0)
    assert summary.end_reason == "emergency stop by the remote"
    assert summary.seconds == pytest.approx(574 * 0.02)
    assert summary.facts == {"received": 14_000, "lost": 0}
    assert summary.tick_us is not None
    assert 8 * 5 <= summary.tick_us.p50 <= summary.tick_us.p99 <= summary.tick_us.max <= 8 * 60


def test_summary_of_an_empty_rollout_is_valid_json(tmp_path: Path) -> None:
    with Rollout(journal(tmp_path, rows()[:0])) as rollout:
        summary = summarize(rollout)
    assert (summary.rate_hz, summary.tick_us, summary.seconds) == (None, None, 0.0)
    assert json.loads(msgspec.json.encode(summary))["rows"] == 0
    assert spread(np.array([np.nan, 1.0])) == spread(np.array([1.0]))
