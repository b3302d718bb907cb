"""Rollouts of lock-step flights, written as the recorder writes them."""

from pathlib import Path

import numpy as np

from onboard.configs.events import Mode
from onboard.logging.convert import convert
from onboard.logging.layout import journal_dtype
from onboard.runtime.assembly import run_info
from onboard.runtime.gateway_core import GatewayState
from tests.logging.synthetic import journal
from tests.runtime.flight import Flight

SEND_NS = 80_000
"""From the handing over of a command to its publication."""


def write_flight(flight: Flight, folder: Path, lost: tuple[int, int] | None = None) -> Path:
    """The rollout of a flight; records first..last of `lost` (from 1) are missing."""
    return convert(write_journal(flight, folder, lost))


def write_journal(flight: Flight, folder: Path, lost: tuple[int, int] | None = None) -> Path:
    """The journal of a flight."""
    rows = np.array(flight.rows)
    table = np.zeros(len(rows), journal_dtype(rows.dtype))
    for name in rows.dtype.names or ():
        table[name] = rows[name]
    table["send_ns"] = rows["made_ns"] + SEND_NS
    tracking = np.isin(rows["mode"], [Mode.RAMP, Mode.HOLD, Mode.POLICY])
    table["gateway_state"] = np.where(tracking, GatewayState.PASSING, GatewayState.DAMPING)
    info = run_info(flight.plan, [flight.policy])
    folder.mkdir(exist_ok=True)
    return journal(folder, table, run=info, lost=lost)
