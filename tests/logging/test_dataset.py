"""Datasets: samples compared with rows read one by one, over gaps, resets and unsafe stretches."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from onboard.configs.errors import RolloutError
from onboard.configs.events import Arm, Mode, Tier
from onboard.logging import dataset as module
from onboard.logging.batch import Batch, join
from onboard.logging.convert import convert
from onboard.logging.dataset import RolloutDataset
from onboard.logging.layout import SafetyFlag
from onboard.logging.preprocess.contact import Phase, Support
from onboard.logging.rollout import Rollout
from onboard.logging.selection import Select
from tests.logging.synthetic import info, journal, rows

STEPS = 4
EVERYTHING = Select(safe=False)

Change = Callable[[np.ndarray], None]


def write(folder: Path, data: np.ndarray, name: str) -> Path:
    (folder / name).mkdir()
    return convert(journal(folder / name, data))


def troubled() -> np.ndarray:
    """A walk with a gap, a reset, a fall, a hot motor and two arms."""
    data = rows(1, ((30, Mode.RAMP), (400, Mode.POLICY), (60, Mode.DAMP)))
    data["tick"][100:] += 3
    data["robot_tick"][100:] += 60
    data["episode"][180:] = 1
    data["safety_flag"][240:250] = SafetyFlag.FALL
    data["tier"][300] = Tier.SETTLE
    data["tier"][310] = Tier.WARN
    data["arm"] = np.where(np.arange(len(data)) < 200, Arm.DROP, Arm.KEEP)
    data["send_ns"][350] = -1
    return data


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("dataset")
    return [write(folder, rows(), "walk"), write(folder, troubled(), "troubled")]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks so short that samples lie at their edges."""
    monkeypatch.setattr(module, "CHUNK_ROWS", 64)
    monkeypatch.setattr(module, "POOL_CHUNKS", 3)


def everything(files: list[Path], size: int, seed: int | None = None, **options: object) -> Batch:
    with RolloutDataset(files, history=STEPS, **options) as data:  # type: ignore[arg-type]
        return join(list(data.batches(size, seed=seed)))


def promised(path: Path) -> list[int]:
    """Rows that may be learned from, found row by row."""
    good = []
    with Rollout(path) as rollout:
        valid, tier = rollout.transitions().valid, rollout.column("tier")
        for row in range(STEPS, len(rollout) - 1):
            chain = range(row - STEPS, row + 1)
            if all(valid[k] and tier[k] <= Tier.WARN and tier[k + 1] <= Tier.WARN for k in chain):
                good.append(row)
    return good


def test_safe_samples_are_exactly_those_with_an_unbroken_past_and_a_valid_next(files: list[Path]) -> None:
    batch = everything(files, 50)
    for file, path in enumerate(files):
        assert batch.row[batch.file == file].tolist() == promised(path)
    assert batch.valid.all()
    lost = set(range(30 + 400)) - set(batch.row[batch.file == 1].tolist())
    for row, reach in ((99, STEPS), (179, STEPS), (249, STEPS), (300, STEPS), (350, STEPS)):
        assert set(range(row, row + reach + 1)) <= lost


def test_samples_hold_the_rows_they_name(files: list[Path]) -> None:
    batch = everything(files, 77, columns=("command", "arm"))
    sources = [rows(), troubled()]
    for k in range(0, len(batch), 13):
        data, row = sources[batch.file[k]], int(batch.row[k])
        for name in ("q", "dq", "quat_wxyz", "gyro_body"):
            np.testing.assert_array_equal(batch.state[name][k], data[name][row])
            np.testing.assert_array_equal(batch.next_state[name][k], data[name][row + 1])
        for name in ("q", "dq", "action_sent"):
            np.testing.assert_array_equal(batch.history[name][k], data[name][row - STEPS : row])
        np.testing.assert_array_equal(batch.sent_action[k], data["action_sent"][row])
        np.testing.assert_array_equal(batch.contact[k], data["contact"][row])
        np.testing.assert_array_equal(batch.columns["command"][k], data["command"][row])
        if data["policy"][row] == 0:
            np.testing.assert_array_equal(batch.base_action[k], data["action_policy"][row])
        else:
            assert np.isnan(batch.base_action[k]).all()
    np.testing.assert_allclose(batch.dt_s, 0.02)


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_every_size_gives_the_same_samples(files: list[Path], size: int) -> None:
    with RolloutDataset(files, history=STEPS) as data:
        sizes = [len(batch) for batch in data.batches(size)]
        total = len(data)
    assert sum(sizes) == total
    assert all(found == size for found in sizes[:-1])
    assert sizes[-1] <= size
    np.testing.assert_array_equal(everything(files, size).row, everything(files, 50).row)


def test_shuffled_pass_is_a_permutation_that_its_seed_repeats(files: list[Path]) -> None:
    plain, first, again, other = (everything(files, 33, seed) for seed in (None, 1, 1, 2))
    np.testing.assert_array_equal(first.row, again.row)
    assert (first.row != other.row).any()
    key = first.file.astype(np.int64) * 10_000 + first.row
    assert (np.diff(key) < 0).mean() > 0.3
    sorted_back = first.reordered(np.argsort(key))
    for name in ("q", "dq"):
        np.testing.assert_array_equal(sorted_back.next_state[name], plain.next_state[name])
        np.testing.assert_array_equal(sorted_back.history[name], plain.history[name])


def test_samples_are_taken_by_number_in_any_order(files: list[Path]) -> None:
    plain = everything(files, 50)
    wanted = np.array([300, 3, 3, len(plain) - 1, 0, 150])
    with RolloutDataset(files, history=STEPS) as data:
        taken = data.take(wanted)
        with pytest.raises(IndexError, match=f"dataset of {len(plain)}"):
            data.take(np.array([len(plain)]))
    np.testing.assert_array_equal(taken.row, plain.row[wanted])
    np.testing.assert_array_equal(taken.history["dq"], plain.history["dq"][wanted])


def test_unsafe_rows_come_marked_and_blanked(files: list[Path]) -> None:
    batch = everything(files, 50, select=EVERYTHING, state=("q", "motor_temperature"))
    assert len(batch) == len(rows()) + len(troubled())
    assert [int(batch.row[k]) for k in np.flatnonzero(batch.valid & (batch.file == 1))] == promised(files[1])
    bad = ~batch.valid
    assert np.isfinite(batch.state["q"]).all()
    assert np.isnan(batch.next_state["q"][bad]).all()
    assert (batch.next_state["motor_temperature"][bad] == 0).all()
    assert np.isnan(batch.history["q"][bad]).all()
    assert np.isnan(batch.dt_s[bad]).all()
    assert np.isfinite(batch.next_state["q"][batch.valid]).all()


def allowed(data: np.ndarray, **columns: object) -> np.ndarray:
    keep = np.ones(len(data), bool)
    for name, value in columns.items():
        keep &= data[name] == value
    return np.flatnonzero(keep)


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (Select(safe=False, arms=[Arm.KEEP]), allowed(troubled(), arm=Arm.KEEP)),
        (Select(safe=False, modes={Mode.RAMP}), allowed(troubled(), mode=Mode.RAMP)),
        (Select(safe=False, policies=["walk"]), allowed(troubled(), policy=0)),
        (
            Select(safe=False, supports=[Support.LEFT]),
            np.flatnonzero((troubled()["contact"] == [1, 0]).all(1)),
        ),
        (Select(safe=False, arms=[Arm.SHADOW]), np.zeros(0, int)),
    ],
)
def test_filters_keep_what_they_name(files: list[Path], select: Select, expected: np.ndarray) -> None:
    with RolloutDataset(files[1:], history=STEPS, select=select) as data:
        batches = list(data.batches(100))
        assert len(data) == len(expected)
    found = np.concatenate([batch.row for batch in batches]) if batches else np.zeros(0, int)
    np.testing.assert_array_equal(found, expected)


def test_contact_phases_reach_over_the_edges_of_what_is_judged_at_once(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    select = Select(safe=False, phases=[Phase.TOUCHDOWN], buffer_ticks=3)
    whole = everything(files[:1], 50, select=select).row
    monkeypatch.setattr("onboard.logging.selection.JUDGED_ROWS", 17)
    np.testing.assert_array_equal(everything(files[:1], 50, select=select).row, whole)
    contact = rows()["contact"]
    touchdowns = np.flatnonzero(((contact[1:] == 1) & (contact[:-1] == 0)).any(1)) + 1
    near = np.unique((touchdowns[:, None] + np.arange(-3, 4)).ravel())
    np.testing.assert_array_equal(whole, near[(near >= 0) & (near < len(contact))])


def test_judging_in_small_blocks_changes_nothing(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = everything(files, 50)
    monkeypatch.setattr("onboard.logging.selection.JUDGED_ROWS", 17)
    np.testing.assert_array_equal(everything(files, 50).row, whole.row)


def test_few_files_are_open_at_a_time_and_none_afterwards(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OPEN_FILES", 3)
    with RolloutDataset(files * 4, history=STEPS) as data:
        samples = sum(map(len, data.batches(100, seed=3)))
        assert samples == len(data) == 4 * len(everything(files, 50))
        assert len(data._open) == 3
    assert not data._open


def test_a_file_shorter_than_the_history_has_no_valid_sample(tmp_path: Path) -> None:
    short = write(tmp_path, rows()[:3], "short")
    with RolloutDataset([short], history=STEPS) as data:
        assert len(data) == 0
        assert list(data.batches(10)) == []
    batch = everything([short], 10, select=EVERYTHING)
    assert len(batch) == 3
    assert np.isnan(batch.history["q"]).all()


def test_a_leftover_journal_is_a_file_like_any_other(tmp_path: Path) -> None:
    path = journal(tmp_path, rows(), finish=False)
    with RolloutDataset([path]) as data:
        assert len(data) > 0


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, files: list[Path]) -> None:
    fast = convert(journal(tmp_path, rows(), run=msgspec.structs.replace(info(), period_s=0.01)))
    with pytest.raises(RolloutError, match=r"at 0\.01 s a tick, unlike .*0\.02 s"):
        RolloutDataset([files[0], fast])
    with pytest.raises(RolloutError, match="no policy run; there are: walk"):
        RolloutDataset(files, select=Select(policies=["run"]))
    with pytest.raises(RolloutError, match="at least one rollout"):
        RolloutDataset([])
    with RolloutDataset(files) as data, pytest.raises(ValueError, match="at least one"):
        next(data.batches(0))
