"""Parquet with everything of a rollout, for pandas, polars, DuckDB and the like; one file a rollout.

One row a tick, as in the group `rollout`; arrays are lists, in the order that the field's metadata names.
Whether a row and the next one are a transition stands beside it (`next_valid`, `next_dt_s`), since only
`RolloutDataset` would know otherwise. A policy's columns (`policy0_obs`, ...) are null where it was not in
charge. The file's metadata holds the attributes of the rollout, `units` and what the columns mean as JSON.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onboard.logging.export.files import write_file
from onboard.logging.export.messages import FIELDS, attribute_texts, axis_names, unknown_columns
from onboard.logging.layout import POLICY_FIELDS
from onboard.logging.rollout import PolicyLog, Rollout

BLOCK_ROWS = 8192
"""Rows of a row group."""

TRANSITION = {
    "next_valid": "whether the next row is what this row's action led to",
    "next_dt_s": "s to the next row by the robot's clock; NaN in the last row",
}


def export(rollout: Rollout, path: Path) -> list[str]:
    """Write one rollout.

    Returns:
        The columns that hold nothing because the run never knew them.

    Raises:
        RolloutError: the rollout is damaged or the disk refuses.
    """
    unknown = unknown_columns(rollout)
    schema = _schema(rollout, unknown)

    def fill(file: object) -> None:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for block in _blocks(rollout):
                writer.write_table(pa.table(block, schema))

    write_file(path, fill)
    return unknown


def _schema(rollout: Rollout, unknown: list[str]) -> pa.Schema:
    fields = [_field(name, rollout) for name in FIELDS]
    fields += [
        pa.field("next_valid", pa.bool_(), metadata={"about": TRANSITION["next_valid"]}),
        pa.field("next_dt_s", pa.float64(), metadata={"unit": "s", "about": TRANSITION["next_dt_s"]}),
    ]
    for index, policy in enumerate(rollout.policies):
        names = {name: f"{name} of {policy.name}" for name in _policy_columns(policy)}
        fields += [
            pa.field(f"policy{index}_{name}", pa.list_(pa.float32()), metadata={"about": about})
            for name, about in names.items()
        ]
    units = {name: field.unit for name, field in FIELDS.items() if field.unit}
    about = {name: field.about for name, field in FIELDS.items()} | TRANSITION
    texts = {"units": json.dumps(units), "about": json.dumps(about), "missing": json.dumps(unknown)}
    return pa.schema(fields, metadata={**attribute_texts(rollout), **texts})


def _field(name: str, rollout: Rollout) -> pa.Field:
    field = FIELDS[name]
    kind = pa.from_numpy_dtype(np.dtype(field.code))
    for length in reversed(field.shape):
        kind = pa.list_(kind, length)
    axes = axis_names(name, rollout)
    named = {"names": json.dumps(axes)} if axes else {}
    return pa.field(name, kind, metadata={"unit": field.unit, "about": field.about, **named})


def _policy_columns(policy: PolicyLog) -> list[str]:
    return [*(field.name for field in POLICY_FIELDS[:-1]), *policy.extras]


def _blocks(rollout: Rollout) -> Iterator[list[pa.Array]]:
    """Columns in the order of the schema, a row group each time."""
    transitions = rollout.transitions()
    valid, dt_s = np.append(transitions.valid, False), np.append(transitions.dt_s, np.nan)
    for start in range(0, len(rollout), BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, len(rollout)))
        arrays = [list_array(rollout.column(name, block)) for name in FIELDS]
        arrays += [pa.array(valid[block]), pa.array(dt_s[block])]
        for policy in rollout.policies:
            arrays += _policy_arrays(policy, block)
        yield arrays


def _policy_arrays(policy: PolicyLog, block: slice) -> list[pa.Array]:
    """Columns of one policy over a block; null where it was not in charge."""
    at = slice(*np.searchsorted(policy.rows, [block.start, block.stop]).tolist())
    present = np.zeros(block.stop - block.start, np.bool_)
    present[policy.rows[at] - block.start] = True
    return [_sparse_lists(policy.column(name, at), present) for name in _policy_columns(policy)]


def list_array(values: np.ndarray) -> pa.Array:
    """(n, ...) numbers as n rows of lists of a fixed size."""
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    for length in reversed(values.shape[1:]):
        flat = pa.FixedSizeListArray.from_arrays(flat, length)
    return flat


def _sparse_lists(values: np.ndarray, present: np.ndarray) -> pa.Array:
    """(m, width) numbers as lists in the m rows that are present, null in the others."""
    starts = np.append(0, np.cumsum(present * values.shape[1])).astype(np.int32)
    offsets = pa.array(starts, mask=np.append(~present, False))
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(values).reshape(-1)))
