"""From what was heard on the wire to a reaction time, without a clock of its own."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.runtime.real_run import Frame


class Reaction(NamedTuple):
    """One repetition.

    Attributes:
        ms: from the last good command, or from the given instant, to the first damping command.
        sent_after: commands after the first damping one that are not damping.
    """

    ms: float
    sent_after: int


def react(frames: Sequence[Frame], fault_ns: int, since_ns: int | None = None) -> Reaction | None:
    """What followed a fault.

    Args:
        frames: everything on rt/lowcmd, by any writer.
        fault_ns: when the fault was caused; sender's CLOCK_REALTIME, as in the frames.
        since_ns: where good commands go on after the fault, the instant to measure from. Without it
            that is the first publication of the last target (the gateway's repeats of it do not count
            as commands).

    Returns:
        None when nothing was commanded shortly before the fault, or nothing damped after it.
    """
    ordered = sorted(frames, key=lambda frame: frame.time_ns)
    first = next(
        (index for index, frame in enumerate(ordered) if frame.damping and frame.time_ns > fault_ns), 0
    )
    if first == 0 or ordered[first - 1].damping:
        return None
    start = first - 1
    while start and ordered[start - 1].crc == ordered[first - 1].crc:
        start -= 1
    begin_ns = ordered[start].time_ns if since_ns is None else since_ns
    after = sum(not frame.damping for frame in ordered[first:])
    return Reaction((ordered[first].time_ns - begin_ns) / 1e6, after)


def summarise(reactions: Sequence[Reaction]) -> dict[str, Any]:
    """Figures of one kind of fault."""
    ms = np.array([reaction.ms for reaction in reactions])
    return {
        "n": len(reactions),
        "p50_ms": round(float(np.percentile(ms, 50)), 2),
        "p99_ms": round(float(np.percentile(ms, 99)), 2),
        "max_ms": round(float(ms.max()), 2),
        "sent_after": sum(reaction.sent_after for reaction in reactions),
    }
