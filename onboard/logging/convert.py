"""Journal to rollout file: `<stem>.journal` (and `<stem>.lowstate.journal`) become `<stem>.h5`."""

import json
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from onboard.configs.errors import RolloutError
from onboard.configs.events import Arm, Event, Mode, Tier
from onboard.logging.hdf5 import Tell, silent, write_whole
from onboard.logging.layout import (
    DERIVED,
    JOINED,
    LIMITS,
    LOWSTATE,
    POLICY_FIELDS,
    ROW,
    ROW_INDEX,
    Field,
    PolicyShape,
    SafetyFlag,
)
from onboard.logging.leftover import adopt
from onboard.logging.recovery import Scan, read_rows, scan
from onboard.logging.robot_clock import RobotClock, read_clock
from onboard.logging.run_info import RunInfo, from_meta
from onboard.runtime.gateway_core import GatewayState

SCHEMA = 1
"""Version of the rollout file's layout."""

JOURNAL_SUFFIX = ".journal"
LOWSTATE_SUFFIX = ".lowstate.journal"


def _named(numbers: type[IntEnum]) -> dict[str, int]:
    return {number.name.lower(): int(number) for number in numbers}


_VALUES: Mapping[str, dict[str, int]] = {
    "mode": _named(Mode),
    "tier": _named(Tier),
    "arm": _named(Arm),
    "safety_flag": _named(SafetyFlag),
    "safety_events": _named(Event),
    "gateway_state": _named(GatewayState),
    "limit_mask": LIMITS,
}
"""Datasets whose numbers have names; those of `safety_events` are bit numbers, of `limit_mask` bits."""


class Stream(NamedTuple):
    """The full-rate stream.

    Attributes:
        samples: of the type `layout.lowstate_dtype`.
        lost: samples that the recorder had and could not write.
    """

    samples: np.ndarray
    lost: int


class Rows:
    """Rows of one type in several blocks, read column by column as if they were one array.

    Args:
        blocks: structured arrays of the same type, in order.
    """

    def __init__(self, *blocks: np.ndarray) -> None:
        self._blocks = [block for block in blocks if len(block)] or list(blocks[:1])
        self.dtype = blocks[0].dtype
        self.nbytes = sum(block.nbytes for block in blocks)

    def __len__(self) -> int:
        return sum(len(block) for block in self._blocks)

    def __getitem__(self, name: str) -> np.ndarray:
        columns = [block[name] for block in self._blocks]
        return columns[0] if len(columns) == 1 else np.concatenate(columns)


def convert(journal: Path, folder: Path | None = None, tell: Tell = silent) -> Path:
    """Write the rollout file of a journal, whole or broken; the journal stays.

    Doing it again gives the same file again. Where the run was not closed in order and its shared memory
    is still there, the rows that only that holds come along.

    Args:
        journal: of a run that has ended, in whatever way.
        folder: where to; beside the journal by default.
        tell: called now and then while the file is written.

    Raises:
        RolloutError: not a journal, or no room for the rollout.
    """
    found = scan(journal)
    info = from_meta(found.header.meta, str(journal))
    found, rest = adopt(found, info)
    rows = Rows(read_rows(journal, found), rest)
    if other := [field.name for field in (*ROW, *JOINED, *POLICY_FIELDS) if not _holds(rows.dtype, field)]:
        raise RolloutError(
            f"{journal}: its rows have no {', '.join(other)}, or of another type; another version wrote it"
        )
    _check_widths(journal, info, rows.dtype)
    stream = _read_stream(lowstate_journal(journal))
    target = rollout_path(journal, folder)
    retry = f"make room, then: onboard log recover {journal} --out DIR"
    write_rollout(target, info, found, rows, stream, retry, tell)
    return target


def count_rows(journal: Path) -> int:
    """Rows that `convert` would write now, those in shared memory included.

    Raises:
        RolloutError: not a journal of a run.
    """
    found = scan(journal)
    account, rest = adopt(found, from_meta(found.header.meta, str(journal)))
    return account.row_count + len(rest)


def _holds(dtype: np.dtype, field: Field) -> bool:
    """A row has this field; those of policies are as wide as the widest policy."""
    if field.name not in (dtype.names or ()):
        return False
    found = dtype[field.name]
    shape = found.shape if field in POLICY_FIELDS and len(found.shape) == 1 else field.shape
    return bool(found.base == np.dtype(field.code) and found.shape == shape)


def _check_widths(journal: Path, info: RunInfo, dtype: np.dtype) -> None:
    """Policies fit into the rows, and what they call their outputs can be the name of a dataset."""
    for policy in info.policies:
        shape = policy.shape
        widths = {"obs": shape.obs, "action_policy": shape.action, "extras": shape.extras_width}
        least = min([*widths.values(), *(width for _, width in shape.extras)])
        names = [name for name, _ in shape.extras]
        odd = [name for name in names if not name or "/" in name or "\0" in name or name == "."]
        if (
            least < 0
            or odd
            or len(set(names)) != len(names)
            or any(width > dtype[name].shape[0] for name, width in widths.items())
        ):
            raise RolloutError(f"{journal}: its header gives {shape.name} outputs that its rows do not hold")


def write_rollout(
    target: Path,
    info: RunInfo,
    found: Scan,
    rows: Rows,
    stream: Stream | None,
    retry: str,
    tell: Tell = silent,
) -> None:
    """Write the rollout file of rows in memory.

    Args:
        target: the file.
        info: about the run.
        found: what the scan of its journal said about gaps and the end.
        rows: of the type `layout.journal_dtype`.
        stream: the full-rate stream, or None.
        retry: what to do on a full disk, for the message.
        tell: called now and then while the file is written.

    Raises:
        RolloutError: no room, or the disk refuses.
    """

    def fill(h5: h5py.File) -> None:
        clock = read_clock(rows["robot_tick"], rows["recv_ns"])
        _write_attributes(h5, info, found, rows, clock)
        _write_rollout(h5.create_group("rollout"), rows, clock)
        for index, policy in enumerate(info.policies):
            _write_policy(h5.create_group(f"policies/{index}"), policy.shape, rows, index)
        if stream is not None:
            _write_lowstate(h5.create_group("lowstate"), stream, rows, clock)

    size = (
        rows.nbytes
        + (stream.samples.nbytes if stream is not None else 0)
        + 16 * len(rows)
        + 2 * found.header.size
    )
    write_whole(target, size, fill, retry, tell)


def rollout_path(journal: Path, folder: Path | None = None) -> Path:
    """Where the rollout of a journal goes."""
    return (folder or journal.parent) / f"{journal.name.removesuffix(JOURNAL_SUFFIX)}.h5"


def lowstate_journal(journal: Path) -> Path:
    """Where the full-rate stream of a run is kept while it lasts."""
    return journal.with_name(journal.name.removesuffix(JOURNAL_SUFFIX) + LOWSTATE_SUFFIX)


def remove_journals(journal: Path) -> None:
    """Remove what a rollout was made of, once it is there; the main one first, it needs the other."""
    for path in (journal, lowstate_journal(journal)):
        path.unlink(missing_ok=True)


def _read_stream(path: Path) -> Stream | None:
    """The full-rate stream; None where the run recorded none or nothing of it is left."""
    if not path.exists():
        return None
    found = scan(path)
    samples = read_rows(path, found)
    known = set(samples.dtype.names or ()) >= {f.name for f in LOWSTATE}
    return Stream(samples, found.lost) if known else None


def _write_attributes(h5: h5py.File, info: RunInfo, found: Scan, rows: Rows, clock: RobotClock) -> None:
    completeness, why = found.completeness
    facts = dict(found.end or {})
    known = rows["source_time_ns"] > 0
    offset_ns = rows["recv_ns"][known] - rows["source_time_ns"][known]
    calibration = {
        "wall_ns": info.wall_ns,
        "monotonic_ns": info.monotonic_ns,
        "tick_s": clock.tick_s,
        "measured_tick_s": clock.measured_tick_s if np.isfinite(clock.measured_tick_s) else None,
        "min_recv_minus_source_ns": int(offset_ns.min()) if len(offset_ns) else None,
    }
    h5.attrs.update(
        {
            "schema": SCHEMA,
            "onboard_version": info.version,
            "onboard_commit": info.commit,
            "started_utc": info.started_utc,
            "robot": info.robot,
            "joint_names": list(info.joint_names),
            "period_s": info.period_s,
            "arm": info.arm,
            "note": info.note,
            "config": json.dumps(info.config),
            "policies": [policy.shape.name for policy in info.policies],
            "contract": [policy.contract for policy in info.policies],
            "residual": [policy.residual for policy in info.policies],
            "models_sha256": json.dumps([policy.models for policy in info.policies]),
            "software": json.dumps(info.software),
            "machine": json.dumps(info.machine),
            "clock": json.dumps(calibration),
            "check": info.check,
            "completeness": completeness,
            "completeness_why": why,
            "rows_lost": found.lost,
            "end_reason": str(facts.pop("end_reason", "unknown: the run was not closed in order")),
            "facts": json.dumps(facts),
        }
    )


def _write_rollout(group: h5py.Group, rows: Rows, clock: RobotClock) -> None:
    for field in (*ROW, *JOINED):
        _put(group, field, rows[field.name])
    _put_clock(group, clock.time_s, clock.epoch)


def _write_policy(group: h5py.Group, shape: PolicyShape, rows: Rows, index: int) -> None:
    group.attrs["name"] = shape.name
    at = np.flatnonzero(rows["policy"] == index)
    _put(group, ROW_INDEX, at)
    for field in POLICY_FIELDS[:-1]:
        width = shape.obs if field.name == "obs" else shape.action
        _put(group, field, rows[field.name][at, :width])
    extras = group.create_group("extras")
    start = 0
    for name, width in shape.extras:
        _put(
            extras,
            Field(name, "<f4", (), "", "extra output of the network"),
            rows["extras"][at, start : start + width],
        )
        start += width


def _write_lowstate(group: h5py.Group, stream: Stream, rows: Rows, clock: RobotClock) -> None:
    samples = stream.samples
    group.attrs["samples_lost"] = stream.lost
    for field in LOWSTATE:
        _put(group, field, samples[field.name])
    own = read_clock(samples["robot_tick"], samples["recv_ns"], clock.tick_s)
    time_s = own.time_s
    if len(rows) and len(samples):
        ahead = np.subtract(samples["robot_tick"][0], rows["robot_tick"][0], dtype=np.uint32).astype(np.int32)
        time_s = time_s + float(ahead) * clock.tick_s
    _put_clock(group, time_s, own.epoch)


def _put_clock(group: h5py.Group, time_s: np.ndarray, epoch: np.ndarray) -> None:
    for field in DERIVED:
        _put(group, field, time_s if field.name == "time_s" else epoch)


def _put(group: h5py.Group, field: Field, values: np.ndarray) -> None:
    dataset = group.create_dataset(field.name, data=values, dtype=np.dtype(field.code))
    dataset.attrs["unit"] = field.unit
    dataset.attrs["about"] = field.about
    if field.name in _VALUES:
        dataset.attrs["values"] = json.dumps(_VALUES[field.name])
