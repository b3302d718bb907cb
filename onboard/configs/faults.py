"""The written list of faults: what goes wrong, how it is noticed, how fast, and what follows."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from onboard.configs.errors import ConfigError
from onboard.configs.loader import load, shipped

Where = Literal["lock-step", "real DDS"]


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the list."""

    what: str
    """The fault, in words."""
    noticed_by: str
    """Who notices it, and how."""
    tier: Literal["none", "warn", "settle", "hold", "damp", "refuse"]
    """What follows; `none` goes on as if nothing had happened, `refuse` means that the run does not start."""
    log: str
    """The safety event, or the part of the run's last word, that the log then holds; "" for none."""
    where: Where
    """How its test injects it: into a loop in lock-step, or into a whole run's processes."""
    limit_ms: Annotated[float, Meta(gt=0)] | None = None
    """Longest time from the fault to the tier; for power loss, the most that the rollout may lack."""
    exit_code: int | None = None
    """Of `onboard run`; None where the run goes on until the operator ends it."""
    sim: str = ""
    """Line of the simulator's command language that injects it; "" where the robot is not at fault."""
    near: str = ""
    """The same just below what trips; "" where there is no such thing."""


class FaultList(Struct, frozen=True, forbid_unknown_fields=True):
    """All rows by name."""

    faults: dict[str, Fault]


def load_faults() -> dict[str, Fault]:
    """The shipped list.

    Raises:
        ConfigError: the file does not fit.
    """
    return load(shipped("", "faults"), FaultList).faults


def sim_command(name: str) -> str:
    """The simulator's command line that injects a fault.

    Raises:
        ConfigError: no such fault, or none of the robot's.
    """
    faults = load_faults()
    of_robot = sorted(key for key, fault in faults.items() if fault.sim)
    if name not in of_robot:
        found = "is not one of the robot's" if name in faults else "is not in the list"
        raise ConfigError(f"fault '{name}' {found}; the simulator knows: {', '.join(of_robot)}")
    return faults[name].sim
