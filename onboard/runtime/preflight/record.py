"""The last check of a robot and a policy as a small file beside the rollouts, and what a run makes of it.

`onboard check` writes it, one file for each robot, network and policy; a check that is made again takes
the place of its older row, so that mending one thing needs one check. `onboard run` reads it: a failed
row refuses the run unless it is waived by name, and what was found goes into the rollout.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from onboard.configs.errors import RolloutError, SafetyRefusalError
from onboard.policies.bundle import PolicyBundle
from onboard.runtime.assembly import Plan
from onboard.runtime.clock import wall_clock_ns
from onboard.runtime.preflight.report import Row, Verdict

FRESH_NS = 24 * 3600 * 1_000_000_000
"""An older row neither refuses a run nor speaks for it."""
GROUPS = ("policy", "network", "timing", "imu", "robot")
"""Groups that a whole `onboard check` makes without moving the robot."""
LARGEST_BYTES = 1_000_000
"""A larger file is none of ours."""


class Subject(Struct, frozen=True, forbid_unknown_fields=True):
    """What was checked: a robot, where it is, and a policy down to its bytes.

    Attributes:
        robot: name of the description.
        interface, domain: where it is reached; a simulator's check says nothing about the robot.
        policy: its name.
        sha256: over contract, models and residual.
        models: sha256 of every model file by name, the residual's too.
    """

    robot: str
    interface: str
    domain: int
    policy: str
    sha256: str
    models: dict[str, str]


class CheckedRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One check and its result; `time_ns` is the wall clock's, `waived` what `onboard check` was told."""

    check: str
    verdict: str
    measured: str
    advice: str
    seconds: float
    values: dict[str, float]
    time_ns: int
    waived: bool = False

    @property
    def failed(self) -> bool:
        """It did."""
        return self.verdict == Verdict.FAIL.name.lower()


class CheckRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is known of a subject."""

    subject: Subject
    rows: tuple[CheckedRow, ...]
    version: int = 1


class Admission(NamedTuple):
    """A run may begin.

    Attributes:
        notes: lines for the operator.
        text: JSON for the rollout: notes, waivers, and each policy's rows with their age.
    """

    notes: tuple[str, ...]
    text: str


def subjects(plan: Plan) -> list[Subject]:
    """What a run's checks must be about: one for every policy of it; the residual is the first one's."""
    return [_subject(plan, bundle, first=index == 0) for index, bundle in enumerate(plan.bundles)]


def plain_row(row: Row, waived: Iterable[str] = (), now_ns: int | None = None) -> CheckedRow:
    """A row as it is stored and shown to programs."""
    finding = row.finding
    return CheckedRow(
        check=row.name,
        verdict=finding.verdict.name.lower(),
        measured=finding.measured,
        advice=finding.advice,
        seconds=round(row.seconds, 3),
        values={name: float(value) for name, value in finding.values.items() if math.isfinite(value)},
        time_ns=wall_clock_ns() if now_ns is None else now_ns,
        waived=row.name in waived,
    )


def record_path(folder: Path, subject: Subject) -> Path:
    """Where the record of a subject lies."""
    parts = (subject.robot, subject.policy, subject.interface, str(subject.domain))
    return folder / f"check_{'_'.join(re.sub(r'[^A-Za-z0-9.+-]+', '-', part) for part in parts)}.json"


def read_record(folder: Path, subject: Subject) -> CheckRecord | None:
    """What is known of a subject; None where it was never checked, or only with other files.

    Raises:
        RolloutError: there is a record that can't be read.
    """
    path = record_path(folder, subject)
    try:
        if not path.exists():
            return None
        if path.stat().st_size > LARGEST_BYTES:
            raise RolloutError(f"{path}: larger than any result of onboard check; remove it and check again")
        record = msgspec.json.decode(path.read_bytes(), type=CheckRecord)
    except (OSError, ValueError) as error:
        raise RolloutError(
            f"{path}: no readable result of onboard check ({error}); remove it and check again"
        ) from error
    return record if record.subject == subject else None


def store_rows(folder: Path, subject: Subject, rows: Sequence[CheckedRow]) -> Path:
    """Keep the rows of a check; those of other checks of the same subject stay. Returns the file.

    Raises:
        RolloutError: it can't be written.
    """
    path = record_path(folder, subject)
    try:
        known = read_record(folder, subject)
    except RolloutError:
        known = None  # what can't be read is no loss
    kept = {row.check: row for row in (known.rows if known else ())} | {row.check: row for row in rows}
    record = CheckRecord(subject, tuple(kept.values()))
    aside = path.with_name(f".{path.name}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(msgspec.json.format(msgspec.json.encode(record)))
        aside.replace(path)
    except OSError as error:
        raise RolloutError(
            f"{path}: the result can't be kept ({error.strerror}); name another folder with --out"
        ) from error
    return path


def admit(plan: Plan, now_ns: int | None = None) -> Admission:
    """Whether the last checks let a run begin.

    Args:
        plan: of the run; `waive` names checks whose failure shall not count.
        now_ns: the wall clock's.

    Raises:
        SafetyRefusalError: a check of the last day failed and is not waived, and the run is not dry.
        RolloutError: a record is there and can't be read.
    """
    now_ns = wall_clock_ns() if now_ns is None else now_ns
    notes: list[str] = []
    known: list[CheckRecord] = []
    failed: list[CheckedRow] = []
    for subject in subjects(plan):
        record = read_record(Path(plan.config.out), subject) or CheckRecord(subject, ())
        known.append(record)
        notes.append(_age_note(record, now_ns))
        failed += [row for row in record.rows if row.failed and now_ns - row.time_ns <= FRESH_NS]
    waived = [row for row in failed if row.check in plan.config.waive]
    refused = [] if plan.config.dry else [row for row in failed if row not in waived]
    if refused:
        raise SafetyRefusalError(
            "the last onboard check of this robot and policy found: "
            + "; ".join(f"{_told(row, now_ns)}; mend it, or give --waive {row.check}" for row in refused)
        )
    notes += [f"{'WAIVED' if row in waived else 'dry run'}: {_told(row, now_ns)}" for row in failed]
    told = {"now_ns": now_ns, "notes": notes, "waived": sorted({row.check for row in waived})}
    return Admission(tuple(notes), json.dumps({**told, "checks": msgspec.to_builtins(known)}))


def _subject(plan: Plan, bundle: PolicyBundle, *, first: bool) -> Subject:
    config = plan.config
    residual = plan.residual if first else None
    models = {path.rsplit("/", 1)[-1]: digest for path, digest in bundle.model_paths.items()}
    models |= residual.sha256 if residual else {}
    parts = [msgspec.yaml.encode(bundle.contract).decode(), residual.text if residual else "", str(models)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return Subject(plan.robot.name, config.interface, config.domain, bundle.name, digest, models)


def _told(row: CheckedRow, now_ns: int) -> str:
    return f"{row.check} failed {_ago(now_ns - row.time_ns)} ({row.measured})"


def _age_note(record: CheckRecord, now_ns: int) -> str:
    """How far the last check speaks for a run, in one line."""
    rows, subject = record.rows, record.subject
    fresh = [row for row in rows if now_ns - row.time_ns <= FRESH_NS]
    who = f"{subject.policy} on {subject.robot}, {subject.interface} domain {subject.domain}"
    newest = _ago(now_ns - max((row.time_ns for row in rows), default=0))
    if not fresh:
        last = f"last checked {newest}" if rows else "not checked"
        return f"check: {who}: {last}; onboard check tells what would go wrong"
    verdicts = [row.verdict for row in fresh]
    counts = ", ".join(
        f"{verdicts.count(verdict.name.lower())} {verdict.name.lower()}" for verdict in Verdict
    )
    missing = [group for group in GROUPS if not any(row.check.startswith(f"{group}.") for row in fresh)]
    left = f"; not checked: {', '.join(missing)}" if missing else ""
    return f"check: {who}: {newest}, {counts}{left}"


def _ago(age_ns: int) -> str:
    minutes = max(0, age_ns) / 60e9
    if minutes < 100:
        return f"{minutes:.0f} min ago"
    return f"{minutes / 60:.0f} h ago" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days ago"
