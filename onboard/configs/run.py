"""One run as data: everything that `onboard run` was told, resolved, and handed to every process.

The same object is written into the rollout file, so that a run can be told from its file alone.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from onboard.configs.bench import BenchProtocol
from onboard.configs.external_pose import check_external_pose

Seconds = Annotated[float, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0, le=1)]


class Sticks(Struct, frozen=True, forbid_unknown_fields=True):
    """How the remote's sticks become a velocity command: vx = +ly, vy = -lx, wz = -rx.

    A full stick gives the end of the contract's command range in that direction.
    """

    dead_zone: Annotated[float, Meta(ge=0, lt=1)] = 0.08
    """Deflection that counts as centred; beyond it the command starts from zero."""
    smoothing_s: Seconds = 0.1
    """Time constant of the low-pass, in seconds, so it is the same at any rate."""


class Timing(Struct, frozen=True, forbid_unknown_fields=True):
    """Pacing and real-time rights of the control loop."""

    rate_hz: Annotated[float, Meta(ge=10, le=200)] = 50.0
    spin_us: Annotated[float, Meta(ge=0, le=2000)] = 0.0
    """Busy-wait before each grid point; 0 sleeps all the way."""
    realtime: Literal["auto", "off"] = "auto"
    """auto: ask for SCHED_FIFO, CPU affinity and locked memory, carry on with a warning without."""
    prewarm: bool = True
    """A dry pass over policy and caches shortly before each grid point; changes no state."""


class PolicyChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """A further policy that the run may switch to."""

    policy: str
    """Folder, ONNX file, or shipped name."""
    preset: str = ""


class Motions(Struct, frozen=True, forbid_unknown_fields=True):
    """Durations of the runtime's own motions."""

    ramp_s: Annotated[float, Meta(ge=3, le=30)] = 3.0
    hold_blend_s: Annotated[float, Meta(ge=0.1, le=3)] = 0.3
    fade_in_s: Annotated[float, Meta(ge=0, le=2)] = 0.1
    approach_s: Annotated[float, Meta(ge=0, le=10)] = 1.5
    """Before a switch: joints that the policy in charge does not drive move to the next one's start pose."""
    switch_s: Annotated[float, Meta(ge=0, le=2)] = 0.3
    """How long targets and gains blend when one policy takes over from another."""


class RunConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that one run depends on besides the robot's description and the policy's contract."""

    policy: str
    """Folder, ONNX file, or shipped name."""
    also: tuple[PolicyChoice, ...] = ()
    """Policies to switch to, in the order of their index from 1."""
    robot: str = "g1_29dof"
    safety: str = "g1"
    interface: str = "lo"
    domain: Annotated[int, Meta(ge=0, le=230)] = 0
    preset: str = ""
    format: str = ""
    """Read the first policy as this format, whatever else its bundle holds; "": what it contains decides."""
    provider: str = ""
    """What provides terms that the robot can't measure, where a contract names nobody; "" refuses those."""
    policy_overrides: tuple[str, ...] = ()
    safety_overrides: tuple[str, ...] = ()
    out: str = "rollouts"
    note: str = ""
    script: str = ""
    """YAML file that presses the operator's buttons and gives the velocity; shipped name or path."""
    keyboard: bool = False
    gantry: bool = False
    """The robot hangs: hold is allowed without a quasi-static stance."""
    dry: bool = False
    """Do everything except command: no command writer exists at all."""
    release: bool = False
    """Release the robot's built-in controller (it goes limp) once the operator confirms."""
    bench: BenchProtocol | None = None
    """Play this instead of a policy."""
    residual: str = ""
    """Residual file for the first policy, "" for none."""
    residual_overrides: tuple[str, ...] = ()
    arm: Literal["none", "keep", "drop", "shadow", "blocks"] = "none"
    """keep applies the residual, shadow only computes and logs it, drop does neither; blocks alternates."""
    block_s: Annotated[float, Meta(ge=1, le=600)] = 10.0
    """Arm blocks: length of a stretch with one arm."""
    block_seed: Annotated[int, Meta(ge=0)] = 0
    """Arm blocks: of the order."""
    waive: tuple[str, ...] = ()
    """Checks of `onboard check` whose failure shall not refuse this run."""
    lowstate: bool = False
    """Record every LowState sample too."""
    external_pose: str = ""
    """Where a pose of the pelvis comes from, `udp:HOST:PORT` to listen on or `dds`; "" for nowhere."""
    sticks: Sticks = Sticks()
    timing: Timing = Timing()
    motions: Motions = Motions()

    def __post_init__(self) -> None:
        check_external_pose(self.external_pose)

    @property
    def period_ns(self) -> int:
        """Control period, ns."""
        return round(1e9 / self.timing.rate_hz)
