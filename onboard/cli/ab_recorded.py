"""Episodes of an A/B experiment, read from rollouts.

The protocol is the run's note. A run of `onboard ab --live` notes its block too, "slow block 3", and is one
whole episode or none; in other runs the k-th two episodes of each arm make block k of their protocol.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from onboard.analysis.ab.metrics import COLUMNS, POLICY_COLUMNS, Subject, residual_share
from onboard.analysis.ab.schedule import ArmName, Slot
from onboard.analysis.ab.scores import Score
from onboard.cli.ab_flights import Flown, default_pose, metrics_or_none
from onboard.cli.logged_policies import logged_config
from onboard.configs.errors import RolloutError
from onboard.configs.events import Arm, Event, Mode, bits, names
from onboard.logging.layout import SafetyFlag
from onboard.logging.rollout import Check, PolicyLog, Rollout
from onboard.runtime.assembly import Plan
from onboard.runtime.console import SCRIPT_OVER

LAST_WORD_ROWS = 2
"""Rows after an episode that still tell why it ended; what a damped robot does then is nobody's fault."""
_ARMS: dict[str, ArmName] = {"keep": "keep", "drop": "drop"}
_PLACE = re.compile(r"(?P<protocol>.+) block (?P<block>\d+)")


def note_of(protocol: str, slot: Slot) -> str:
    """Note of a run that is one episode of a schedule."""
    return f"{protocol} block {slot.block}"


def recorded_episodes(
    paths: Iterable[Path], subject: Subject, plan: Plan, check: Check = True
) -> list[Flown]:
    """Score every episode of recorded rollouts.

    Args:
        paths: rollouts, in the order in which they were flown.
        subject: the policy.
        plan: of the arm that keeps the residual.
        check: as for `Rollout`.

    Raises:
        RolloutError: a file can't be read, or none of them has an episode of that policy with an arm.
    """
    found = [episode for path in paths for episode in _of_file(path, subject, plan, check)]
    if not found:
        raise RolloutError(
            f"no episode of {plan.bundle.name} with arm keep or drop; record with onboard run --arm"
        )
    return found if all(each.score.block >= 0 for each in found) else _counted(found)


def _counted(found: list[Flown]) -> list[Flown]:
    """Blocks by counting, for episodes that do not say theirs."""
    counts: dict[tuple[str, str], int] = {}
    placed = []
    for each in found:
        key = each.score.protocol, each.score.arm
        number = counts[key] = counts.get(key, -1) + 1
        placed.append(replace(each, score=replace(each.score, block=number // 2)))
    return placed


def _of_file(path: Path, subject: Subject, plan: Plan, check: Check) -> Iterator[Flown]:
    """Episodes of one rollout; their block is -1 where the note does not say it."""
    with Rollout(path, check=check) as rollout:
        note = str(rollout.attributes.get("note", ""))
        place = _PLACE.fullmatch(note)
        protocol, block = (place["protocol"], int(place["block"])) if place else (note or "recorded", -1)
        end, arm = _end(rollout), str(rollout.attributes["arm"])
        found = list(_episodes(rollout, subject, plan))
        if place and not found and arm in _ARMS:
            why = f"it never came to the policy: {end}"
            yield Flown(Score(protocol, block, _ARMS[arm], 0, {}, aborted=why))
        for flown in found:
            score = replace(flown.score, protocol=protocol, block=block)
            if place and not score.failed and not score.aborted and end != SCRIPT_OVER:
                score = replace(score, aborted=f"the run ended early: {end}")
            yield replace(flown, score=score)


def _end(rollout: Rollout) -> str:
    """Why a run ended; a script goes on where the operator's stop button ended what it was for."""
    stopped = (rollout.column("safety_events") & np.uint64(bits(Event.OPERATOR_STOP))).any()
    return "the operator pressed stop" if stopped else str(rollout.attributes["end_reason"])


def _episodes(rollout: Rollout, subject: Subject, plan: Plan) -> Iterator[Flown]:
    """Whole stretches of one arm; of the others those that ended in a fall or a safety stop."""
    column = rollout.column
    arm, mode, episode, index = (column(name) for name in ("arm", "mode", "episode", "policy"))
    place = column("step") // _block_ticks(rollout)
    for number, log in enumerate(rollout.policies):
        if log.name != plan.bundle.name:
            continue
        mine = (mode == Mode.POLICY) & (index == number) & np.isin(arm, (Arm.KEEP, Arm.DROP))
        for at, whole in _stretches(np.flatnonzero(mine), episode, arm, place):
            flown = _episode(rollout, log, at, subject, plan)
            if whole or flown.score.failed:
                yield flown


def _block_ticks(rollout: Rollout) -> int:
    """Length of a stretch where arms alternate in the run; longer than any run elsewhere."""
    if rollout.attributes["arm"] != "ab":
        return int(np.iinfo(np.int32).max)
    return max(1, round(logged_config(rollout).block_s / rollout.period_s))


def _stretches(rows: np.ndarray, episode: np.ndarray, *others: np.ndarray) -> list[tuple[np.ndarray, bool]]:
    """Rows in parts within which nothing of the given columns changes, and whether each is whole.

    The last of several stretches of an episode is as long as the run happened to be.
    """
    changed = [np.diff(column[rows].astype(np.int64)) != 0 for column in (episode, *others)]
    parts = np.split(rows, np.flatnonzero(np.any(changed, axis=0)) + 1)
    parts = [part for part in parts if part.size]
    own = [int(episode[part[0]]) for part in parts]
    whole = [own.count(e) == 1 or own[k + 1 : k + 2] == [e] for k, e in enumerate(own)]
    return list(zip(parts, whole, strict=True))


def _episode(rollout: Rollout, log: PolicyLog, at: np.ndarray, subject: Subject, plan: Plan) -> Flown:
    """One episode with what its residual did, judged by what the gate said until it ended."""
    span, until_end = slice(at[0], at[-1] + 1), slice(at[0], at[-1] + 1 + LAST_WORD_ROWS)
    inside = at - at[0]
    rows = {name: rollout.column(name, span)[inside] for name in COLUMNS}
    where = np.isin(log.rows, at)
    rows |= {name: log.column(name)[where] for name in POLICY_COLUMNS}
    flag, events = (rollout.column(name, until_end) for name in ("safety_flag", "safety_events"))
    arm: ArmName = "keep" if rollout.column("arm", span)[0] == Arm.KEEP else "drop"
    score = _score(rows, subject, arm, flag, int(np.bitwise_or.reduce(events)))
    if arm == "drop" or not score.metrics or plan.residual is None:
        return Flown(score)
    largest, share = residual_share(rows, subject, default_pose(plan))
    slots = [plan.robot.slot(joint) for joint in plan.residual.config.joints]
    cut = rollout.column("limit_mask", span)[inside][:, slots] != 0
    dropped = "as recorded" if bits(Event.RESIDUAL_DROPPED) & int(np.bitwise_or.reduce(events)) else ""
    return Flown(score, largest, share, cut_share=float(cut.any(axis=1).mean()), dropped=dropped)


def _score(
    rows: Mapping[str, np.ndarray], subject: Subject, arm: ArmName, flag: np.ndarray, events: int
) -> Score:
    operator = events & bits(Event.EMERGENCY_STOP)
    fell = bool((flag == SafetyFlag.FALL).any())
    stopped = bool((flag == SafetyFlag.OTHER_STOP).any())
    return Score(
        protocol="",
        block=0,
        arm=arm,
        seed=0,
        metrics=metrics_or_none(rows, subject),
        seconds=float(len(rows["q"]) * subject.period_s),
        fell=fell,
        stopped=tuple(names(events)) if stopped and not operator else (),
        aborted="the operator's emergency stop" if operator and not fell else "",
    )
