"""A DDS domain id that nobody else on this machine uses, for the length of one test."""

import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_PORT_BASE, _PORTS_PER_DOMAIN, _PARTICIPANTS = 7400, 250, 8


@contextmanager
def free_domain_id() -> Iterator[int]:
    """Reserve an id from 10 to 99: among tests by a named lock, against others by looking at its ports."""
    candidates = list(range(10, 100))
    random.Random(os.urandom(8)).shuffle(candidates)
    for domain_id in candidates:
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with lock:
            if _lock(lock, domain_id) and ports_are_free(domain_id):
                yield domain_id
                return
    pytest.fail("no free DDS domain id from 10 to 99")


def _lock(lock: socket.socket, domain_id: int) -> bool:
    try:
        lock.bind(f"\0onboard-test-domain-{domain_id}")
    except OSError:
        return False
    return True


def ports_are_free(domain_id: int) -> bool:
    """Whether nobody uses the domain on loopback."""
    first = _PORT_BASE + _PORTS_PER_DOMAIN * domain_id
    for port in (first, *range(first + 10, first + 10 + 2 * _PARTICIPANTS)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


@pytest.fixture
def domain_id() -> Iterator[int]:
    """A free domain id; import this fixture where it is needed."""
    with free_domain_id() as found:
        yield found
