"""A DDS domain id that nobody else on this machine uses, for the length of one test."""

from collections.abc import Iterator

import pytest

from onboard.runtime.free_domain import free_domain_id

__all__ = ["domain_id", "free_domain_id"]


@pytest.fixture
def domain_id() -> Iterator[int]:
    """A free domain id; import this fixture where it is needed."""
    with free_domain_id() as found:
        yield found
