"""A rollout in a few numbers: how long, how it ended, how well it kept time, what was lost."""

import json

import numpy as np
from msgspec import Struct

from onboard.configs.events import Arm, Event, Mode
from onboard.logging.layout import SafetyFlag
from onboard.logging.rollout import Rollout


class Spread(Struct, frozen=True):
    """Distribution of one quantity."""

    p50: float
    p99: float
    p999: float
    max: float


class Summary(Struct, frozen=True):
    """What `onboard log info` shows; times in the unit that the name says.

    Attributes:
        seconds: from the first to the last row by the robot's clock.
        modes, arms: seconds in each that occurred.
        events: rows in which each safety event was active.
        flags: rows with each safety flag other than normal.
        policy_rows: rows in mode policy.
        rate_hz: rows per second where neighbouring rows were in mode policy, by our clock; of all
            rows where none was; None with fewer than two.
        valid_transitions: pairs of neighbouring rows that may be learned from.
        feet_known, feet_down: foot-samples of those whose contact is known, and in contact.
        skipped_ticks: grid periods without a row of their own, because the loop was late.
        unpublished: rows whose command never went out.
        tick_us, wake_late_us, state_age_ms: None without rows.
        facts: the recorder's own counts.
    """

    file: str
    started_utc: str
    robot: str
    policies: list[str]
    note: str
    completeness: str
    completeness_why: str
    end_reason: str
    period_s: float
    rows: int
    rows_lost: int
    seconds: float
    modes: dict[str, float]
    arms: dict[str, float]
    events: dict[str, int]
    flags: dict[str, int]
    episodes: int
    marks: int
    policy_rows: int
    valid_transitions: int
    feet_known: int
    feet_down: int
    rate_hz: float | None
    skipped_ticks: int
    unpublished: int
    tick_us: Spread | None
    wake_late_us: Spread | None
    state_age_ms: Spread | None
    lowstate_samples: int
    facts: dict[str, object]


def summarize(rollout: Rollout) -> Summary:
    """Read what a summary needs; a few columns, whatever the length of the run."""
    column, attributes = rollout.column, rollout.attributes
    rows, period = len(rollout), rollout.period_s
    mode, episode = column("mode"), column("episode")
    time_s, learnable = column("time_s"), rollout.transitions().rows
    feet = column("contact")[learnable]
    return Summary(
        file=str(rollout.path),
        started_utc=str(attributes["started_utc"]),
        robot=str(attributes["robot"]),
        policies=[policy.name for policy in rollout.policies],
        note=str(attributes.get("note", "")),
        completeness=rollout.completeness,
        completeness_why=str(attributes["completeness_why"]),
        end_reason=str(attributes["end_reason"]),
        period_s=period,
        rows=rows,
        rows_lost=int(attributes.get("rows_lost", 0)),
        seconds=float(time_s[-1] - time_s[0]) if rows else 0.0,
        modes={m.name.lower(): float((mode == m).sum() * period) for m in Mode if (mode == m).any()},
        arms={a.name.lower(): n * period for a in Arm if (n := int((column("arm") == a).sum()))},
        events=_event_rows(column("safety_events")),
        flags={f.name.lower(): n for f in SafetyFlag if f and (n := int((column("safety_flag") == f).sum()))},
        episodes=len(np.unique(episode[mode == Mode.POLICY])),
        marks=int(column("mark").max(initial=0)),
        policy_rows=int((mode == Mode.POLICY).sum()),
        valid_transitions=len(learnable),
        feet_known=int((feet >= 0).sum()),
        feet_down=int((feet == 1).sum()),
        rate_hz=_rate_hz(column("recv_ns"), column("made_ns"), mode),
        skipped_ticks=int(column("skipped_ticks").max(initial=0)),
        unpublished=int(((column("send_ns") < 0) & (column("number") > 0)).sum()),
        tick_us=spread(column("stage_ns").sum(1, dtype=np.int64) / 1e3),
        wake_late_us=spread(column("wake_late_ns") / 1e3),
        state_age_ms=spread(column("state_age_s").astype(np.float64) * 1e3),
        lowstate_samples=len(rollout.lowstate("robot_tick")) if rollout.has_lowstate else 0,
        facts=json.loads(attributes.get("facts", "{}")),
    )


def spread(values: np.ndarray) -> Spread | None:
    """Median, tails and worst of what is finite; None of nothing."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    return Spread(*(float(value) for value in np.percentile(finite, (50, 99, 99.9, 100))))


def _rate_hz(recv_ns: np.ndarray, made_ns: np.ndarray, mode: np.ndarray) -> float | None:
    """Rows per second over stretches of mode policy."""
    when = np.where(made_ns > 0, made_ns, recv_ns)
    walking = (mode[1:] == Mode.POLICY) & (mode[:-1] == Mode.POLICY)
    steps = np.diff(when)[walking] if walking.any() else np.diff(when)
    total_ns = int(steps.sum())
    return len(steps) / total_ns * 1e9 if total_ns > 0 else None


def _event_rows(masks: np.ndarray) -> dict[str, int]:
    counts = {event.name.lower(): int((masks >> np.uint64(event) & np.uint64(1)).sum()) for event in Event}
    return {name: count for name, count in counts.items() if count}
