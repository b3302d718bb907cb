"""The external pose as bytes: what a sender writes is what is read, and nothing else is read."""

import re
import socket
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.errors import LinkError
from onboard.configs.external_pose import UdpAddress
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.external_pose import (
    MAX_AT_ONCE,
    DdsPoses,
    Pose,
    PoseSender,
    UdpPoses,
    decode_datagram,
    decode_sample,
    encode_datagram,
)
from onboard.runtime.wire_layout import EXTERNAL_POSE
from tests.dds_domain import domain_id
from tests.logging.recorder_run import until

__all__ = ["domain_id"]

QUAT = (0.5, 0.5, -0.5, 0.5)
finite = st.floats(-1e6, 1e6)


@pytest.fixture
def poses() -> Iterator[UdpPoses]:
    made = UdpPoses(UdpAddress("127.0.0.1", 0))
    yield made
    made.close()


def message(*, stamp_ns: int = 5, x: float = 1.0, quat: tuple[float, ...] = QUAT, vx: float = 0.1) -> bytes:
    return encode_datagram(stamp_ns, (x, 2.0, 3.0), quat, (vx, 0.0, 0.0))


@given(st.integers(1, 2**63 - 1), st.tuples(finite, finite, finite))
def test_what_is_sent_is_what_is_read(stamp_ns: int, position: tuple[float, float, float]) -> None:
    pose = decode_datagram(encode_datagram(stamp_ns, position, QUAT, (0.5, -0.25, 0.0)))
    assert pose is not None
    assert (pose.stamp_ns, tuple(pose.position_m), tuple(pose.quat_wxyz)) == (stamp_ns, position, QUAT)
    assert pose.velocity_m_s.tolist() == [0.5, -0.25, 0.0]


def test_the_layout_is_the_documented_one() -> None:
    body = struct.pack("<q7d3f", 5, 1.0, 2.0, 3.0, *QUAT, 0.5, 0.25, 0.0)
    assert struct.pack("<4sI", b"OBP1", zlib.crc32(body)) + body == encode_datagram(
        5, (1.0, 2.0, 3.0), QUAT, (0.5, 0.25, 0.0)
    )


@given(st.integers(0, 84 * 8 - 1))
def test_one_wrong_bit_anywhere_is_noticed(bit: int) -> None:
    damaged = bytearray(message())
    damaged[bit // 8] ^= 1 << bit % 8
    assert decode_datagram(bytes(damaged)) is None


@given(st.binary(max_size=120))
def test_any_bytes_are_a_pose_or_nothing(raw: bytes) -> None:
    assert decode_datagram(raw) is None
    assert decode_sample(raw) is None or len(raw) == EXTERNAL_POSE.itemsize


IMPOSSIBLE = {
    "short": message()[:-1],
    "long": message() + b"\0",
    "no stamp": message(stamp_ns=0),
    "no position": message(x=np.nan),
    "endless": message(x=np.inf),
    "zero quaternion": message(quat=(0.0, 0.0, 0.0, 0.0)),
    "no quaternion": message(quat=(np.nan, 0.0, 0.0, 0.0)),
    "long quaternion": message(quat=(1.0, 1.0, 0.0, 0.0)),
    "huge quaternion": message(quat=(1e300, 0.0, 0.0, 0.0)),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_can_not_be_a_pose_is_none(case: str) -> None:
    assert decode_datagram(IMPOSSIBLE[case]) is None


def test_quaternions_come_out_with_length_1_and_half_a_velocity_is_none() -> None:
    pose = decode_datagram(message(quat=(1.02, 0.0, 0.0, 0.0), vx=np.nan))
    assert pose is not None
    assert pose.quat_wxyz.tolist() == [1, 0, 0, 0]
    assert np.isnan(pose.velocity_m_s).all()


def test_the_dds_layout_is_cyclones() -> None:
    raw = idl.ExternalPose(7, [1.0, 2.0, 3.0], list(QUAT), [0.5, 0.25, 0.125]).serialize()
    assert len(raw) == EXTERNAL_POSE.itemsize
    pose = decode_sample(raw)
    assert pose is not None
    assert (pose.stamp_ns, pose.position_m.tolist(), tuple(pose.quat_wxyz)) == (7, [1, 2, 3], QUAT)
    assert pose.velocity_m_s.tolist() == [0.5, 0.25, 0.125]
    assert decode_sample(b"\x00\x00" + raw[2:]) is None, "big-endian"


def arrived(poses: UdpPoses | DdsPoses, count: int) -> list[Pose | None]:
    found: list[Pose | None] = []

    def enough() -> bool:
        found.extend(poses.take_all())
        return len(found) >= count

    until(enough)
    return found


def test_datagrams_arrive_in_order_and_bad_ones_are_told(poses: UdpPoses) -> None:
    assert list(poses.take_all()) == []
    sender = PoseSender(poses.address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        sender.send(1, (0, 0, 0), QUAT, (0, 0, 0))
        stranger.sendto(b"hello", poses.address)
        stranger.sendto(bytes(5000), poses.address)
        sender.send(2, (0, 0, 0), QUAT, (0, 0, 0))
    sender.close()
    found = arrived(poses, 4)
    assert [pose and pose.stamp_ns for pose in found] == [1, None, None, 2]


def test_a_flood_is_taken_in_portions(poses: UdpPoses) -> None:
    sender = PoseSender(poses.address)
    for stamp_ns in range(1, MAX_AT_ONCE + 11):
        sender.send(stamp_ns, (0, 0, 0), QUAT, (0, 0, 0))
    sender.close()
    assert len(poses.take_all()) <= MAX_AT_ONCE


def test_an_address_that_is_taken_or_not_ours_is_refused(poses: UdpPoses) -> None:
    for address in (poses.address, UdpAddress("192.0.2.1", 9870)):
        with pytest.raises(LinkError, match="give an address of this machine and a port that nobody uses"):
            UdpPoses(address)


def test_the_dds_topic_is_heard(domain_id: int) -> None:
    with DdsDomain(domain_id, "lo") as dds:
        poses = DdsPoses(dds)
        writer = dds.writer(idl.EXTERNAL_POSE_TOPIC, idl.ExternalPose)
        until(lambda: writer.matched() > 0)
        raw = idl.ExternalPose(9, [0.0, 0.0, 0.8], list(QUAT), [0.0, 0.0, 0.0]).serialize()
        writer.write(raw)
        (pose,) = arrived(poses, 1)
    assert pose is not None
    assert pose.stamp_ns == 9


def test_the_pages_sender_is_understood(poses: UdpPoses) -> None:
    page = (Path(__file__).parents[2] / "docs" / "external-pose.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example.replace("9870", str(poses.address.port)), "external-pose.md", "exec"), names)
    names["sender"].close()
    (pose,) = arrived(poses, 1)
    assert pose is not None
    assert pose.position_m.tolist() == [0.0, 0.0, 0.78]
    assert np.isnan(pose.velocity_m_s).all()
