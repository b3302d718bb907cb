"""Episodes of an A/B experiment on a robot: one run each, the operator puts it back in between."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from onboard.analysis.ab.metrics import Subject
from onboard.analysis.ab.schedule import Slot
from onboard.analysis.ab.scores import Score
from onboard.cli.ab_flights import Flown
from onboard.cli.ab_recorded import note_of, recorded_episodes
from onboard.cli.options import say
from onboard.cli.run import StatusLine
from onboard.cli.teller import Teller
from onboard.configs.errors import OnboardError, RolloutError
from onboard.configs.script import ScriptConfig
from onboard.runtime.assembly import Plan
from onboard.runtime.console import Console
from onboard.runtime.launch import EXIT_PROCESS, Outcome, launch
from onboard.runtime.preflight.record import record_path, subjects
from onboard.runtime.script import Script

Ask = Callable[[str], str]

CHECKS = "rollouts"
"""Where `onboard check` leaves its result unless it is told otherwise."""


def fly_live(
    plan: Plan, protocol: str, script: ScriptConfig, slot: Slot, total: int, subject: Subject, ask: Ask
) -> Flown:
    """One episode on the robot.

    A run that can't start says why, and the operator is asked again.

    Args:
        plan: of its arm.
        protocol: its name.
        script: what the operator's script presses and commands.
        slot: its place in the schedule.
        total: episodes of the protocol.
        subject: the policy.
        ask: shows a prompt and waits for a line; `skip` leaves the episode out.

    Raises:
        KeyboardInterrupt: a signal ended the run; the robot was stopped in order.
    """
    name = f"{protocol}, episode {slot.number + 1} of {total}"
    prompt = (
        f"{name}: put the robot back on the gantry or its feet, as at the start of every other episode.\n"
        "Enter starts its ramp, skip leaves the episode out, Ctrl-C ends the experiment: "
    )
    while True:
        if ask(prompt).strip().lower() == "skip":
            return _uncounted(protocol, slot, "the operator left it out")
        try:
            flown = _run(plan, protocol, script, slot, subject)
        except OnboardError as error:
            say(f"{name} did not start: {error}")
            continue
        say(f"{name}: {_told(flown.score)}")
        return flown


def take_checks(plan: Plan) -> None:
    """Bring the last `onboard check` of this robot and policy to where every run of the experiment looks.

    Raises:
        RolloutError: it can't be copied.
    """
    for subject in subjects(plan):
        source, target = (record_path(Path(folder), subject) for folder in (CHECKS, plan.config.out))
        try:
            if source.exists() and source.parent != target.parent:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        except OSError as error:
            raise RolloutError(
                f"{target}: can't be written ({error.strerror}); name another --out"
            ) from error


def _run(plan: Plan, protocol: str, script: ScriptConfig, slot: Slot, subject: Subject) -> Flown:
    take_checks(plan)
    teller, console = Teller(), Console(Script(script))
    config = msgspec.structs.replace(plan.config, note=note_of(protocol, slot))
    noted = Plan(**{**vars(plan), "config": config})
    try:
        outcome = launch(noted, console, teller, StatusLine(teller))
    finally:
        teller.close()
    if console.interrupted:
        raise KeyboardInterrupt
    return live_score(outcome, protocol, slot, subject, plan)


def live_score(outcome: Outcome, protocol: str, slot: Slot, subject: Subject, plan: Plan) -> Flown:
    """What a run comes to as an episode of the schedule."""
    if outcome.exit_code == EXIT_PROCESS:
        return _uncounted(protocol, slot, f"a process died: {outcome.end}")
    if outcome.rollout is None:
        return _uncounted(protocol, slot, "there is no rollout")
    try:
        (flown, *_) = recorded_episodes([Path(outcome.rollout)], subject, plan)
    except RolloutError as error:
        return _uncounted(protocol, slot, str(error))
    score = replace(flown.score, protocol=protocol, block=slot.block, seed=slot.seed)
    return replace(flown, score=score)


def _uncounted(protocol: str, slot: Slot, why: str) -> Flown:
    return Flown(Score(protocol, slot.block, slot.arm, slot.seed, {}, aborted=why))


def _told(score: Score) -> str:
    """How an episode ended, without its arm: who puts the robot back shall not know it."""
    if score.aborted:
        return f"does not count: {score.aborted}"
    if score.failed:
        return (
            f"{'fell' if score.fell else 'stopped'} after {score.seconds:.1f} s ({', '.join(score.stopped)})"
        )
    return f"{score.seconds:.1f} s"
