"""The machine's network interfaces, for choosing one and for saying which there are."""

import fcntl
import socket
import struct
from dataclasses import dataclass

from onboard.configs.errors import LinkError

_SIOCGIFFLAGS, _SIOCGIFADDR = 0x8913, 0x8915  # linux/sockios.h
_IFF_UP, _IFF_LOOPBACK = 0x1, 0x8  # linux/if.h


@dataclass(frozen=True)
class Interface:
    """One network interface; `address` is its first IPv4 address, "" where it has none."""

    name: str
    address: str
    up: bool
    loopback: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.address or 'no IPv4 address'}{'' if self.up else ', down'})"


def interfaces() -> list[Interface]:
    """All interfaces that the kernel shows in this network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return [_describe(probe, name) for _, name in socket.if_nameindex()]


def find_interface(name: str) -> Interface:
    """The interface of that name, ready for use.

    Raises:
        LinkError: there is none, it is down, or it has no IPv4 address.
    """
    known = interfaces()
    for interface in known:
        if interface.name == name:
            if interface.up and interface.address:
                return interface
            fault = "has no IPv4 address" if interface.up else "is down"
            raise LinkError(f"network interface '{name}' {fault}; interfaces here: {listed(known)}")
    raise LinkError(f"no network interface '{name}'; interfaces here: {listed(known)}")


def listed(known: list[Interface]) -> str:
    """One line for messages."""
    return ", ".join(map(str, known)) or "none"


def _describe(probe: socket.socket, name: str) -> Interface:
    request = struct.pack("256s", name.encode()[:15])
    flags = struct.unpack_from("<H", fcntl.ioctl(probe.fileno(), _SIOCGIFFLAGS, request), 16)[0]
    try:
        address = socket.inet_ntoa(fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)[20:24])
    except OSError:
        address = ""
    return Interface(name, address, bool(flags & _IFF_UP), bool(flags & _IFF_LOOPBACK))
