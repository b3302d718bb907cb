"""A DDS domain id that nobody on this machine uses: for simulators, demos and tests on loopback."""

import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from onboard.configs.errors import LinkError

# Ports of a domain, from the DDSI standard: 7400 + 250 * id, and 10 + 2 * participant behind that.
_PORT_BASE, _PORTS_PER_DOMAIN, _PARTICIPANTS = 7400, 250, 8
CANDIDATES = range(10, 100)


@contextmanager
def free_domain_id() -> Iterator[int]:
    """Reserve an id while the context lasts: by a named lock against each other, by its ports against others.

    Raises:
        LinkError: all are taken.
    """
    candidates = list(CANDIDATES)
    random.Random(os.urandom(8)).shuffle(candidates)
    for domain_id in candidates:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
            if _lock(lock, domain_id) and ports_are_free(domain_id):
                yield domain_id
                return
    raise LinkError(f"no free DDS domain id from {CANDIDATES.start} to {CANDIDATES.stop - 1} on this machine")


def _lock(lock: socket.socket, domain_id: int) -> bool:
    try:
        lock.bind(f"\0onboard-domain-{domain_id}")
    except OSError:
        return False
    return True


def ports_are_free(domain_id: int) -> bool:
    """Whether no participant of the domain is on loopback."""
    first = _PORT_BASE + _PORTS_PER_DOMAIN * domain_id
    return all(_is_free(port) for port in (first, *range(first + 10, first + 10 + 2 * _PARTICIPANTS)))


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
