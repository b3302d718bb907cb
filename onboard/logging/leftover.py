"""What died with its processes and is still in the run's shared memory: rows that no journal holds yet.

Control hands its rows over in a ring, from which the recorder takes them. When both are killed, the ring
is still there, in a file that lives as long as the computer is on; the journal's header names it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from onboard.logging.drain import Drain
from onboard.logging.frames import Drop, Header, Why
from onboard.logging.recovery import Scan
from onboard.logging.run_info import RunInfo
from onboard.runtime.ports import RUN
from onboard.runtime.shm import Shared, ShmError


class Rest:
    """Takes the rows of a `Drain` and keeps them in memory: the journal stays as it is.

    Attributes:
        header: the journal's.
        last_seq: of the last row, here or in the journal.
        rows: in order, copies.
        drops: what the ring had overwritten.
    """

    def __init__(self, header: Header, last_seq: int) -> None:
        self.header = header
        self.last_seq = last_seq
        self.rows: list[np.ndarray] = []
        self.drops: list[Drop] = []

    def append(self, seq: int, record: np.ndarray) -> bool:
        """Keep a copy."""
        self.rows.append(record.copy())
        self.last_seq = seq
        return True

    def lose(self, first: int, last: int, why: Why) -> None:
        """Count rows first..last as lost."""
        self.drops.append(Drop(first, last, last - first + 1, why))
        self.last_seq = last


def adopt(found: Scan, info: RunInfo) -> tuple[Scan, np.ndarray]:
    """The rows behind the last one of a journal that was not closed in order, from shared memory.

    Args:
        found: the scanned journal.
        info: from its header.

    Returns:
        The scan with the account of these rows, and the rows, of the journal's type; as it was and none
        where the journal was closed, or the memory is gone or another run's.
    """
    none = np.zeros(0, found.header.dtype)
    memory = Path(info.memory)
    named = memory.name.startswith("onboard-") and memory.suffix == ".shm"  # the journal's word alone
    if found.end is not None or not named:
        return found, none
    try:
        shared = Shared.open(memory, read_only=True)
    except ShmError:
        return found, none
    try:
        rest = _drain(shared, found, info)
    finally:
        shared.close()
    if rest is None:
        return found, none
    account = replace(
        found,
        adopted=len(rest.rows),
        drops=(*found.drops, *rest.drops),
        last_seq=rest.last_seq,
        # The frame in which the writer died is torn; its row was still in the ring.
        damaged=found.damaged - found.torn,
        torn=0,
    )
    return account, np.array(rest.rows, found.header.dtype) if rest.rows else none


def _drain(shared: Shared, found: Scan, info: RunInfo) -> Rest | None:
    """Everything that is left in the rings of this run; None when they are another run's."""
    if not {"run", "record", "sent"} <= shared.layout.keys() or shared.layout["run"][0] != RUN:
        return None
    run = np.zeros((), RUN)
    shared["run"].latest(run)
    known = set(shared["record"].dtype.names or ()) <= set(found.header.dtype.names or ())
    if int(run["wall_ns"]) != info.wall_ns or not known:
        return None
    rest = Rest(found.header, found.last_seq)
    Drain(shared["record"], shared["sent"], rest).run(0, final=True)
    return rest
