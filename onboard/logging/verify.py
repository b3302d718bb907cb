"""Is a rollout what it claims to be: every check that needs nothing but the file."""

from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onboard.configs.errors import RolloutError
from onboard.logging.rollout import Rollout

RISING = ("tick",)
NEVER_FALLING = ("recv_ns", "time_s", "skipped_ticks", "episode", "mark", "epoch")
RISING_WHERE_GIVEN = ("number", "made_ns", "send_ns")
"""0 and negative numbers in these mean that there is none."""


class Verdict(Enum):
    """How a check ended."""

    OK = "ok"
    LOSS = "loss"
    """Something is missing, and the file says so itself."""
    BAD = "bad"
    """The file contradicts itself, or was damaged or changed."""
    UNKNOWN = "unknown"
    """It can't be told here."""


class Check(NamedTuple):
    """One check of one file."""

    name: str
    verdict: Verdict
    text: str


def verify(path: Path) -> list[Check]:
    """Checksum, completeness, clocks, gaps and index of a rollout or of a leftover journal, in this order.

    A file that can't be opened at all gives one check alone.
    """
    try:
        rollout = Rollout(path)
    except RolloutError as error:
        return [Check("checksum", Verdict.BAD, str(error))]
    with rollout:
        checks = [Check("checksum", Verdict.OK, "as it was written")]
        try:
            checks += [
                check_completeness(rollout),
                check_clocks(rollout),
                check_gaps(rollout),
                check_index(rollout),
            ]
        except RolloutError as error:
            checks.append(Check("contents", Verdict.BAD, str(error)))
    return checks


def check_completeness(rollout: Rollout) -> Check:
    """What the recorder itself says about losses, of rows and of the full-rate stream."""
    lost = int(rollout.attributes["rows_lost"])
    text = f"{len(rollout)} rows, {rollout.completeness}: {rollout.attributes['completeness_why']}"
    samples = rollout.samples_lost
    if samples:
        text += f"; {samples} samples of the full-rate stream lost"
    loss = lost or samples or rollout.completeness == "truncated"
    return Check("completeness", Verdict.LOSS if loss else Verdict.OK, text)


def check_clocks(rollout: Rollout) -> Check:
    """Every clock and counter runs forward, and no command went out before it was made."""
    wrong = []
    for names, strict, given in (
        (RISING, True, False),
        (NEVER_FALLING, False, False),
        (RISING_WHERE_GIVEN, True, True),
    ):
        for name in names:
            values = rollout.column(name)
            at = np.flatnonzero(values > 0) if given else np.arange(len(values))
            back = _first_back(values[at], strict=strict)
            if back is not None:
                wrong.append(f"{name} runs back at row {at[back]}")
    made, send = rollout.column("made_ns"), rollout.column("send_ns")
    early = np.flatnonzero((send > 0) & (send < made))
    if len(early):
        wrong.append(f"row {early[0]} was sent before it was made")
    if rollout.has_lowstate and (back := _first_back(rollout.lowstate("recv_ns"), strict=False)) is not None:
        wrong.append(f"recv_ns of the full-rate stream runs back at sample {back}")
    if wrong:
        return Check("clocks", Verdict.BAD, "; ".join(wrong))
    return Check("clocks", Verdict.OK, "every clock and counter runs forward")


def check_gaps(rollout: Rollout) -> Check:
    """Ticks follow each other; where they do not, the loop skipped some or the recorder counted the loss."""
    tick = rollout.column("tick").astype(np.int64)
    skipped = rollout.column("skipped_ticks").astype(np.int64)
    if not len(tick):
        return Check("gaps", Verdict.OK, "no rows")
    before = max(0, int(tick[0] - skipped[0]) - 1)  # the first tick is 0 or 1
    missing = np.concatenate([[before], np.diff(tick) - 1 - np.diff(skipped)])
    total, lost = int(missing[missing > 0].sum()), int(rollout.attributes["rows_lost"])
    if (missing < 0).any():
        row = int(np.flatnonzero(missing < 0)[0])
        return Check("gaps", Verdict.BAD, f"row {row} claims more skipped ticks than its tick allows")
    if total > lost:
        row = int(np.flatnonzero(missing > 0)[0])
        text = f"{total} rows are missing, the first before row {row}, and only {lost} were counted as lost"
        return Check("gaps", Verdict.BAD, text)
    text = f"{int(skipped[-1])} ticks skipped by the loop" if skipped[-1] else "no tick skipped"
    if total:
        return Check("gaps", Verdict.LOSS, f"{total} rows missing, all of them counted; {text}")
    return Check("gaps", Verdict.OK, f"no row missing between two others, {text}")


def check_index(rollout: Rollout) -> Check:
    """The rows that a policy's group names are those in which it was in charge."""
    policy = rollout.column("policy")
    for index, log in enumerate(rollout.policies):
        if not np.array_equal(log.rows, np.flatnonzero(policy == index)):
            return Check("index", Verdict.BAD, f"policies/{index}/row names other rows than rollout/policy")
    return Check("index", Verdict.OK, "every policy's rows are where the rollout says")


def _first_back(values: np.ndarray, *, strict: bool) -> int | None:
    """Index of the first value that does not follow the one before it."""
    steps = np.diff(values.astype(np.float64 if values.dtype.kind == "f" else np.int64))
    back = np.flatnonzero(~(steps > 0) if strict else ~(steps >= 0))
    return int(back[0]) + 1 if len(back) else None
