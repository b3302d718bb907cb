"""From a run's configuration to its end: checks, processes, result."""

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from onboard.configs.errors import LinkError, RolloutError, SafetyRefusalError
from onboard.configs.events import names
from onboard.logging.convert import convert, remove_journals, rollout_path
from onboard.logging.direct import new_journal
from onboard.logging.journal import claimed
from onboard.logging.layout import SafetyFlag, journal_dtype
from onboard.logging.run_info import RunInfo
from onboard.policies.estimators.provider import check_providers
from onboard.runtime.assembly import Plan, record_type, run_info
from onboard.runtime.claim import sole_run
from onboard.runtime.console import Console
from onboard.runtime.dds import DdsDomain
from onboard.runtime.dds_link import DdsLink
from onboard.runtime.leftovers import is_closed, sweep
from onboard.runtime.motion_switcher import MotionSwitcher
from onboard.runtime.parent import Parent
from onboard.runtime.ports import RUN, run_layout
from onboard.runtime.preflight.record import admit
from onboard.runtime.remote import START, keys
from onboard.runtime.shm import Shared

RELEASE_WAIT_S = 120.0
SWITCHER_TIMEOUT_S = 2.0
EXIT_SAFETY = 3
EXIT_PROCESS = 4
EXIT_DAMPED_BY_HAND = 130


@dataclass
class Outcome:
    """How a run ended.

    Attributes:
        end: why, in words.
        exit_code: 0 ended in order, 3 a safety event or the emergency stop, 4 a process died,
            130 interrupted twice.
        rollout: the file, None where it could not be made.
        policy_rows: ticks in mode policy before the run was asked to end.
        events: names of all safety events that fired.
        rows_lost: records that control handed over and the disk never took.
        faults: what went wrong with processes.
    """

    end: str
    exit_code: int
    rollout: Path | None
    policy_rows: int
    events: list[str]
    skipped_ticks: int
    rows_lost: int = 0
    faults: list[str] = field(default_factory=list)


def launch(
    plan: Plan,
    console: Console,
    say: Callable[[str], None],
    each_cycle: Callable[[Parent], None],
    on_release_prompt: Callable[[], None] | None = None,
) -> Outcome:
    """Run to the end.

    Args:
        plan: from `make_plan`.
        console: keys, script and signals.
        say: takes one line for the operator; must not block.
        each_cycle: called every few milliseconds while control runs, with the parent.
        on_release_prompt: called once the operator was asked to confirm the release.

    Raises:
        OnboardError: the run could not start; nothing was sent.
    """
    config = plan.config
    for bundle in plan.bundles:
        check_providers(bundle.contract, plan.at_hand)
    admission = admit(plan)
    for note in admission.notes:
        say(f"note: {note}")
    with contextlib.ExitStack() as stack:
        if not config.dry:
            stack.enter_context(sole_run(config.domain, config.interface))
        dds = stack.enter_context(DdsDomain(config.domain, config.interface))
        policies = plan.policies()
        record, info = record_type(policies), run_info(plan, policies, admission.text)
        del policies

        def own_the_motors(parent: Parent) -> None:
            if not config.dry:
                _own_the_motors(plan, parent, say, on_release_prompt)

        sweep(say)
        shared = Shared.create(run_layout(record))
        journal: Path | None = None
        try:
            info = msgspec.structs.replace(info, memory=str(shared.path))
            journal = new_journal(
                Path(config.out), info.stem, journal_dtype(record), msgspec.to_builtins(info)
            )
            shared["run"].push(_describe(plan, info, journal))
            return _run(plan, console, say, own_the_motors, each_cycle, dds, shared, journal)
        finally:
            if journal is None or is_closed(journal):
                shared.unlink()
            else:
                say(f"{journal}: its last rows are in {shared.path}; onboard log recover takes them along")
            shared.close()


def _describe(plan: Plan, info: RunInfo, journal: Path) -> np.ndarray:
    """What runs, for those who look on, and for those who recover it."""
    row, config = np.zeros((), RUN), plan.config
    row["journal"], row["wall_ns"] = os.fsencode(journal.resolve()), info.wall_ns
    row["robot"], row["interface"], row["domain"] = config.robot.encode(), config.interface, config.domain
    row["policies"] = ",".join(bundle.name for bundle in plan.bundles).encode()
    row["dry"], row["period_ns"] = config.dry, config.period_ns
    return row


def _run(
    plan: Plan,
    console: Console,
    say: Callable[[str], None],
    before_begin: Callable[[Parent], None],
    each_cycle: Callable[[Parent], None],
    dds: DdsDomain,
    shared: Shared,
    journal: Path,
) -> Outcome:
    config = plan.config
    listen = ["--domain", str(config.domain), "--interface", config.interface]
    recorder = [
        "-m",
        "onboard.runtime.recording",
        "--robot",
        msgspec.json.encode(plan.robot).decode(),
        "--shm",
        str(shared.path),
        "--journal",
        str(journal),
        *listen,
    ]
    if config.external_pose:
        recorder += ["--external-pose", config.external_pose]
    if plan.providers.intersection(plan.at_hand) and config.timing.realtime == "auto":
        recorder.append("--prompt")
    if config.lowstate:
        recorder.append("--lowstate")
    with Parent(plan, shared, dds, console, recorder, say) as parent, console.signals():
        try:
            parent.run(before_begin, each_cycle)
        except BaseException:
            if not parent.started:
                journal.unlink(missing_ok=True)
            raise
    return _outcome(parent, console, _finish_rollout(journal, say))


def _finish_rollout(journal: Path, say: Callable[[str], None]) -> Path | None:
    """The rollout file; converts what a dead recorder left."""
    target = rollout_path(journal)
    if not journal.exists():
        return target if target.exists() else None
    try:
        with claimed(journal):
            path = convert(journal)
    except RolloutError as error:
        say(str(error))
        return None
    remove_journals(journal)
    return path


def _own_the_motors(
    plan: Plan, parent: Parent, say: Callable[[str], None], on_prompt: Callable[[], None] | None
) -> None:
    """Make sure that the robot's own controller is released, by the operator's word alone."""
    switcher = MotionSwitcher(parent.dds, SWITCHER_TIMEOUT_S)
    try:
        owner = _owner(switcher, say)
        if not owner:
            return
        if not plan.config.release:
            raise SafetyRefusalError(
                f"the robot's own controller '{owner}' has the motors; hang the robot on the gantry or seat "
                "it, then give --release and confirm on the remote, or press L2+R2 there in damping mode"
            )
        say(
            f"'{owner}' has the motors. GANTRY OR SEATED: releasing makes the robot go limp. "
            "Press START on the remote to release, Ctrl-C to leave."
        )
        _wait_for_start(parent, on_prompt)
        switcher.release()
        say(f"'{owner}' released, the robot is limp")
    finally:
        switcher.close()


def _owner(switcher: MotionSwitcher, say: Callable[[str], None]) -> str:
    try:
        return switcher.check()
    except LinkError as error:
        if "no motion switcher" not in str(error):
            raise
        say("no motion switcher answers here (some simulators have none); going on")
        return ""


def _wait_for_start(parent: Parent, on_prompt: Callable[[], None] | None) -> None:
    """Wait for a new press of the remote's start button."""
    link = DdsLink(parent.dds)
    link.open()
    try:
        until = time.monotonic() + RELEASE_WAIT_S
        before = keys(link.latest().remote.data)
        if on_prompt is not None:
            on_prompt()
        while time.monotonic() < until and not parent.stopping:
            now = keys(link.latest().remote.data)
            if now & START and not before & START:
                return
            before = now
            time.sleep(0.01)
        raise SafetyRefusalError(
            f"nobody confirmed the release within {RELEASE_WAIT_S:g} s; nothing was sent"
        )
    finally:
        link.close()


def _outcome(parent: Parent, console: Console, rollout: Path | None) -> Outcome:
    control = parent.status.control
    code = 0
    if parent.gateway_lost or not control["finished"]:
        code = EXIT_PROCESS
    elif parent.flag is not SafetyFlag.NORMAL:
        code = EXIT_SAFETY
    elif console.end == "SIGINT twice":
        code = EXIT_DAMPED_BY_HAND
    return Outcome(
        end=parent.end_reason(),
        exit_code=code,
        rollout=rollout,
        policy_rows=int(control["policy_rows"]),
        events=names(int(control["events_seen"])),
        skipped_ticks=int(control["skipped_ticks"]),
        rows_lost=int(parent.status.recorder["lost"]),
        faults=list(parent.faults),
    )
