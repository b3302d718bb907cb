"""A residual as typed, frozen data: what a delta-action file says.

```yaml
residual:
  schema: 1
  name: left-leg
  kind: linear              # linear | onnx | by_contact
  mode: invert              # add | invert
  unit: rad                 # of the delta: rad, or raw (before the policy's action scale)
  joints: [left_knee_joint] # mask by name: nothing else is touched
  coefficients:             # linear: delta = a·(q_target - q) + b·dq, rad
    left_knee_joint: {a: -0.4, b: 0.01}
  provenance: {logs: {bench.h5: <sha256>}, heldout_before_deg: 8.1, heldout_after_deg: 0.7}
```

A delta makes the *simulator* act like the robot: `sim(s, a + Δ(s, a)) ≈ robot(s, a)`. On the robot a
policy that was not fine-tuned needs the inverse, the action `a'` with `a' + Δ(s, a') = a`: mode
`invert`. Mode `add` sends `a + Δ(s, a)`, as a simulator does.

A network has an input contract of its own in the policies' term language (`onboard.policies.inputs`),
with three terms that only a residual may read: `action` (raw), `target` and `target_error` (rad), of
the action that the delta is asked about. In its history stand the actions that were applied.
"""

import math
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from onboard.policies.inputs import Input, Names, Positive

SCHEMA = 1

INVERT_A_MIN = -0.8
"""Coefficients `a` at or below this are refused for `invert`: the inverse gain 1/(1+a) would reach 5."""

Phase = Literal["flight", "left", "right", "both"]
"""Which feet stand on the ground."""


class Coefficients(Struct, frozen=True, forbid_unknown_fields=True):
    """One joint's linear delta `a·(q_target - q) + b·dq`, rad; `b` in s."""

    a: float
    b: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.a) and math.isfinite(self.b)):
            raise ValueError(f"coefficients a={self.a}, b={self.b} must be finite")


class Network(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One ONNX file.

    Attributes:
        model: path relative to the residual file's folder.
        output: ONNX output with the delta, one number per joint of the mask, in its order.
        inputs: by ONNX input name.
    """

    model: str
    output: str
    inputs: Annotated[dict[str, Input], Meta(min_length=1)]


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The delta of one contact phase: linear or a network."""

    coefficients: dict[str, Coefficients] = {}
    network: Network | None = None

    def __post_init__(self) -> None:
        if bool(self.coefficients) == (self.network is not None):
            raise ValueError("a part has either coefficients or a network")


class DropOn(Struct, frozen=True, forbid_unknown_fields=True):
    """When the slot drops its residual for the rest of the episode; a delta that is not finite always does.

    Attributes:
        bound_saturated_s: some joint was at its bound for so long without a break.
        contact_unknown_s: `by_contact` did not know the phase for so long.
    """

    bound_saturated_s: Positive = 0.5
    contact_unknown_s: Annotated[float, Meta(ge=0)] = 0.04


class Provenance(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the numbers come from.

    Attributes:
        made_by: program and version.
        logs, heldout_logs: sha256 by file name.
        simulator: name, version and overrides.
        latency_s: command latency identified together with the delta; not part of it.
        before_deg, after_deg: RMS joint tracking error, simulator against robot, on the fitted data.
        heldout_before_deg, heldout_after_deg: the same on data that was not fitted.
        notes: anything else, one sentence each.
    """

    made_by: str = ""
    logs: dict[str, str] = {}
    heldout_logs: dict[str, str] = {}
    simulator: str = ""
    latency_s: float | None = None
    before_deg: float | None = None
    after_deg: float | None = None
    heldout_before_deg: float | None = None
    heldout_after_deg: float | None = None
    notes: tuple[str, ...] = ()


class Residual(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that the slot needs.

    Attributes:
        schema: version of this description.
        name: as it appears in logs.
        kind: `linear`, `onnx`, or `by_contact`: one of `phases` by which feet stand on the ground.
        mode: `add` or `invert`.
        unit: of the delta; a linear one is in rad.
        joints: what it touches.
        coefficients: for `linear`, one entry per joint.
        network: for `onnx`.
        phases: for `by_contact`, all four of them.
        bound_rad: largest correction of a joint; required for networks.
        lowpass_hz: first-order filter on the correction; None for none.
        fade_s: on every switch on or off while the policy is in charge.
        drop_on: when it drops itself.
        iterations: of the fixed point that inverts a network.
        gain_cap: bound of the linear inverse's gain 1/(1+a).
        through: `target` moves the joint targets; `gains`, for a linear inverse, changes the motors' kp and
            kd instead, which is the same torque but is cut by no limit of the target's range.
        feedback: what the policy sees as its last action: its own (`base`) or the `combined` one.
        action_range_rad: per joint, p1 to p99 of target less default in a nominal trial of the policy;
            a bound beyond 30 % of it is remarked on.
        provenance: where the numbers come from.
    """

    schema: Literal[1]
    name: str
    kind: Literal["linear", "onnx", "by_contact"]
    mode: Literal["add", "invert"]
    unit: Literal["raw", "rad"]
    joints: Names
    coefficients: dict[str, Coefficients] = {}
    network: Network | None = None
    phases: dict[Phase, Part] = {}
    bound_rad: Positive | None = None
    lowpass_hz: Positive | None = None
    fade_s: Annotated[float, Meta(ge=0, le=5)] = 0.5
    drop_on: DropOn = DropOn()
    iterations: Annotated[int, Meta(ge=1, le=20)] = 3
    gain_cap: Annotated[float, Meta(ge=1, le=5)] = 2.0
    through: Literal["target", "gains"] = "target"
    feedback: Literal["base", "combined"] = "base"
    action_range_rad: dict[str, Positive] = {}
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        twice = sorted({name for name in self.joints if self.joints.count(name) > 1})
        if twice:
            raise ValueError(f"joints: named twice: {', '.join(twice)}")
        if self.through == "gains" and (self.kind, self.mode) != ("linear", "invert"):
            raise ValueError(f"through gains goes a linear inverse alone, found {self.kind}, {self.mode}")
        if self.through == "gains" and (self.bound_rad or self.lowpass_hz):
            raise ValueError(
                "through gains there is no correction to bound_rad or lowpass_hz; leave them out"
            )
        _check_kind(self)
        for part in self.parts.values():
            _check_part(self, part)

    @property
    def parts(self) -> dict[str, Part]:
        """The deltas by phase; a residual that does not ask for contact has one, under ''."""
        if self.kind == "by_contact":
            return {str(phase): part for phase, part in self.phases.items()}
        return {"": Part(self.coefficients, self.network)}


def _check_kind(residual: Residual) -> None:
    """The keys that a kind needs, and none of another kind's."""
    given: dict[str, Any] = {
        "coefficients": residual.coefficients,
        "network": residual.network,
        "phases": residual.phases,
    }
    needed = {"linear": "coefficients", "onnx": "network", "by_contact": "phases"}[residual.kind]
    found = [key for key, value in given.items() if value]
    if found != [needed]:
        raise ValueError(f"kind {residual.kind} needs '{needed}' alone, found {', '.join(found) or 'none'}")
    missing = {"flight", "left", "right", "both"} - residual.phases.keys()
    if residual.kind == "by_contact" and missing:
        raise ValueError(f"phases lacks {', '.join(sorted(missing))}")


def _check_part(residual: Residual, part: Part) -> None:
    if part.network is not None:
        if residual.bound_rad is None:
            raise ValueError("bound_rad is required for a network: nobody knows what it says elsewhere")
        return
    if residual.unit != "rad":
        raise ValueError("unit: a linear delta is in rad, expected 'rad'")
    odd = sorted(set(part.coefficients) ^ set(residual.joints))
    if odd:
        raise ValueError(f"coefficients and joints must name the same joints, but {', '.join(odd)}")
    steep = [
        name for name, c in part.coefficients.items() if residual.mode == "invert" and c.a <= INVERT_A_MIN
    ]
    if steep:
        raise ValueError(
            f"a <= {INVERT_A_MIN} of {', '.join(steep)} can't be inverted safely (gain 1/(1+a) of 5 and "
            "more); the simulator is too far from the robot: fit gain, friction or latency first"
        )
