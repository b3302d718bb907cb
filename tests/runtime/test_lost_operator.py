"""A lost terminal and a lost remote end in the tier that the safety table names."""

import pytest

from onboard.configs.events import Event, Mode, Tier, bits
from onboard.sim.console import parse
from tests.runtime.flight import Flight, plan

LOST = {"terminal": Event.TERMINAL_LOST, "remote": Event.REMOTE_LOST}


class TerminalGone:
    """What control sees of the other processes when the parent has lost its terminal."""

    def look(self, now_ns: int, session: int, passing: bool) -> int:
        return bits(Event.TERMINAL_LOST)


def flown(who: str, *overrides: str) -> Flight:
    """A standing robot whose policy loses its operator, and what follows; a remote is missed for 3 s."""
    flight = Flight(plan(*overrides)).walk(vx=0.0, ticks=25)
    if who == "terminal":
        flight.loop.watch = TerminalGone()
        flight.fly(60)
    else:
        parse("remote off")(flight.robot)
        flight.fly(200)
    return flight


def first_tier(flight: Flight) -> Tier:
    """A robot that has settled is held by the same event."""
    return Tier(int(next(tier for tier in flight.column("tier") if tier > Tier.NONE)))


@pytest.mark.parametrize("who", LOST)
@pytest.mark.parametrize(
    ("tier", "mode"), [("warn", Mode.POLICY), ("settle", Mode.HOLD), ("damp", Mode.DAMP)]
)
def test_the_tier_is_the_tables(who: str, tier: str, mode: Mode) -> None:
    flight = flown(who, f"events.{LOST[who].name}.tier={tier}")
    assert LOST[who].name in flight.events
    assert first_tier(flight) is Tier[tier.upper()]
    assert flight.mode is mode


def test_by_default_a_lost_terminal_damps_and_a_lost_remote_settles() -> None:
    assert Tier[plan().safety.events["TERMINAL_LOST"].tier.upper()] is Tier.DAMP
    assert Tier[plan().safety.events["REMOTE_LOST"].tier.upper()] is Tier.SETTLE
