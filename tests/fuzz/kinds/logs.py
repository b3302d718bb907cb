"""Rollouts and journals."""

import json
import tempfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from onboard.logging.convert import convert
from onboard.logging.dataset import RolloutDataset
from onboard.logging.frames import _PRELUDE, FRAME_OVERHEAD, MIN_PAYLOAD
from onboard.logging.rollout import Rollout
from onboard.logging.summary import summarize
from tests.fuzz.hdf5 import SPOILS, spoil_hdf5
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.mutate import Strategy, blobs, trees
from tests.logging import synthetic

ROWS = 40


@cache
def _written() -> tuple[bytes, bytes]:
    """A journal and its rollout."""
    with tempfile.TemporaryDirectory() as name:
        rows = synthetic.rows()[:: len(synthetic.rows()) // ROWS]
        journal = synthetic.journal(Path(name), rows, lost=(5, 6))
        return journal.read_bytes(), convert(journal).read_bytes()


def _rollouts() -> Strategy:
    whole = _written()[1]
    spoil = st.tuples(
        st.sampled_from(["attribute", *sorted(SPOILS)]), st.integers(0, 2**12), st.integers(0, 2**12)
    )
    spoilt = st.lists(spoil, min_size=1, max_size=3).map(lambda spoils: spoil_hdf5(whole, spoils))
    return spoilt.map(lambda content: {"r.h5": content})


def _damaged() -> Strategy:
    whole = _written()[1]
    return blobs(whole[:600], whole, whole[:5000]).map(lambda content: {"r.h5": content})


def _read_rollout(place: Path) -> None:
    with Rollout(place / "r.h5") as rollout:
        for record, _ in zip(rollout, range(20), strict=False):
            assert record.q.shape == (29,)
        for policy in rollout.policies:
            policy.column("obs")
        rollout.transitions()
        if rollout.has_lowstate:
            rollout.lowstate("q")
        summarize(rollout)
    with RolloutDataset([place / "r.h5"], history=2) as data:
        for _ in data.batches(16):
            break


def _journals() -> Strategy:
    whole = _written()[0]
    length = _PRELUDE.unpack_from(whole)[1]
    head, frames = json.loads(whole[_PRELUDE.size : _PRELUDE.size + length]), whole[_PRELUDE.size + length :]
    size = max(_itemsize(head), MIN_PAYLOAD) + FRAME_OVERHEAD
    texts = trees(head).map(_as_json)
    spoilt = st.one_of(texts, texts, blobs(json.dumps(head).encode(), pieces=(b"[" * 5000, b"NaN", b"1e999")))
    heads = spoilt.map(lambda text: _with_head(text, frames, size))
    content = st.tuples(st.integers(0, ROWS), blobs(frames[:size]), st.booleans())
    bodies = content.map(lambda drawn: _with_frame(whole, frames, size, *drawn))
    return st.one_of(heads, bodies, blobs(whole)).map(lambda found: {"r.journal": found})


def _itemsize(head: dict[str, Any]) -> int:
    return sum(np.dtype(code).itemsize * int(np.prod(shape or [1])) for _, code, *shape in head["dtype"])


def _as_json(data: Any) -> bytes:
    try:
        return json.dumps(data, default=str).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return b"[" * 5000


def _with_head(text: bytes, frames: bytes, size: int) -> bytes:
    """A journal with another head, and every frame's checksum made to fit it."""
    salt = zlib.crc32(text)
    rows = [_sealed(frames[at : at + size], salt) for at in range(0, len(frames) - size + 1, size)]
    return _PRELUDE.pack(b"ONBDJNL1", len(text), salt) + text + b"".join(rows)


def _with_frame(whole: bytes, frames: bytes, size: int, number: int, content: bytes, end: bool) -> bytes:
    """A journal with one frame of any content, whose checksum holds."""
    length = _PRELUDE.unpack_from(whole)[1]
    text = whole[_PRELUDE.size : _PRELUDE.size + length]
    frame = bytearray(content[:size].ljust(size, b"\0"))
    frame[8:12] = (2 + end).to_bytes(4, "little") if number % 3 else frame[8:12]
    at = number * size
    return _with_head(text, frames[:at] + bytes(frame) + frames[at + size :], size)


def _sealed(frame: bytes, salt: int) -> bytes:
    return frame[:-4] + zlib.crc32(frame[:-4], salt).to_bytes(4, "little")


def _read_journal(place: Path) -> None:
    (place / "out").mkdir()
    with Rollout(convert(place / "r.journal", place / "out")) as rollout:
        for record, _ in zip(rollout, range(20), strict=False):
            assert record.q.shape == (29,)
        summarize(rollout)
    assert [path.name for path in (place / "out").iterdir()] == ["r.h5"]


KINDS = [
    Kind("rollout", "rollouts made to be hostile, sealed", _rollouts, _read_rollout, "/case"),
    Kind("rollout-damaged", "rollouts with damaged bytes", _damaged, _read_rollout, "/case"),
    Kind("journal", "journals, with checksums that hold", _journals, _read_journal, "/case"),
]
