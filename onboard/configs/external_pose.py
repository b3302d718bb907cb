"""How a run names the source of an external pose: `udp:HOST:PORT`, `udp:PORT`, `dds`, or nothing."""

import ipaddress
from typing import NamedTuple

DDS = "dds"
LOOPBACK = "127.0.0.1"
"""Listened on where no address is given: anybody can send a datagram, so nobody else gets in unasked."""

EXPECTED = (
    f"expected udp:HOST:PORT (an IPv4 address of this machine to listen on; udp:PORT takes {LOOPBACK}) or dds"
)
MAX_PORT = 65535


class UdpAddress(NamedTuple):
    """IPv4 address and port."""

    host: str
    port: int


def udp_address(text: str) -> UdpAddress:
    """`HOST:PORT`, or `PORT` on the loopback interface.

    Raises:
        ValueError: it is neither.
    """
    host, _, port = text.rpartition(":")
    address = UdpAddress(str(ipaddress.IPv4Address(host or LOOPBACK)), int(port))
    if not 0 < address.port <= MAX_PORT:
        raise ValueError(f"port {port} is not from 1 to {MAX_PORT}")
    return address


def pose_address(text: str) -> UdpAddress:
    """Where to listen for `udp:HOST:PORT`.

    Raises:
        ValueError: names what was found and what was expected.
    """
    kind, _, rest = text.partition(":")
    try:
        if kind != "udp":
            raise ValueError(f"unknown kind '{kind}'")
        return udp_address(rest)
    except ValueError as error:
        raise ValueError(f"external_pose '{text}': {error}; {EXPECTED}") from error


def check_external_pose(text: str) -> None:
    """Refuse what is no source.

    Raises:
        ValueError: names what was found and what was expected.
    """
    if text not in ("", DDS):
        pose_address(text)
