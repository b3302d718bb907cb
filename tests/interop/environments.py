"""Other interpreters for interoperability tests: a missing one skips the test, a broken one fails it."""

import pytest

from tests.interop import interpreters
from tests.interop.interpreters import OURS, SDK

__all__ = ["CPP", "OURS", "SDK", "environment"]

CPP = "far-unitree-sdk==0.1.8"


def environment(python: str, *packages: str, bare: tuple[str, ...] = ()) -> str:
    """The interpreter of an environment with these packages, see `interpreters.environment`."""
    try:
        return interpreters.environment(python, *packages, bare=bare)
    except interpreters.EnvironmentMissingError as reason:
        pytest.skip(str(reason))
    except interpreters.EnvironmentBrokenError as reason:
        pytest.fail(str(reason))
