from pathlib import Path

import numpy as np
import pytest

from onboard.logging.layout import (
    JOINED,
    LIMITS,
    POLICY_FIELDS,
    ROW,
    STAGES,
    PolicyShape,
    SafetyFlag,
    blank_record,
    journal_dtype,
    record_dtype,
)
from onboard.runtime.ports import run_layout
from onboard.runtime.shm import Shared, dtype_from_json, dtype_to_json

WALK = PolicyShape("walk", 100, 29)
DANCE = PolicyShape("dance", 154, 23, (("latent", 8), ("pre_tanh", 23)))


def test_row_is_as_wide_as_the_widest_policy_needs() -> None:
    dtype = record_dtype([WALK, DANCE])
    assert dtype["obs"].shape == (154,)
    assert (
        dtype["action_policy"].shape
        == dtype["action_residual"].shape
        == dtype["action_combined"].shape
        == (29,)
    )
    assert dtype["extras"].shape == (31,)
    assert dtype["stage_ns"].shape == (len(STAGES),)


@pytest.mark.parametrize("policies", [[], [WALK], [WALK, DANCE]])
def test_every_field_lies_on_its_own_alignment(policies: list[PolicyShape]) -> None:
    dtype = record_dtype(policies)
    assert set(dtype.names or ()) == {f.name for f in ROW} | {f.name for f in POLICY_FIELDS}
    for name in dtype.names or ():
        kind, offset = dtype.fields[name][:2]  # type: ignore[index]
        assert offset % kind.base.alignment == 0, name


@pytest.mark.parametrize("policies", [[], [DANCE]])
def test_type_survives_the_header_of_a_mapping(policies: list[PolicyShape]) -> None:
    for dtype in (record_dtype(policies), journal_dtype(record_dtype(policies))):
        assert dtype_from_json(dtype_to_json(dtype)) == dtype


def test_record_passes_through_the_ring(tmp_path: Path) -> None:
    dtype = record_dtype([DANCE])
    shared = Shared.create(run_layout(dtype), tmp_path)
    try:
        record = blank_record(dtype)
        record["q"] = np.arange(29)
        record["obs"][:] = 0.5
        seq = shared["record"].push(record)
        out = np.zeros((), dtype)
        assert shared["record"].read(seq, out)
        assert out.tobytes() == record.tobytes()
    finally:
        shared.close()
        shared.unlink()


def test_blank_record_claims_nothing() -> None:
    record = blank_record(record_dtype([WALK]))
    assert record["policy"] == record["motion_index"] == -1
    assert (record["contact"] == -1).all()
    assert np.isnan(record["contact_force"]).all()
    assert np.isnan(record["external_pose"]).all()
    assert np.isnan(record["external_age_s"])


def test_journal_row_is_the_record_and_what_the_gateway_knows() -> None:
    record = record_dtype([WALK])
    dtype = journal_dtype(record)
    assert set(dtype.names or ()) == {f.name for f in JOINED} | set(record.names or ())
    assert all(dtype[name] == record[name] for name in record.names or ())


def test_names_of_numbers_are_those_of_the_gate() -> None:
    from onboard.safety import events, limits

    assert {bit.name.lower(): int(bit) for bit in limits.Cut if bit.name} == LIMITS
    assert {flag.name: int(flag) for flag in events.Flag} == {flag.name: int(flag) for flag in SafetyFlag}
