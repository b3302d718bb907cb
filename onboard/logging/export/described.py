"""What a rollout's attributes say about the command side: contract and gains in force at every row."""

import json
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from onboard.configs.errors import ConfigError
from onboard.configs.events import Arm, Mode
from onboard.configs.loader import convert, parse_yaml
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.configs.run import Motions
from onboard.logging.rollout import Rollout

ViewT = TypeVar("ViewT")


class ActionView(Struct, frozen=True):
    """The part of a contract's action that exporters need; see `policies.contract.Action`."""

    joints: tuple[str, ...]
    base: str | tuple[float, ...]
    scale: float | tuple[float, ...]


class GraphView(Struct, frozen=True):
    """A graph of a contract."""

    action: ActionView | None = None


class ContractView(Struct, frozen=True):
    """The part of a contract that exporters need; lists in the order of `joints`, rad and N·m."""

    name: str
    joints: tuple[str, ...]
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    default_rad: tuple[float, ...]
    graphs: dict[str, GraphView]

    @property
    def actions(self) -> tuple[ActionView, ...]:
        """In the order in which their outputs form the raw action."""
        return tuple(graph.action for graph in self.graphs.values() if graph.action is not None)

    @property
    def action_joints(self) -> tuple[str, ...]:
        """One name for every number of the raw action."""
        return tuple(joint for action in self.actions for joint in action.joints)


class CoefficientsView(Struct, frozen=True):
    """One joint's linear delta; see `policies.residual.contract.Coefficients`."""

    a: float
    b: float = 0.0


class ResidualView(Struct, frozen=True):
    """The part of a residual that decides which gains went out."""

    coefficients: dict[str, CoefficientsView] = {}
    through: str = "target"
    gain_cap: float = 2.0


class ResidualFileView(Struct, frozen=True):
    """A residual file."""

    residual: ResidualView = ResidualView()


class RunView(Struct, frozen=True):
    """The part of a run's configuration that exporters need."""

    motions: Motions = Motions()


class Described:
    """Attributes of one rollout, read once.

    Attributes:
        contracts: one a policy; None where its text is no contract of this version.
        robot: None where the rollout holds no description.
        fade_rows: first rows of an episode in which the policy's target and gains are mixed with what
            was before.
    """

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        where = str(rollout.path)
        texts = json.loads(str(rollout.attributes.get("config", "{}")))
        run = _view(texts.get("run", ""), RunView, where) or RunView()
        self.robot = _view(texts.get("robot", ""), RobotConfig, where)
        self.contracts = tuple(
            _view(text, ContractView, where) for text in rollout.attributes.get("contract", ())
        )
        self._residuals = tuple(
            (_view(text, ResidualFileView, where) or ResidualFileView()).residual
            for text in rollout.attributes.get("residual", ())
        )
        self.fade_rows = _rows(run.motions.fade_in_s, rollout.period_s)
        self._blend_rows = _rows(run.motions.hold_blend_s, rollout.period_s)
        self._since = _rows_since_change(rollout.column("mode"))

    def gains(self, block: slice) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Kp and kd (n, 29) that went out with each row, N·m/rad and N·m·s/rad.

        NaN where two modes' gains were being mixed, and where the rollout does not say.
        """
        rollout, rows = self._rollout, block.stop - block.start
        kp, kd = (np.full((rows, N_JOINTS), np.nan, np.float32) for _ in range(2))
        mode, scale = rollout.column("mode", block), rollout.column("kp_scale", block)
        if self.robot is not None:
            standing = (mode == Mode.RAMP) | ((mode == Mode.HOLD) & (self._since[block] >= self._blend_rows))
            kp[standing] = self.robot.stand_kp * scale[standing, None]
            kd[standing] = self.robot.stand_kd
        policy, step = rollout.column("policy", block), rollout.column("step", block)
        for index, contract in enumerate(self.contracts):
            if contract is not None:
                mine = (mode == Mode.POLICY) & (policy == index) & (step >= self.fade_rows)
                kp[mine] = self._by_slot(contract, contract.kp) * scale[mine, None]
                kd[mine] = self._by_slot(contract, contract.kd)
                self._apply_residual(index, mine & (rollout.column("arm", block) == Arm.KEEP), kp, kd)
        return kp, kd

    def _apply_residual(
        self, index: int, kept: NDArray[np.bool_], kp: NDArray[np.float32], kd: NDArray[np.float32]
    ) -> None:
        """Gains that a residual changed while it was applied: g·kp and kd + g·kp·b, g = 1/(1+a) capped."""
        residual = self._residuals[index] if index < len(self._residuals) else ResidualView()
        if residual.through != "gains":
            return
        for joint, c in residual.coefficients.items():
            slot, gain = self._rollout.joint_names.index(joint), min(1 / (1 + c.a), residual.gain_cap)
            kd[kept, slot] += gain * c.b * kp[kept, slot]
            kp[kept, slot] *= gain

    def _by_slot(self, contract: ContractView, values: tuple[float, ...]) -> NDArray[np.float32]:
        full = np.zeros(N_JOINTS, np.float32)
        full[[self._rollout.joint_names.index(joint) for joint in contract.joints]] = values
        return full


def _view(text: str, kind: type[ViewT], where: str) -> ViewT | None:
    """Part of a text that other versions may have written; None where it does not fit."""
    try:
        data: Any = parse_yaml(text, where)
        return convert(data, kind, where) if data else None
    except ConfigError:
        return None


def _rows(seconds: float, period_s: float) -> int:
    """Rows in which a blend of this length is not over yet; its last step lands on the goal."""
    return max(round(seconds / period_s) - 1, 0)


def _rows_since_change(mode: np.ndarray) -> NDArray[np.int64]:
    rows = np.arange(len(mode))
    starts = np.where(np.diff(mode, prepend=mode[:1] + 1) != 0, rows, 0)
    since: NDArray[np.int64] = rows - np.maximum.accumulate(starts) if len(rows) else rows
    return since
