"""What a fit may turn, joint by joint, and the two explanations that are made of it.

`linear` is what a residual can express: `delta = a * (q_target - q) + b * dq`, added to the target.
`physical` is what may really differ: the motors' gain, dry friction, rotor inertia. Both know a command
latency, since a delay that the model lacks would be absorbed into `a`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
Kind = Literal["linear", "physical"]

LATENCY = "latency_s"
MAX_LATENCY_S = 0.1


@dataclass(frozen=True)
class Knob:
    """One quantity: value in the nominal simulator, where a fit starts, bounds, a typical change."""

    nominal: float
    start: float
    low: float
    high: float
    scale: float
    unit: str


KNOBS: Mapping[str, Knob] = {
    "a": Knob(0.0, 0.0, -0.95, 1.0, 0.5, ""),
    "b": Knob(0.0, 0.0, -0.2, 0.2, 0.05, "s"),
    "gain": Knob(1.0, 1.0, 0.2, 2.0, 0.5, ""),
    "friction_nm": Knob(0.0, 0.2, 0.0, 10.0, 1.0, "N·m"),
    "armature": Knob(1.0, 1.0, 0.3, 5.0, 0.5, ""),
    LATENCY: Knob(0.0, 0.01, 0.0, MAX_LATENCY_S, 0.02, "s"),
}
"""`gain` and `armature` are factors on the nominal value."""

STAGES: Mapping[Kind, tuple[tuple[str, ...], ...]] = {
    "linear": (("a", "b"),),
    "physical": (("gain", "friction_nm"), ("gain", "friction_nm", "armature")),
}
"""Knobs of each explanation. A later stage starts from what the one before found: all at once, friction
and inertia that are let loose on a wrong gain hide it and stay."""


@dataclass(frozen=True)
class Settings:
    """Values of every knob for several simulations at once.

    Attributes:
        joints: knob to (m, joints of the model).
        latency_s: (m,).
        network: (m, features, outputs) output layers of a delta network, rad; None without one.
    """

    joints: Mapping[str, Float64Array]
    latency_s: Float64Array
    network: Float64Array | None = None

    def repeated(self, times: int) -> "Settings":
        """Every simulation `times` times in a row."""
        joints = {name: values.repeat(times, axis=0) for name, values in self.joints.items()}
        network = None if self.network is None else self.network.repeat(times, axis=0)
        return Settings(joints, self.latency_s.repeat(times), network)


@dataclass(frozen=True)
class Parameter:
    """One number that is fitted: a knob at one joint, or at all (`column` None)."""

    knob: str
    column: int | None


class Parameters:
    """The numbers of one explanation, scaled so that a step of 1 is a typical change of each.

    Args:
        knobs: which quantities, joint by joint.
        columns: joints of the model that are fitted.
        width: joints of the model.
        latency: fit the command latency too.
    """

    def __init__(
        self,
        knobs: Sequence[str],
        columns: Sequence[int] | NDArray[np.intp],
        width: int,
        *,
        latency: bool = True,
    ) -> None:
        self.items = [Parameter(knob, int(column)) for column in columns for knob in knobs]
        if latency:
            self.items.append(Parameter(LATENCY, None))
        self._width = width
        self._scale = self._each("scale")

    def __len__(self) -> int:
        return len(self.items)

    @property
    def start(self) -> Float64Array:
        """Scaled start."""
        return self._each("start") / self._scale

    def start_at(self, other: "Parameters", scaled: Float64Array) -> Float64Array:
        """Scaled start that takes over what another set of parameters has found."""
        found = dict(zip(other.items, other.values(scaled).tolist(), strict=True))
        own = self._each("start")
        values = [found.get(parameter, value) for parameter, value in zip(self.items, own, strict=True)]
        return np.array(values) / self._scale

    @property
    def bounds(self) -> tuple[Float64Array, Float64Array]:
        """Scaled lower and upper bounds."""
        return self._each("low") / self._scale, self._each("high") / self._scale

    def values(self, scaled: Float64Array) -> Float64Array:
        """Scaled numbers, (parameters, ...), to their own units."""
        units: Float64Array = (scaled.T * self._scale).T
        return units

    def settings(self, scaled: Float64Array) -> Settings:
        """Scaled points (parameters, m) to what m simulations need."""
        values = self.values(scaled)
        nominal = nominal_settings(values.shape[1], self._width)
        joints, latency_s = dict(nominal.joints), nominal.latency_s
        for parameter, row in zip(self.items, values, strict=True):
            if parameter.column is None:
                latency_s = row
            else:
                joints[parameter.knob][:, parameter.column] = row
        return Settings(joints, latency_s)

    def at_bounds(self, scaled: Float64Array) -> list[Parameter]:
        """Those within 1 % of their range from a bound that is not also the nominal value."""
        low, high = self.bounds
        near = 0.01 * (high - low)
        nominal = self._each("nominal") / self._scale
        hit = ((scaled - low < near) & (low != nominal)) | ((high - scaled < near) & (high != nominal))
        return [parameter for parameter, is_hit in zip(self.items, hit, strict=True) if is_hit]

    def _each(self, field: str) -> Float64Array:
        return np.array([getattr(KNOBS[parameter.knob], field) for parameter in self.items])


def nominal_settings(count: int, width: int) -> Settings:
    """`count` times the simulator as it is."""
    joints = {name: np.full((count, width), knob.nominal) for name, knob in KNOBS.items() if name != LATENCY}
    return Settings(joints, np.zeros(count))
