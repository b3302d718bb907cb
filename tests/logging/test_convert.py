"""Journal to HDF5 and back, on whole and broken journals and on disks without room."""

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onboard.configs.errors import RolloutError
from onboard.logging.convert import convert, lowstate_journal, rollout_path
from onboard.logging.hdf5 import QuietFile, silent
from onboard.logging.journal import Journal, create_journal
from onboard.logging.layout import JOINED, LOWSTATE, ROW, lowstate_dtype
from tests.logging.synthetic import WALK, info, journal, rows


def test_every_column_comes_back_equal(tmp_path: Path) -> None:
    data = rows()
    with h5py.File(convert(journal(tmp_path, data)), "r") as h5:
        group = h5["rollout"]
        for field in (*ROW, *JOINED):
            np.testing.assert_array_equal(group[field.name][:], data[field.name], err_msg=field.name)
            assert group[field.name].dtype == np.dtype(field.code), field.name
            assert group[field.name].attrs["unit"] == field.unit
        at = np.flatnonzero(data["policy"] == 0)
        policy = h5["policies/0"]
        np.testing.assert_array_equal(policy["row"][:], at)
        for name in ("obs", "action_policy", "action_residual", "action_combined"):
            np.testing.assert_array_equal(policy[name][:], data[name][at], err_msg=name)
        np.testing.assert_array_equal(policy["extras/pre_tanh"][:], data["extras"][at])
        np.testing.assert_allclose(group["time_s"][:], np.arange(len(data)) * 0.02, atol=1e-9)


def test_root_attributes_tell_the_run_apart(tmp_path: Path) -> None:
    run = info("überall 🤖", contract="terms: [gyro]\n" * 20_000)
    with h5py.File(convert(journal(tmp_path, rows(), run=run)), "r") as h5:
        attributes = dict(h5.attrs)
    assert attributes["schema"] == 1
    assert attributes["onboard_version"] == run.version
    assert list(attributes["joint_names"]) == list(run.joint_names)
    assert attributes["contract"][0] == run.policies[0].contract, "longer than HDF5's 64 KiB for an attribute"
    assert json.loads(attributes["models_sha256"]) == [run.policies[0].models]
    assert json.loads(attributes["config"]) == run.config
    assert json.loads(attributes["clock"])["tick_s"] == 1e-3
    assert json.loads(attributes["facts"]) == {"received": 14_000, "lost": 0}
    assert attributes["end_reason"] == "emergency stop by the remote"
    assert attributes["note"] == "überall 🤖"
    assert (attributes["completeness"], attributes["rows_lost"]) == ("complete", 0)
    assert attributes["period_s"] == 0.02


def test_numbers_with_names_are_explained(tmp_path: Path) -> None:
    with h5py.File(convert(journal(tmp_path, rows())), "r") as h5:
        assert json.loads(h5["rollout/mode"].attrs["values"])["policy"] == 3
        assert json.loads(h5["rollout/safety_events"].attrs["values"])["emergency_stop"] == 41


def test_conversion_can_be_repeated(tmp_path: Path) -> None:
    path = journal(tmp_path, rows())
    first = convert(path).read_bytes()
    assert convert(path).read_bytes() == first
    assert path.exists()
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".h5", ".journal"], "nothing else is left behind"


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0.2, 1), flipped=st.none() | st.floats(0.3, 0.99))
def test_conversion_of_a_broken_journal_can_be_repeated(
    tmp_path: Path, cut: float, flipped: float | None
) -> None:
    """Cut anywhere and with a wrong byte anywhere: the second file is the first one again."""
    path = journal(tmp_path, rows()[:60])
    data = bytearray(path.read_bytes())
    if flipped is not None:
        data[int(flipped * len(data))] ^= 0xFF
    path.write_bytes(data[: int(cut * len(data))])
    first = convert(path).read_bytes()
    assert convert(path).read_bytes() == first
    path.unlink()


def test_unclosed_and_cut_journals_say_so(tmp_path: Path) -> None:
    data = rows()
    path = journal(tmp_path, data, finish=False)
    with h5py.File(convert(path), "r") as h5:
        assert h5.attrs["completeness"] == "recovered"
        assert "not closed in order" in h5.attrs["end_reason"]
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 100)
    with h5py.File(convert(path), "r") as h5:
        assert h5.attrs["completeness"] == "truncated"
        np.testing.assert_array_equal(h5["rollout/q"][:], data["q"][:-1])


def test_counted_losses_are_in_the_file(tmp_path: Path) -> None:
    with h5py.File(convert(journal(tmp_path, rows(), lost=(300, 309))), "r") as h5:
        assert h5.attrs["completeness"] == "truncated"
        assert h5.attrs["completeness_why"] == "10 rows lost: overwritten"
        assert h5.attrs["rows_lost"] == 10
        assert len(h5["rollout/q"]) == len(rows()) - 10


def test_journal_without_rows_is_an_empty_rollout(tmp_path: Path) -> None:
    with h5py.File(convert(journal(tmp_path, rows()[:0])), "r") as h5:
        assert len(h5["rollout/q"]) == len(h5["policies/0/obs"]) == 0


def test_full_rate_stream_shares_the_time_axis(tmp_path: Path) -> None:
    data = rows()
    path = journal(tmp_path, data)
    stream = lowstate_journal(path)
    create_journal(stream, lowstate_dtype(), {})
    writer = Journal(stream)
    samples = np.zeros(900, lowstate_dtype())
    samples["robot_tick"] = 1_040 + 2 * np.arange(900)
    samples["recv_ns"] = data["recv_ns"][2] + 2_000_000 * np.arange(900)
    samples["q"] = np.random.default_rng(1).normal(size=(900, 29))
    for seq, sample in enumerate(samples, 1):
        writer.append(seq, np.array(sample))
    writer.finish({})
    with h5py.File(convert(path), "r") as h5:
        for field in LOWSTATE:
            np.testing.assert_array_equal(
                h5["lowstate"][field.name][:], samples[field.name], err_msg=field.name
            )
        np.testing.assert_allclose(h5["lowstate/time_s"][:], 0.04 + 0.002 * np.arange(900), atol=1e-9)


def test_name_carries_time_robot_policy_and_arm(tmp_path: Path) -> None:
    run = msgspec.structs.replace(info(), wall_ns=1_754_650_800_000_000_000)
    assert run.stem == "20250808T110000Z_g1_29dof_walk_none"
    path = journal(tmp_path, rows()[:3], run=run)
    assert convert(path).name == "20250808T110000Z_g1_29dof_walk_none.h5"
    assert rollout_path(path, tmp_path / "elsewhere").parent == tmp_path / "elsewhere"


def test_hostile_policy_name_stays_in_the_folder() -> None:
    policy = msgspec.structs.replace(info().policies[0], shape=WALK._replace(name="../../etc/pass wd"))
    assert "/" not in msgspec.structs.replace(info(), policies=(policy,)).stem


def test_no_room_is_one_line_that_says_what_to_do(tmp_path: Path, tiny_disk: Path) -> None:
    path = journal(tmp_path, rows())
    with pytest.raises(
        RolloutError, match=r"MB free, .* needs 2 MB; make room, then: onboard log recover"
    ) as error:
        convert(path, tiny_disk)
    assert str(path) in str(error.value)
    assert list(tiny_disk.iterdir()) == []


def test_disk_that_fills_up_under_hdf5_crashes_nothing(tmp_path: Path, tiny_disk: Path) -> None:
    """In a process of its own, since what is tested is that this ends without a crash."""
    path = journal(tmp_path, rows())
    script = f"""
import os, shutil, collections
from pathlib import Path
from onboard.configs.errors import RolloutError
from onboard.logging.convert import convert
os.posix_fallocate = lambda *_: None
shutil.disk_usage = lambda _: collections.namedtuple("Usage", "free")(1 << 40)
try:
    convert(Path({str(path)!r}), Path({str(tiny_disk)!r}))
except RolloutError as error:
    raise SystemExit(str(error))
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 1, result
    assert "(No space left on device); make room" in result.stderr
    assert list(tiny_disk.iterdir()) == []
    assert convert(path).exists(), "the journal is untouched and converts elsewhere"


def test_quiet_file_keeps_the_first_error_for_the_end(tiny_disk: Path) -> None:
    with QuietFile(tiny_disk / "file", 100_000, silent) as file:
        assert file.seek(0, os.SEEK_END) == 0, "reserved room does not show"
        assert file.write(bytes(1 << 20)) == 1 << 20
        with pytest.raises(OSError, match="No space left"):
            file.give_back()


def test_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    create_journal(tmp_path / "a.journal", lowstate_dtype(), {"robot": "g1"})
    with pytest.raises(RolloutError, match="does not describe a run"):
        convert(tmp_path / "a.journal")
    create_journal(tmp_path / "b.journal", lowstate_dtype(), msgspec.to_builtins(info()))
    with pytest.raises(RolloutError, match="its rows have no"):
        convert(tmp_path / "b.journal")


def test_every_step_of_the_work_is_told(tmp_path: Path) -> None:
    steps: list[int] = []
    convert(journal(tmp_path, rows()), tell=lambda: steps.append(1))
    assert len(steps) > len(ROW)
