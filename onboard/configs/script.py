"""Operator scripts as data: what is pressed and commanded, in order, and when to go on."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from onboard.configs.loader import load, shipped
from onboard.configs.robot import Vector3

Action = Literal["start", "go", "stop", "damp", "limp", "mark"]
ModeName = Literal["damp", "ramp", "hold", "policy", "limp"]


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a script: press, set the velocity, switch the policy, then wait for a mode and for a time.

    Everything given happens in that order; the next step begins when the waits are over.
    """

    press: Action | None = None
    velocity: Vector3 | None = None
    """vx, vy, wz in m/s, m/s, rad/s, kept until another step changes it."""
    policy: Annotated[int, Meta(ge=0, le=99)] | None = None
    """Switch to this policy of the run: 0 the first, 1 the first of `--also`, and so on."""
    until: ModeName | None = None
    """Wait for this mode of the control loop."""
    timeout_s: Annotated[float, Meta(gt=0)] = 15.0
    """How long `until` may take before the script gives up and the run stops."""
    for_s: Annotated[float, Meta(ge=0)] = 0.0
    """Time to wait, after `until` if both are given."""


class ScriptConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A script; after the last step the run stops in order."""

    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]


def load_script(name: str) -> ScriptConfig:
    """Read a shipped script or a YAML path.

    Raises:
        ConfigError: no such script, or a step is wrong.
    """
    return load(shipped("scripts", name), ScriptConfig)
