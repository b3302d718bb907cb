"""From samples to figures: what is compared with what, medians, tails and ratios. Nothing here measures."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

Stages = Mapping[str, Sequence[float]]
"""Stage to one time a tick, µs."""


class Spread(NamedTuple):
    """Distribution of one time, µs."""

    p50: float
    p99: float
    n: int


class Row(NamedTuple):
    """One comparison: the stages that do the same job, by side. They are added up tick by tick."""

    key: str
    label: str
    stages: Mapping[str, tuple[str, ...]]


# `tick`: from the wake-up until the command is out of the loop's hands. `to_write`: from the state's bytes
# in hand until the DDS write of its command is done, in `onboard` through gate, slot and gateway.
_BYTES = ("take", "decode", "observe", "infer", "encode", "write")
_STATE = ("take", "deserialise", "check", "read")
_OBJECTS = (*_STATE, "observe", "infer", "fill", "crc", "serialise", "write")
_CALLBACK = ("read", "observe", "infer", "fill", "crc", "write")
_ALL = ("bytes", "objects", "callback", "onboard")
_ONBOARD = ("state", "gate", "operator", "observe", "infer", "limit", "send")

ROWS = (
    Row("take", "take", {"bytes": ("take",), "objects": ("take",)}),
    Row("decode", "decode", {"bytes": ("decode",), "objects": ("deserialise", "read")}),
    Row("checked", "decode, both checked", {"bytes": ("decode",), "objects": _STATE[1:]}),
    Row("state", "take and decode", {"bytes": _BYTES[:2], "objects": _STATE, "onboard": ("state",)}),
    Row("observe", "observation", dict.fromkeys(_ALL, ("observe",))),
    Row("infer", "inference", dict.fromkeys(_ALL, ("infer",))),
    Row(
        "encode",
        "encode and CRC",
        {"bytes": ("encode",), "objects": ("fill", "crc", "serialise"), "callback": ("fill", "crc")},
    ),
    Row("write", "write", {"bytes": ("write",), "objects": ("write",)}),
    Row(
        "tick",
        "whole tick",
        {"bytes": _BYTES, "objects": _OBJECTS, "callback": _CALLBACK, "onboard": _ONBOARD},
    ),
    Row(
        "to_write",
        "state in hand to written",
        {"bytes": _BYTES[1:], "objects": _OBJECTS[1:], "onboard": ("taken_to_write",)},
    ),
)

BASELINE = "objects"
OURS = ("bytes", "onboard")


def spread(values: Sequence[float] | np.ndarray) -> Spread:
    """Median, 99th percentile and count."""
    p50, p99 = np.percentile(values, (50, 99))
    return Spread(float(p50), float(p99), len(values))


def added(stages: Stages, names: Sequence[str]) -> np.ndarray:
    """Times of several stages of the same ticks, added tick by tick."""
    total: np.ndarray = np.sum([stages[name] for name in names], axis=0)
    return total


def compare(samples: Mapping[str, Stages]) -> dict[str, dict[str, Spread]]:
    """Every row that some side has: side to spread.

    Args:
        samples: side to its stages; a side that was not played is absent.
    """
    return {
        row.key: {
            side: spread(added(samples[side], names)) for side, names in row.stages.items() if side in samples
        }
        for row in ROWS
    }


def ratios(compared: Mapping[str, Mapping[str, Spread]]) -> dict[str, dict[str, float]]:
    """How many times dearer the baseline is than each of our sides, by row, at the median."""
    return {
        key: {side: sides[BASELINE].p50 / sides[side].p50 for side in OURS if side in sides}
        for key, sides in compared.items()
        if BASELINE in sides
    }


class Aim(NamedTuple):
    """A figure that was set as a goal."""

    about: str
    found: float
    wanted: float
    met: bool


def aims(ratio: Mapping[str, Mapping[str, float]], control_cpu_percent: float) -> dict[str, Aim]:
    """What was aimed at, and whether it was reached here."""
    found = {"control_cpu": _at_most("control process, % of a core", control_cpu_percent, 10.0)}
    if "checked" in ratio:
        found["decode"] = _at_least("decode, times cheaper than objects", ratio["checked"]["bytes"], 10.0)
        found["tick"] = _at_least("whole tick, times cheaper than objects", ratio["tick"]["onboard"], 4.0)
    return found


def _at_least(about: str, found: float, wanted: float) -> Aim:
    return Aim(f"{about}: at least {wanted:g}", found, wanted, found >= wanted)


def _at_most(about: str, found: float, wanted: float) -> Aim:
    return Aim(f"{about}: at most {wanted:g}", found, wanted, found <= wanted)
