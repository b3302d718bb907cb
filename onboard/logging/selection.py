"""Which rows of a rollout a dataset takes, and which of them may be learned from."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import RolloutError
from onboard.configs.events import Arm, Mode, Tier
from onboard.logging.preprocess.contact import (
    BUFFER_TICKS,
    Phase,
    Support,
    foot_phases,
    robot_phase,
    support,
)
from onboard.logging.rollout import Rollout
from onboard.logging.transitions import find_transitions

JUDGED_ROWS = 1 << 17
"""Rows that are judged at once; bounds the memory, whatever the length of a file."""


@dataclass(frozen=True)
class Select:
    """Filters; None takes all.

    Attributes:
        safe: only rows that may be learned from: valid transition, unbroken history, tier at most
            `warn` in both rows. Without it the other rows come too, marked as not valid.
        arms: sides of the A/B comparison.
        modes: what the loop was doing.
        phases: contact phase of the robot, `preprocess.contact.robot_phase`.
        supports: which feet carry it.
        policies: names of policies in charge.
        buffer_ticks: rows around a touchdown or lift-off that belong to it.
    """

    safe: bool = True
    arms: Collection[Arm] | None = None
    modes: Collection[Mode] | None = None
    phases: Collection[Phase] | None = None
    supports: Collection[Support] | None = None
    policies: Collection[str] | None = None
    buffer_ticks: int = BUFFER_TICKS


class Selected(NamedTuple):
    """Rows of one rollout.

    Attributes:
        rows: (n,) ascending indices.
        valid: (n,) whether row k+1 is what row k led to, and rows k-history..k are one unbroken stretch.
    """

    rows: NDArray[np.int64]
    valid: NDArray[np.bool_]


def select_rows(rollout: Rollout, select: Select, history: int) -> Selected:
    """Judge every row, a block at a time.

    Raises:
        RolloutError: none of the policies that were asked for is in the rollout.
    """
    rows = len(rollout)
    follows = np.zeros(rows, bool)
    wanted = np.zeros(rows, bool)
    for start in range(0, rows, JUDGED_ROWS):
        block = slice(start, min(start + JUDGED_ROWS, rows))
        follows[block] = _follows(rollout, block)
        wanted[block] = _wanted(rollout, select, block)
    unbroken = follows & (_unbroken_before(follows) >= history)
    if select.safe:
        wanted &= unbroken
    chosen = np.flatnonzero(wanted)
    return Selected(chosen, unbroken[chosen])


def _follows(rollout: Rollout, block: slice) -> NDArray[np.bool_]:
    """Whether each row of a block begins a valid, untroubled transition."""
    part = slice(block.start, block.stop + 1)

    def column(name: str) -> np.ndarray:
        return rollout.column(name, part)

    calm = column("tier") <= Tier.WARN
    pairs = find_transitions(column, rollout.period_s).valid & calm[1:] & calm[:-1]
    follows = np.zeros(block.stop - block.start, bool)
    follows[: len(pairs)] = pairs
    return follows


def _wanted(rollout: Rollout, select: Select, block: slice) -> NDArray[np.bool_]:
    """The filters beside validity."""
    column = rollout.column
    tests: list[tuple[Collection[int] | None, Callable[[], np.ndarray]]] = [
        (select.arms, lambda: column("arm", block)),
        (select.modes, lambda: column("mode", block)),
        (_policy_indices(rollout, select.policies), lambda: column("policy", block)),
        (select.supports, lambda: support(column("contact", block))),
        (select.phases, lambda: _phases(rollout, select.buffer_ticks, block)),
    ]
    wanted = np.ones(block.stop - block.start, bool)
    for allowed, values in tests:
        if allowed is not None:
            wanted &= np.isin(values(), [int(value) for value in allowed])
    return wanted


def _policy_indices(rollout: Rollout, names: Collection[str] | None) -> list[int] | None:
    if names is None:
        return None
    indices = [index for index, policy in enumerate(rollout.policies) if policy.name in names]
    if not indices:
        there = ", ".join(policy.name for policy in rollout.policies) or "none"
        raise RolloutError(f"{rollout.path}: no policy {' or '.join(sorted(names))}; there are: {there}")
    return indices


def _phases(rollout: Rollout, buffer_ticks: int, block: slice) -> NDArray[np.int8]:
    """Contact phases of a block, looking over its edges."""
    margin = buffer_ticks + 1
    part = slice(max(0, block.start - margin), block.stop + margin)
    tick, episode = rollout.column("tick", part), rollout.column("episode", part)
    linked = (tick[1:] == tick[:-1] + 1) & (episode[1:] == episode[:-1])
    phases = robot_phase(foot_phases(rollout.column("contact", part), buffer_ticks, linked))
    return phases[block.start - part.start :][: block.stop - block.start]


def _unbroken_before(follows: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many rows before each one lead to it without a break."""
    rows = np.arange(len(follows))
    last_break = np.maximum.accumulate(np.where(follows, -1, rows)) if len(rows) else rows
    before = np.concatenate([[-1], last_break[:-1]])[: len(rows)]
    unbroken: NDArray[np.int64] = rows - 1 - before
    return unbroken
