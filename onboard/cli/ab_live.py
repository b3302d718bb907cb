"""Episodes of an A/B experiment on a robot: one run each, the operator puts it back in between."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from onboard.analysis.ab.metrics import Subject
from onboard.analysis.ab.schedule import Slot
from onboard.analysis.ab.scores import Score
from onboard.cli.ab_flights import recorded_scores
from onboard.cli.run import StatusLine
from onboard.cli.teller import Teller
from onboard.configs.errors import RolloutError
from onboard.configs.script import ScriptConfig
from onboard.runtime.assembly import Plan
from onboard.runtime.console import Console
from onboard.runtime.launch import EXIT_DAMPED_BY_HAND, EXIT_PROCESS, Outcome, launch
from onboard.runtime.script import Script

UNCOUNTED = {EXIT_PROCESS: "a process died", EXIT_DAMPED_BY_HAND: "the operator interrupted it"}
"""Ends that say nothing about the residual, by exit code."""

Ask = Callable[[str], str]


def fly_live(
    plan: Plan, protocol: str, script: ScriptConfig, slot: Slot, total: int, subject: Subject, ask: Ask
) -> Score:
    """One episode on the robot.

    Args:
        plan: of its arm.
        protocol: its name.
        script: what the operator's script presses and commands.
        slot: its place in the schedule.
        total: episodes of the protocol.
        subject: the policy.
        ask: shows a prompt and waits for a line; `skip` leaves the episode out.
    """
    prompt = (
        f"{protocol}, episode {slot.number + 1} of {total}: put the robot back on the gantry or its feet, as "
        "at the start of every other episode. Enter starts its ramp, skip leaves it out: "
    )
    if ask(prompt).strip().lower() == "skip":
        return _uncounted(protocol, slot, "the operator left it out")
    teller = Teller()
    try:
        outcome = launch(_noted(plan, protocol), Console(Script(script)), teller, StatusLine(teller))
    finally:
        teller.close()
    return live_score(outcome, protocol, slot, subject, plan.bundle.name)


def live_score(outcome: Outcome, protocol: str, slot: Slot, subject: Subject, policy: str) -> Score:
    """What a run comes to as an episode of the schedule."""
    if outcome.rollout is None or outcome.exit_code in UNCOUNTED:
        return _uncounted(protocol, slot, UNCOUNTED.get(outcome.exit_code, "there is no rollout"))
    try:
        (score, *_) = recorded_scores([Path(outcome.rollout)], subject, policy)
    except RolloutError as error:
        return _uncounted(protocol, slot, str(error))
    place = {"protocol": protocol, "block": slot.block, "seed": slot.seed}
    return Score(**{**{name: getattr(score, name) for name in Score.__dataclass_fields__}, **place})


def _uncounted(protocol: str, slot: Slot, why: str) -> Score:
    return Score(protocol, slot.block, slot.arm, slot.seed, {}, aborted=why)


def _noted(plan: Plan, protocol: str) -> Plan:
    """The plan with the protocol in the run's note, so that `--from` can judge the rollouts again."""
    config = msgspec.structs.replace(plan.config, note=protocol)
    return Plan(**{**vars(plan), "config": config})
