"""The journal's format: a checksummed header, then frames of one fixed size.

```
header   magic 8 | length u32 | crc32 u32 | JSON {"dtype": ..., "meta": ...}
frame    seq u64 | kind u32 | payload | crc32 u32
```

The checksum of a frame starts from the header's, so that a frame of another journal (an old block
of a recycled disk) is never taken for one of this. Sequence numbers only rise. Bytes after the last
frame are zero where the writer had reserved room.
"""

import json
import struct
import zlib
from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from onboard.configs.errors import RolloutError
from onboard.configs.untrusted import DAMAGED
from onboard.runtime.shm import dtype_from_json, dtype_to_json

MAGIC = b"ONBDJNL1"
MIN_PAYLOAD = 1024
"""Bytes; leaves room for the facts of an END frame however small a record is."""

LARGEST_RECORD = 1 << 24
"""Bytes; a thousandfold of what the largest policies need."""

_PRELUDE = struct.Struct("<8sII")
_HEAD = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_DROP = struct.Struct("<QQQI")
FRAME_OVERHEAD = _HEAD.size + _CRC.size


class Kind(IntEnum):
    """What a frame holds."""

    ROW = 1
    """One record."""
    DROP = 2
    """Records that were handed over and are not in the file."""
    END = 3
    """The run was closed in order; JSON of its last facts."""


class Why(IntEnum):
    """Why records were dropped."""

    OVERWRITTEN = 1
    """The recorder was behind by more than the ring holds."""
    NO_SPACE = 2
    """The disk was full."""
    IO_ERROR = 3
    """The disk refused."""


@dataclass(frozen=True)
class Drop:
    """Sequence numbers first..last, of which `count` records are missing."""

    first: int
    last: int
    count: int
    why: Why


@dataclass(frozen=True)
class Header:
    """What a journal says about itself.

    Attributes:
        dtype: type of one record.
        meta: plain JSON data about the run.
        salt: where the frames' checksums start.
        size: bytes of the header in the file.
    """

    dtype: np.dtype
    meta: dict[str, Any]
    salt: int
    size: int

    @property
    def payload_bytes(self) -> int:
        """Bytes of a frame's payload; a smaller record is padded with zeros."""
        return max(self.dtype.itemsize, MIN_PAYLOAD)

    @property
    def frame_bytes(self) -> int:
        """Bytes of a whole frame."""
        return self.payload_bytes + FRAME_OVERHEAD


def pack_header(dtype: np.dtype, meta: dict[str, Any]) -> bytes:
    """Bytes of a new journal's header."""
    text = json.dumps({"dtype": dtype_to_json(dtype), "meta": meta}).encode()
    return _PRELUDE.pack(MAGIC, len(text), zlib.crc32(text)) + text


def unpack_header(data: memoryview, where: str) -> Header:
    """Read the header at the start of `data`.

    Raises:
        RolloutError: no journal, of another version, or its header is damaged.
    """
    if len(data) < _PRELUDE.size or data[:7] != MAGIC[:7]:
        raise RolloutError(f"{where}: not a journal of onboard; give a .journal file of a run")
    magic, length, crc = _PRELUDE.unpack_from(data)
    if magic != MAGIC:
        raise RolloutError(
            f"{where}: a journal of version {magic[7:]!r}, expected {MAGIC[7:]!r}; "
            "read it with the onboard that wrote it"
        )
    text = data[_PRELUDE.size : _PRELUDE.size + length]
    if len(text) < length or zlib.crc32(text) != crc:
        raise RolloutError(f"{where}: the journal's header is damaged, its records can't be told apart")
    try:
        content = json.loads(bytes(text))
        dtype = dtype_from_json(content["dtype"])
        meta = dict(content["meta"])
    except DAMAGED as error:
        raise RolloutError(f"{where}: the journal's header is not one of this onboard ({error})") from error
    if dtype.hasobject or dtype.names is None or not 0 < dtype.itemsize <= LARGEST_RECORD:
        raise RolloutError(f"{where}: the journal's header names no plain record type")
    return Header(dtype, meta, crc, _PRELUDE.size + length)


def pack_frame(buffer: bytearray, salt: int, seq: int, kind: Kind, payload: memoryview | bytes) -> None:
    """Fill one frame's buffer in place; the payload is padded with zeros."""
    _HEAD.pack_into(buffer, 0, seq, kind)
    end = _HEAD.size + len(payload)
    buffer[_HEAD.size : end] = payload
    rest = len(buffer) - _CRC.size - end
    if rest:
        buffer[end:-4] = bytes(rest)
    _CRC.pack_into(buffer, len(buffer) - _CRC.size, zlib.crc32(memoryview(buffer)[:-4], salt))


def check_frame(frame: memoryview, salt: int) -> tuple[int, int, memoryview] | None:
    """Sequence number, kind and payload of a whole frame; None when its checksum fails."""
    if _CRC.unpack_from(frame, len(frame) - _CRC.size)[0] != zlib.crc32(frame[:-4], salt):
        return None
    seq, kind = _HEAD.unpack_from(frame)
    return seq, kind, frame[_HEAD.size : -4]


def pack_drop(drop: Drop) -> bytes:
    """Payload of a DROP frame."""
    return _DROP.pack(*astuple(drop))


def unpack_drop(payload: memoryview) -> Drop:
    """The inverse of `pack_drop`. Raises ValueError for a reason that this version does not know."""
    first, last, count, why = _DROP.unpack_from(payload)
    return Drop(first, last, count, Why(why))


def pack_end(facts: dict[str, Any], payload_bytes: int) -> bytes:
    """Payload of an END frame; facts beyond `end_reason` give way when they do not fit."""
    text = json.dumps(facts).encode()
    if len(text) > payload_bytes:
        text = json.dumps({"end_reason": str(facts.get("end_reason", ""))[:150]}).encode()
    return text


def unpack_end(payload: memoryview) -> dict[str, Any]:
    """The inverse of `pack_end`. Raises ValueError when it holds no facts."""
    try:
        return dict(json.loads(bytes(payload).rstrip(b"\0")))
    except (TypeError, RecursionError) as error:
        raise ValueError("no facts") from error
