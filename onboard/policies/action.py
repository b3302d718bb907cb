"""From raw network output to joint targets, in SDK motor order."""

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.policies.contract import Action, Contract

Float32Array = NDArray[np.float32]


class ActionMap:
    """The contract's map from the raw actions of all graphs to one target.

    Attributes:
        width: length of the raw action: the graphs' outputs one after the other.
        slots: (width,) SDK motor index of each element.
    """

    def __init__(
        self, contract: Contract, robot: RobotConfig, hold: Float32Array, reference: Float32Array
    ) -> None:
        """Make the map.

        Args:
            contract: checked.
            robot: for the joints' slots.
            hold: (29,) rad, read in every call; what undriven joints hold.
            reference: (29,) rad, read in every call; the reference motion's joint positions.
        """
        actions = [graph.action for graph in contract.graphs.values() if graph.action is not None]
        self.slots = np.array([robot.slot(joint) for action in actions for joint in action.joints], np.intp)
        self.width = len(self.slots)
        self._scale = np.concatenate([_row(action, action.scale) for action in actions])
        self._bounds = _raw_bounds(actions)
        default = dict(zip(contract.joints, contract.default_rad, strict=True))
        self._pose = np.concatenate([_base(action, default) for action in actions])
        self._live = _live_parts(actions, self.slots, {"motion": reference, "hold": hold})
        self._hold = hold
        self._undriven = np.setdiff1d(np.arange(N_JOINTS), self.slots)
        self._clip = _target_clip(contract, robot)
        self._scratch = np.zeros(self.width, np.float32)

    def apply(self, raw: Float32Array, out: Float32Array) -> Float32Array:
        """Joint targets (29,), rad, for raw actions (width,); written into `out`, which is returned."""
        scaled = self._scratch
        if self._bounds is None:
            np.multiply(raw, self._scale, out=scaled)
        else:
            np.maximum(raw, self._bounds[0], out=scaled)
            np.minimum(scaled, self._bounds[1], out=scaled)
            np.multiply(scaled, self._scale, out=scaled)
        for part, source, slots in self._live:
            self._pose[part] = source[slots]
        np.add(scaled, self._pose, out=scaled)
        out[self.slots] = scaled
        if len(self._undriven):
            out[self._undriven] = self._hold[self._undriven]
        if self._clip is not None:
            np.maximum(out, self._clip[0], out=out)
            np.minimum(out, self._clip[1], out=out)
        return out


def _row(action: Action, value: float | tuple[float, ...]) -> Float32Array:
    return np.broadcast_to(np.array(value, np.float32), (len(action.joints),))


def _raw_bounds(actions: list[Action]) -> tuple[Float32Array, Float32Array] | None:
    if all(action.clip_raw is None for action in actions):
        return None
    pairs = [action.clip_raw or (-np.inf, np.inf) for action in actions]
    rows = [[_row(action, pair[end]) for action, pair in zip(actions, pairs, strict=True)] for end in (0, 1)]
    return np.concatenate(rows[0]), np.concatenate(rows[1])


def _base(action: Action, default: dict[str, float]) -> Float32Array:
    """What the scaled output is added to; zeros where that changes from tick to tick."""
    if isinstance(action.base, tuple):
        return np.array(action.base, np.float32)
    if action.base == "default":
        return np.array([default[joint] for joint in action.joints], np.float32)
    return np.zeros(len(action.joints), np.float32)


def _live_parts(
    actions: list[Action], slots: NDArray[np.intp], sources: dict[str, Float32Array]
) -> list[tuple[slice, Float32Array, NDArray[np.intp]]]:
    parts = []
    start = 0
    for action in actions:
        part = slice(start, start + len(action.joints))
        if isinstance(action.base, str) and action.base in sources:
            parts.append((part, sources[action.base], slots[part]))
        start = part.stop
    return parts


def _target_clip(contract: Contract, robot: RobotConfig) -> tuple[Float32Array, Float32Array] | None:
    clip = contract.target_clip
    if clip is None:
        return None
    lower, upper = np.full(N_JOINTS, -np.inf, np.float32), np.full(N_JOINTS, np.inf, np.float32)
    slots = [robot.slot(joint) for joint in contract.joints]
    lower[slots], upper[slots] = clip.lower, clip.upper
    return lower, upper
