"""What a policy needs besides its weights, as one typed, frozen object.

However a family writes it down (its own YAML, ONNX metadata, a preset), a loader turns it into a
`Contract`; everything behind the loaders is built from that and from nothing else. As YAML:

```
schema: 1
name: walker
rate_hz: 50
imu: pelvis                       # body whose IMU gives gyro and gravity
joints: [left_hip_pitch_joint, …] # order of every per-joint list below
kp: [...]                         # N·m/rad
kd: [...]                         # N·m·s/rad
default_rad: [...]                # what relative joint positions are relative to
graphs:
  policy:
    model: policy.onnx
    inputs:
      obs:
        blocks:                   # one after the other, in this order
          - terms: [{term: gyro, scale: 0.25}, {term: gravity}, {term: joint_pos}]
          - {terms: [{term: joint_vel}], frames: 5, layout: term_major, order: oldest_first,
             current: true, fill: zeros}
    action: {output: actions, joints: [...], base: default, scale: 0.25}
```

Joints are named, never numbered. Keys that change behaviour have no silent default: a loader that
fills one in says so on the bundle (`PolicyBundle.defaults`).
"""

import math
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from onboard.policies.inputs import Input, Names, Pair, Positive

SCHEMA = 1

Finite = tuple[float, ...]
"""Per-joint numbers, in the order of the list of joints that they belong to."""


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """How a graph's raw output becomes joint targets: `base + scale · clip(raw)`, rad.

    Attributes:
        output: name of the ONNX output.
        joints: what it drives, in the order of the output.
        base: `default` pose, `motion` (the reference's joint positions), `hold` (`hold_rad`), `zero`
            (the output is absolute), or numbers, rad, one per joint.
        scale: rad per unit of the raw output, one number or one per joint.
        clip_raw: bounds of the raw output before the scale. What is fed back as the last action is
            the unclipped output.
    """

    output: str
    joints: Names
    base: Literal["default", "motion", "hold", "zero"] | Finite
    scale: float | Finite
    clip_raw: Pair | None = None


class Recurrent(Struct, frozen=True, forbid_unknown_fields=True):
    """State that a graph carries: `output` of one tick is `input` of the next; zeros on reset."""

    input: str
    output: str


class Graph(Struct, frozen=True, forbid_unknown_fields=True):
    """One ONNX file. Graphs run in the order in which the contract lists them.

    Attributes:
        model: path of the file, relative to the contract's folder.
        inputs: by ONNX input name; recurrent inputs are not listed here.
        action: what it drives; None for a graph that only feeds others.
        logged: further outputs that go into the record, by ONNX output name.
        recurrent: state carried from tick to tick.
        every: runs once in this many ticks of `rate_hz`, holding its output in between.
    """

    model: str
    inputs: Annotated[dict[str, Input], Meta(min_length=1)]
    action: Action | None = None
    logged: tuple[str, ...] = ()
    recurrent: tuple[Recurrent, ...] = ()
    every: Annotated[int, Meta(ge=1)] = 1


class Still(Struct, frozen=True, forbid_unknown_fields=True):
    """When and how a gait clock stands still.

    Attributes:
        when: `slow` (linear and angular speed commanded are both under `below`) or `stand_flag` (the
            command's stand flag is 0).
        below: m/s and rad/s, for `slow`.
        angle_rad: phase of every foot while it stands.
        restart: the first moving tick starts at the offsets again; else the clock went on unseen.
    """

    when: Literal["slow", "stand_flag"]
    angle_rad: float
    restart: bool
    below: float = 0.0


class Gait(Struct, frozen=True, forbid_unknown_fields=True):
    """A gait clock: every foot's angle is `offset + 2π·t/period`, wrapped.

    Attributes:
        period_s: of one stride.
        offsets_rad: one angle per foot, at the start.
        still: None for a clock that never stops.
    """

    period_s: Positive
    offsets_rad: Annotated[Finite, Meta(min_length=1, max_length=2)]
    still: Still | None = None


class EmbeddedMotion(Struct, frozen=True, forbid_unknown_fields=True):
    """Outputs of the policy's own ONNX that hold the reference, by their names.

    Attributes:
        index: the ONNX input that selects the frame.
        joint_pos, joint_vel: rad and rad/s, in the order of `Motion.joints`.
        anchor_quat: orientation of the anchor body in the world, or of several bodies.
        anchor_row: which of the bodies is the anchor.
        graph: which of the contract's graphs.
    """

    graph: str
    index: str
    joint_pos: str
    joint_vel: str
    anchor_quat: str
    anchor_row: Annotated[int, Meta(ge=0)] = 0


class Motion(Struct, frozen=True, forbid_unknown_fields=True):
    """A reference motion.

    Attributes:
        source: `file`, `onnx` (embedded in a graph), or `clock` (nothing but its length).
        file: path relative to the contract's folder, for `file`.
        clip: which motion of the file, for files that hold several.
        rate_hz: frame rate of the file, for files that state none; resampled to the contract's.
        length_s: for `clock`.
        embedded: for `onnx`.
        joints: joint order of the reference data; None for the contract's `joints`.
        quat_order: of the quaternions in the reference data.
        anchor: body whose orientation is compared with the reference.
        align: `yaw` turns the reference about the vertical so that it starts as the robot stands.
        at_end: `hold` the last frame and end the policy, `loop`, or `hand_over` to the policy that ran
            before this one.
    """

    source: Literal["file", "onnx", "clock"]
    file: str | None = None
    clip: str | None = None
    rate_hz: Positive | None = None
    length_s: Positive | None = None
    embedded: EmbeddedMotion | None = None
    joints: Names | None = None
    quat_order: Literal["wxyz", "xyzw"] | None = None
    anchor: Literal["torso", "pelvis"] | None = None
    align: Literal["yaw", "none"] = "yaw"
    at_end: Literal["hold", "loop", "hand_over"] = "hold"

    def __post_init__(self) -> None:
        needed = {
            "file": ("file", "quat_order", "anchor"),
            "onnx": ("embedded", "quat_order", "anchor"),
            "clock": ("length_s",),
        }[self.source]
        missing = [key for key in needed if getattr(self, key) is None]
        if missing:
            raise ValueError(f"a motion with source '{self.source}' needs: {', '.join(missing)}")


class Commands(Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator may ask for. A range that is None was not stated by the policy's owner.

    Attributes:
        lin_vel_x, lin_vel_y: m/s, forward and to the left.
        ang_vel_z: rad/s, counter-clockwise.
        height_m: base height asked for until the operator says otherwise.
    """

    lin_vel_x: Pair | None = None
    lin_vel_y: Pair | None = None
    ang_vel_z: Pair | None = None
    height_m: float = 0.0

    def __post_init__(self) -> None:
        for key in ("lin_vel_x", "lin_vel_y", "ang_vel_z"):
            limits = getattr(self, key)
            if limits is not None and not limits[0] <= limits[1]:
                raise ValueError(f"{key} {list(limits)}: expected [lower, upper]")


class TargetClip(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of the joint targets that belong to the policy itself, rad, in the order of `joints`."""

    lower: Finite
    upper: Finite


class Constant(Struct, frozen=True, forbid_unknown_fields=True):
    """Fixed numbers that `constant` terms read by name.

    Attributes:
        values: the numbers; from the file where there is one.
        file: .npy that holds them, relative to the contract's folder.
    """

    values: Annotated[Finite, Meta(min_length=1)]
    file: str | None = None


class Contract(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything needed to run a policy besides its weights.

    Attributes:
        schema: version of this description.
        name: as it appears in logs.
        rate_hz: ticks a second, of the fastest graph.
        imu: body whose IMU gives gyro and gravity.
        joints: names; order of every per-joint list of this object. All joints of the robot stand
            here, driven or not, because all of them need gains.
        kp, kd: N·m/rad and N·m·s/rad.
        default_rad: pose that relative joint positions are relative to.
        start_rad: pose that the robot is brought to before the policy starts; None for the first frame of
            the reference motion.
        hold_rad: what joints hold that no graph drives.
        observed_joints: order of the joint terms that name no joints of their own.
        graphs: by name, in the order in which they run.
        target_clip: None where the family clips no targets.
        commands, gait, motion: None or default where the policy has none.
        constants: numbers for `constant` terms, by the name that the terms give as `source`.
        providers: privileged term to the name of what provides it.
        decimation: physics steps per tick in training, for the record only.
        safety: what this policy needs changed in the robot's safety table, nested like that table.
        about: free text.
    """

    schema: Literal[1]
    name: str
    rate_hz: Positive
    imu: Literal["pelvis", "torso"]
    joints: Names
    kp: Finite
    kd: Finite
    default_rad: Finite
    hold_rad: Finite
    observed_joints: Names
    graphs: Annotated[dict[str, Graph], Meta(min_length=1)]
    start_rad: Finite | None = None
    target_clip: TargetClip | None = None
    commands: Commands = Commands()
    gait: Gait | None = None
    motion: Motion | None = None
    constants: dict[str, Constant] = {}
    providers: dict[str, str] = {}
    decimation: Annotated[int, Meta(ge=1)] | None = None
    safety: dict[str, Any] = {}
    about: str = ""

    def __post_init__(self) -> None:
        for key in ("kp", "kd", "default_rad", "start_rad", "hold_rad"):
            if key != "start_rad" or self.start_rad is not None:
                _per_joint(key, getattr(self, key), len(self.joints), "joints")
        if self.start_rad is None and (self.motion is None or self.motion.source == "clock"):
            raise ValueError("start_rad may be left out only where a reference motion has frames")
        if min(self.kp) < 0 or min(self.kd) < 0:
            raise ValueError("kp and kd must not be negative")
        if self.target_clip is not None:
            _per_joint("target_clip.lower", self.target_clip.lower, len(self.joints), "joints")
            _per_joint("target_clip.upper", self.target_clip.upper, len(self.joints), "joints")
        for name, graph in self.graphs.items():
            if graph.action is not None:
                _check_action(f"graphs.{name}.action", graph.action)
        _distinct("joints", self.joints)
        _distinct("observed_joints", self.observed_joints)
        driven = [j for graph in self.graphs.values() if graph.action for j in graph.action.joints]
        _distinct("the action joints of all graphs", tuple(driven))
        if not driven:
            raise ValueError("no graph has an action: nothing would move")


def _check_action(where: str, action: Action) -> None:
    for key in ("base", "scale"):
        value = getattr(action, key)
        if isinstance(value, tuple):
            _per_joint(f"{where}.{key}", value, len(action.joints), f"{where}.joints")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{where}.{key} is {value}")


def _per_joint(key: str, values: Finite, expected: int, names: str) -> None:
    if len(values) != expected:
        raise ValueError(f"{key} has {len(values)} numbers, expected {expected}, one for each of {names}")
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{key} has a number that is not finite")


def _distinct(key: str, names: Names) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{key}: named twice: {', '.join(twice)}")
