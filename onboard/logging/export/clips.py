"""Unbroken stretches of a rollout, preprocessed, as every exporter takes them."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onboard.configs.events import Mode
from onboard.logging.export.described import ContractView, Described
from onboard.logging.preprocess.pipeline import Facts, Step, Track, run
from onboard.logging.rollout import Rollout

COLUMNS = (
    "time_s",
    "tick",
    "recv_ns",
    "q",
    "dq",
    "tau_est",
    "quat_wxyz",
    "gyro_body",
    "accel_body",
    "target",
    "action_sent",
    "kp_scale",
    "command",
    "mode",
    "arm",
    "policy",
    "episode",
    "step",
    "contact",
    "contact_force",
    "base_velocity",
    "external_velocity",
    "external_pose",
    "external_pose_ns",
    "external_age_s",
)
POLICY_COLUMNS = ("action_policy", "action_combined")


@dataclass(frozen=True)
class Cut:
    """Which stretches to take.

    Attributes:
        modes: None takes what ran under a policy, or all that tracked a target where nothing did.
        min_s: shorter stretches are left out.
        steps: preprocessing of each stretch.
    """

    modes: Collection[Mode] | None = None
    min_s: float = 1.0
    steps: Sequence[Step] = ()


@dataclass(frozen=True)
class Clip:
    """One stretch: neighbouring rows are valid transitions, of one arm and one policy.

    Attributes:
        name: of the file and the first row.
        source: of the file.
        first_row: index into the rollout.
        period_s: control period.
        robot: name of the description.
        note: the operator's, of the run.
        joint_names: (29,) SDK motor order.
        contract: of the policy in charge; None without one or where its text can't be read.
        fade_rows: rows at the start of an episode in which the target is mixed with what was before.
        track: columns, all (n, ...); `kp` and `kd` (n, 29) are NaN where they are not known.
        done: account of the preprocessing.
    """

    name: str
    source: str
    first_row: int
    period_s: float
    robot: str
    note: str
    joint_names: tuple[str, ...]
    contract: ContractView | None
    fade_rows: int
    track: Track
    done: list[Facts]

    def __len__(self) -> int:
        return len(self.track["time_s"])

    def account(self, **more: object) -> str:
        """Where the clip comes from and what was done to it, as JSON text."""
        facts = {
            "source": self.source,
            "first_row": self.first_row,
            "robot": self.robot,
            "policy": self.contract.name if self.contract else None,
            "preprocessing": self.done,
        }
        return json.dumps({**facts, **more})


def clips(rollout: Rollout, cut: Cut) -> Iterator[Clip]:
    """The stretches of a rollout, one after the other.

    Raises:
        RolloutError: part of the file is damaged.
    """
    described = Described(rollout)
    for block in _stretches(rollout, cut):
        track = {name: rollout.column(name, block) for name in COLUMNS}
        track["kp"], track["kd"] = described.gains(block)
        index = int(track["policy"][0])
        if 0 <= index < len(rollout.policies):
            policy = rollout.policies[index]
            rows = slice(*np.searchsorted(policy.rows, [block.start, block.stop]))
            track |= {name: policy.column(name, rows) for name in POLICY_COLUMNS}
        track, done = run(track, cut.steps)
        yield Clip(
            name=f"{rollout.path.stem}_{block.start}",
            source=rollout.path.name,
            first_row=block.start,
            period_s=rollout.period_s,
            robot=str(rollout.attributes["robot"]),
            note=str(rollout.attributes.get("note", "")),
            joint_names=rollout.joint_names,
            contract=described.contracts[index] if 0 <= index < len(described.contracts) else None,
            fade_rows=described.fade_rows,
            track=track,
            done=done,
        )


def _stretches(rollout: Rollout, cut: Cut) -> Iterator[slice]:
    column = rollout.column
    mode = column("mode")
    modes = cut.modes
    if modes is None:
        modes = (Mode.POLICY,) if (mode == Mode.POLICY).any() else (Mode.RAMP, Mode.HOLD)
    wanted = np.isin(mode, [int(value) for value in modes])
    together = rollout.transitions().valid & wanted[1:] & wanted[:-1]
    for name in ("arm", "policy"):
        together &= np.diff(column(name).astype(np.int64)) == 0
    shortest = max(2, round(cut.min_s / rollout.period_s))
    for first, last in _runs(together):
        if last + 2 - first >= shortest:
            yield slice(first, last + 2)


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last index of every unbroken run of True."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    firsts, lasts = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
