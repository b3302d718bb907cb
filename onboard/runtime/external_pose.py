"""Poses of the pelvis from outside: the message as bytes, and where it arrives.

Layouts: `wire_layout.POSE_DATAGRAM` and `EXTERNAL_POSE`. What a sender does: docs/external-pose.md.
"""

import contextlib
import math
import socket
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onboard.configs.errors import LinkError
from onboard.configs.external_pose import UdpAddress
from onboard.runtime.dds import DdsDomain
from onboard.runtime.idl import EXTERNAL_POSE_TOPIC, ExternalPose
from onboard.runtime.wire_layout import ACCEPTED_HEADERS, EXTERNAL_POSE, POSE_DATAGRAM

MAGIC = b"OBP1"
CHECKED_FROM = 8
"""First byte of a datagram that its checksum covers."""
UNIT_TOLERANCE = 0.1
"""A quaternion whose length is further from 1 than this is something else, e.g. a lost marker's zeros."""
MAX_AT_ONCE = 256
"""Messages taken in one go, so that a flood can't hold the reader."""


class Pose(NamedTuple):
    """One message.

    Attributes:
        stamp_ns: the sender's own clock, above 0.
        position_m: (3,) of the pelvis in the sender's world.
        quat_wxyz: (4,) world from pelvis, of length 1.
        velocity_m_s: (3,) of the pelvis in its own frame; NaN unknown.
    """

    stamp_ns: int
    position_m: NDArray[np.float64]
    quat_wxyz: NDArray[np.float64]
    velocity_m_s: NDArray[np.float32]


def encode_datagram(
    stamp_ns: int, position_m: ArrayLike, quat_wxyz: ArrayLike, velocity_m_s: ArrayLike = (np.nan,) * 3
) -> bytes:
    """A pose as a UDP datagram; units and frames as in `Pose`."""
    message = np.zeros((), POSE_DATAGRAM)
    message["magic"], message["stamp_ns"] = MAGIC, stamp_ns
    message["position"], message["quaternion"] = position_m, quat_wxyz
    message["linear_velocity"] = velocity_m_s
    message["crc"] = zlib.crc32(message.tobytes()[CHECKED_FROM:])
    return message.tobytes()


def decode_datagram(raw: bytes) -> Pose | None:
    """The pose in a datagram; None for a wrong length, magic, checksum, or a pose that can't be one."""
    if len(raw) != POSE_DATAGRAM.itemsize or raw[:4] != MAGIC:
        return None
    message = np.frombuffer(raw, POSE_DATAGRAM)[0]
    return _pose(message) if int(message["crc"]) == zlib.crc32(raw[CHECKED_FROM:]) else None


def decode_sample(raw: bytes) -> Pose | None:
    """The pose in a DDS sample; None where `decode_datagram` gives None."""
    if len(raw) != EXTERNAL_POSE.itemsize or raw[:4] not in ACCEPTED_HEADERS:
        return None
    return _pose(np.frombuffer(raw, EXTERNAL_POSE)[0])


def _pose(message: np.void) -> Pose | None:
    stamp_ns, position, quat = int(message["stamp_ns"]), message["position"], message["quaternion"]
    length = math.hypot(*quat.tolist())
    if stamp_ns <= 0 or not np.isfinite(position).all() or not abs(length - 1.0) <= UNIT_TOLERANCE:
        return None
    velocity = message["linear_velocity"]
    known = velocity if np.isfinite(velocity).all() else np.full(3, np.nan, np.float32)
    return Pose(stamp_ns, position, quat / length, known)


class UdpPoses:
    """Listens for datagrams.

    Args:
        address: of this machine.

    Raises:
        LinkError: it can't be listened on.
    """

    def __init__(self, address: UdpAddress) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(address)
        except OSError as error:
            self._socket.close()
            raise LinkError(
                f"external pose: can't listen on udp {address.host}:{address.port} ({error.strerror}); "
                "give an address of this machine and a port that nobody uses"
            ) from error
        self.address = UdpAddress(*self._socket.getsockname())

    def take_all(self) -> Sequence[Pose | None]:
        """What has arrived, oldest first; None for a bad datagram. Never blocks."""
        return [decode_datagram(raw) for raw in self._waiting()]

    def close(self) -> None:
        """Stop listening; safe to call twice."""
        self._socket.close()

    def _waiting(self) -> Iterator[bytes]:
        with contextlib.suppress(OSError):  # nothing is there, or the network has gone
            for _ in range(MAX_AT_ONCE):
                yield self._socket.recv(POSE_DATAGRAM.itemsize + 1)


class DdsPoses:
    """Listens to `rt/external_pose`; closes with its domain."""

    def __init__(self, dds: DdsDomain) -> None:
        self._reader = dds.reader(EXTERNAL_POSE_TOPIC, ExternalPose, depth=MAX_AT_ONCE)

    def take_all(self) -> Sequence[Pose | None]:
        """What has arrived, oldest first; None for a bad message. Never blocks."""
        return [decode_sample(sample.raw) for sample in self._reader.take_all()]


class PoseSender:
    """Sends datagrams to one address; what can't be sent is lost, as datagrams are."""

    def __init__(self, address: UdpAddress) -> None:
        self._address = address
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def send(
        self, stamp_ns: int, position_m: ArrayLike, quat_wxyz: ArrayLike, velocity_m_s: ArrayLike
    ) -> None:
        """One pose; units and frames as in `Pose`. Never blocks."""
        with contextlib.suppress(OSError):
            self._socket.sendto(encode_datagram(stamp_ns, position_m, quat_wxyz, velocity_m_s), self._address)

    def close(self) -> None:
        """Give the socket back; safe to call twice."""
        self._socket.close()
