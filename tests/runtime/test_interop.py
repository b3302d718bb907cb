"""Both directions, values and checksums, against the vendor's libraries and across Cyclone versions.

Nobody may crash: with stock types on cyclonedds 11 the other side dies of a segmentation fault.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from onboard.runtime.free_domain import ports_are_free
from tests.dds_domain import domain_id
from tests.interop.environments import CPP, OURS, SDK, environment
from tests.interop.sides import Side, run_against

__all__ = ["domain_id"]

ROLES = [("robot", "controller"), ("controller", "robot")]
HERE = sys.executable
UNSENT = ("temperature", "remote")  # fields of the state that the vendor's C++ binding leaves empty


def python_with(cyclonedds: str, python: str = "3.10", bare: tuple[str, ...] = ()) -> str:
    return environment(python, f"cyclonedds=={cyclonedds}", *OURS, bare=bare)


@pytest.fixture(scope="session")
def stock() -> str:
    """Python 3.10 with the robot's Cyclone, the vendor's Python SDK, and what this project needs."""
    return python_with("0.10.2", bare=(SDK,))


@pytest.fixture(scope="session")
def cpp() -> str:
    """An interpreter with the vendor's C++ SDK."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return environment(running if sys.version_info < (3, 13) else "3.11", bare=(CPP,))


@pytest.fixture
def alone() -> Iterator[list[str]]:
    """A command prefix under which domain 0 belongs to the test: in a network namespace if possible."""
    name = f"onboard-test-{os.getpid()}"
    if os.geteuid() == 0 and shutil.which("ip") and _ip("netns", "add", name):
        try:
            assert _ip("-n", name, "link", "set", "lo", "up")
            yield ["ip", "netns", "exec", name]
        finally:
            _ip("netns", "del", name)
    elif ports_are_free(0):
        yield []
    else:
        pytest.skip("the vendor's C++ DDS knows domain 0 only; it is in use, and no namespace can be made")


def _ip(*arguments: str) -> bool:
    return subprocess.run(["ip", *arguments], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("ours", "theirs"), ROLES)
def test_with_the_vendors_python_sdk(domain_id: int, stock: str, ours: str, theirs: str) -> None:
    domain = str(domain_id)
    run_against(Side(HERE, "ours", ours, domain), Side(stock, "stock_sdk", theirs, domain))


@pytest.mark.parametrize(("ours", "theirs"), ROLES)
def test_with_the_vendors_python_sdk_from_the_robots_cyclone(
    domain_id: int, stock: str, ours: str, theirs: str
) -> None:
    domain = str(domain_id)
    run_against(Side(stock, "ours", ours, domain), Side(stock, "stock_sdk", theirs, domain))


def test_the_vendors_client_talks_to_our_motion_switcher(domain_id: int, stock: str) -> None:
    domain = str(domain_id)
    robot, controller = Side(HERE, "ours", "robot", domain), Side(HERE, "ours", "controller", domain)
    run_against(robot, controller, Side(stock, "stock_sdk", "switcher", domain))


@pytest.mark.parametrize(
    ("ours", "theirs", "unsent"),
    [("robot", "controller", ()), ("controller", "robot", UNSENT)],
)
def test_with_the_vendors_cpp_sdk(
    alone: list[str], cpp: str, ours: str, theirs: str, unsent: tuple[str, ...]
) -> None:
    run_against(Side(HERE, "ours", ours, "0", *unsent), Side(cpp, "vendor_cpp", theirs, "0"), prefix=alone)


def test_our_client_talks_to_the_vendors_motion_switcher(alone: list[str], cpp: str) -> None:
    controller = Side(HERE, "ours", "controller", "0", *UNSENT)
    switcher, robot = Side(HERE, "ours", "switcher", "0"), Side(cpp, "vendor_cpp", "robot", "0")
    run_against(controller, switcher, robot, prefix=alone)


def test_the_vendors_link_with_our_robot(domain_id: int, stock: str) -> None:
    domain = str(domain_id)
    run_against(Side(HERE, "ours", "robot", domain), Side(stock, "vendor_link", domain))


@pytest.mark.parametrize(("here", "there"), ROLES)
@pytest.mark.parametrize("version", ["0.10.2", "0.10.5"])
def test_ours_across_cyclone_versions(domain_id: int, version: str, here: str, there: str) -> None:
    other = python_with(version, bare=(SDK,) if version == "0.10.2" else ())
    domain = str(domain_id)
    run_against(Side(HERE, "ours", here, domain), Side(other, "ours", there, domain))


@pytest.mark.slow
@pytest.mark.parametrize("python", ["3.10", "3.12", "3.13"])
def test_ours_across_python_versions(domain_id: int, python: str) -> None:
    other, domain = python_with("11.0.1", python), str(domain_id)
    run_against(Side(HERE, "ours", "robot", domain), Side(other, "ours", "controller", domain))
