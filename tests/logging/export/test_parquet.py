"""Parquet, read back as pandas and other readers of columns do."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from onboard.configs.events import Mode
from onboard.logging.export.formats import Exported, Wish, export
from onboard.logging.export.messages import FIELDS
from onboard.logging.rollout import Rollout
from tests.logging.export.recorded import NAMES, data, write

MISSING = ["torso_quat_wxyz", "torso_gyro", "contact_force", "external_velocity"]


@pytest.fixture(scope="module")
def file(rollout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parquet") / "walk.parquet"
    export([rollout], "parquet", path, Wish())
    return path


def test_every_column_of_the_rollout_is_in_it_bit_by_bit(file: Path, rollout: Path) -> None:
    table = pq.read_table(file)
    with Rollout(rollout) as opened:
        wanted = {name: opened.column(name) for name in FIELDS}
    for name, values in wanted.items():
        flat = table[name].combine_chunks()
        for _ in values.shape[1:]:
            flat = flat.flatten()
        found = flat.to_numpy(zero_copy_only=False).reshape(values.shape)
        assert found.dtype == values.dtype.newbyteorder("="), name
        np.testing.assert_array_equal(found, values, err_msg=name)


def test_pandas_reads_lists_and_nulls(file: Path, rollout: Path) -> None:
    frame = pd.read_parquet(file)
    table = data()
    assert len(frame) == len(table)
    np.testing.assert_array_equal(np.stack(frame["q"].tolist()), table["q"])
    walking = frame["mode"] == Mode.POLICY
    assert frame["policy0_obs"].notna().equals(walking)
    with Rollout(rollout) as opened:
        for name in ("obs", "action_policy", "action_residual", "action_combined"):
            found = np.stack(frame.loc[walking, f"policy0_{name}"].tolist())
            np.testing.assert_array_equal(found, opened.policies[0].column(name))


def test_transitions_stand_beside_the_rows(tmp_path: Path) -> None:
    broken = data()
    broken["tick"][300:] += 5
    export([write(tmp_path / "in", broken)], "parquet", tmp_path / "out.parquet", Wish())
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert frame["next_valid"][225:299].all()
    assert not frame["next_valid"][299], "a gap"
    assert not frame["next_valid"].iloc[-1]
    assert frame["next_dt_s"][230] == pytest.approx(0.02, abs=0.005)


def test_names_units_and_contract_stand_in_the_metadata(file: Path, rollout: Path) -> None:
    schema = pq.read_schema(file)
    with Rollout(rollout) as opened:
        assert schema.metadata[b"schema"].decode() == str(opened.attributes["schema"])
        contracts = json.loads(schema.metadata[b"contract"])
        assert contracts == list(opened.attributes["contract"])
    assert json.loads(schema.metadata[b"joint_names"]) == list(NAMES)
    assert json.loads(schema.metadata[b"units"])["tau_est"] == "N·m"
    assert json.loads(schema.metadata[b"missing"]) == MISSING
    q = schema.field("q")
    assert (q.metadata[b"unit"], json.loads(q.metadata[b"names"])) == (b"rad", list(NAMES))
    assert json.loads(schema.field("quat_wxyz").metadata[b"names"]) == ["w", "x", "y", "z"]


def test_several_rollouts_are_several_files(rollout: Path, poseless: Path, tmp_path: Path) -> None:
    made: Exported = export([poseless], "parquet", tmp_path / "all", Wish())
    assert made.files == [str(tmp_path / "all" / f"{poseless.stem}.parquet")]
    assert "external_pose" in made.missing
    assert made.rows == len(data())
