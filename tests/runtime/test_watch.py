"""What control sees of the other processes, on a real mapping."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onboard.configs.events import Event, bits
from onboard.configs.safety import load_safety
from onboard.runtime.gateway_core import GatewayState, Reason
from onboard.runtime.ports import GATEWAY, OPERATOR, RECORDER, run_layout
from onboard.runtime.shm import Shared
from onboard.runtime.watch import SharedWatch

MS = 1_000_000
NOW = 10_000 * MS


class World:
    """Healthy unless told otherwise."""

    def __init__(self, folder: Path) -> None:
        self.shared = Shared.create(run_layout(np.dtype([("x", "<u8")])), folder)
        self.watch = SharedWatch(self.shared, load_safety(), has_gateway=True)
        self.say("operator", OPERATOR, heartbeat_ns=NOW)
        self.say("recorder", RECORDER, heartbeat_ns=NOW, disk_free=10**12)
        self.say("gateway", GATEWAY, heartbeat_ns=NOW, state=GatewayState.PASSING, session=1)

    def say(self, ring: str, dtype: np.dtype, **values: Any) -> None:
        record = np.zeros((), dtype)
        for name, value in values.items():
            record[name] = value
        self.shared[ring].push(record)

    def look(self, now_ns: int = NOW, session: int = 1, passing: bool = True) -> int:
        return self.watch.look(now_ns, session, passing)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.shared.close()


def test_all_is_well(world: World) -> None:
    assert world.look() == 0


@pytest.mark.parametrize(
    ("ring", "dtype", "values", "event"),
    [
        ("operator", OPERATOR, {"heartbeat_ns": NOW - 201 * MS}, Event.PARENT_LOST),
        ("operator", OPERATOR, {"heartbeat_ns": NOW, "terminal_lost": 1}, Event.TERMINAL_LOST),
        ("operator", OPERATOR, {"heartbeat_ns": NOW, "gateway_lost": 1}, Event.GATEWAY_LOST),
        ("recorder", RECORDER, {"heartbeat_ns": NOW - 501 * MS, "disk_free": 10**12}, Event.RECORDER_DEAD),
        ("recorder", RECORDER, {"heartbeat_ns": NOW, "disk_free": 10**12, "full": 1}, Event.RECORDER_BEHIND),
        (
            "recorder",
            RECORDER,
            {"heartbeat_ns": NOW, "disk_free": 10**12, "behind": 251},
            Event.RECORDER_BEHIND,
        ),
        ("recorder", RECORDER, {"heartbeat_ns": NOW, "disk_free": 499_999_999}, Event.DISK_LOW),
        ("recorder", RECORDER, {"heartbeat_ns": NOW, "disk_free": 10**12, "crc_rate": 0.06}, Event.CRC_RATE),
        ("gateway", GATEWAY, {"state": GatewayState.DAMPING, "session": 1}, Event.GATEWAY_LATCHED),
        ("gateway", GATEWAY, {"state": GatewayState.LIMP, "session": 1}, Event.GATEWAY_LATCHED),
        (
            "gateway",
            GATEWAY,
            {"state": GatewayState.SILENT, "reason": Reason.SECOND_PUBLISHER},
            Event.SECOND_PUBLISHER,
        ),
    ],
)
def test_each_trouble_is_one_event(
    world: World, ring: str, dtype: np.dtype, values: dict[str, Any], event: Event
) -> None:
    world.say(ring, dtype, **values)
    assert world.look() == bits(event)


def test_a_new_session_has_a_moment_to_be_accepted(world: World) -> None:
    world.say("gateway", GATEWAY, state=GatewayState.DAMPING, session=1)
    assert world.look(session=2) == 0
    world.say("operator", OPERATOR, heartbeat_ns=NOW + 200 * MS)
    assert world.look(NOW + 100 * MS, session=2) == 0
    assert world.look(NOW + 101 * MS, session=2) == bits(Event.GATEWAY_LATCHED)


def test_a_damping_gateway_is_no_news_while_control_damps(world: World) -> None:
    world.say("gateway", GATEWAY, state=GatewayState.DAMPING, session=1)
    assert world.look(passing=False) == 0


def test_a_dry_run_has_no_gateway(world: World) -> None:
    world.say("gateway", GATEWAY, state=GatewayState.DAMPING, session=1)
    assert SharedWatch(world.shared, load_safety(), has_gateway=False).look(NOW, 1, True) == 0
