"""Bench protocols as data: what is asked of which joints of a robot that hangs, and with which gains."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from onboard.configs.errors import ConfigError
from onboard.configs.loader import load, shipped
from onboard.configs.robot import N_JOINTS, RobotConfig

Hertz = Annotated[float, Meta(gt=0, le=20)]
Gain = Annotated[float, Meta(ge=0, le=500)]
Angle = Annotated[float, Meta(ge=-3.2, le=3.2)]
Signal = Literal["sine", "multisine", "chirp", "step", "sweep", "hold"]


class Excite(Struct, frozen=True, forbid_unknown_fields=True):
    """What one joint, or every joint of a pattern, does in a segment.

    Attributes:
        amplitude_rad: largest distance from the pose; a sweep has none.
        hz: of a sine.
        phase_rad: of a sine; of a step in quarter turns, which say with which of its four levels it begins.
    """

    amplitude_rad: Annotated[float, Meta(ge=0, le=1.5)] = 0.0
    hz: Hertz | None = None
    phase_rad: Angle = 0.0


class Segment(Struct, frozen=True, forbid_unknown_fields=True):
    """One signal for some time.

    Attributes:
        signal: `sine`, `multisine` (all of `hz_list` at once, other phases for every joint), `chirp`
            (`hz_range`, exponential), `step` (up, back, down, back, each for `step_s`), `sweep` (slowly
            to `range_share` of the way to both limits), or `hold`.
        for_s: duration.
        joints: joint name or pattern to what it does; later keys win. The others hold the pose.
    """

    signal: Signal
    for_s: Annotated[float, Meta(gt=0, le=600)]
    joints: dict[str, Excite] = {}
    hz_list: tuple[Hertz, ...] = ()
    hz_range: tuple[Hertz, Hertz] | None = None
    step_s: Annotated[float, Meta(ge=0.1, le=10)] = 1.0
    range_share: Annotated[float, Meta(gt=0, le=1)] = 0.9

    def __post_init__(self) -> None:
        if bool(self.joints) == (self.signal == "hold"):
            raise ValueError(f"a segment '{self.signal}' names {len(self.joints)} joints")
        if self.signal == "multisine" and not self.hz_list:
            raise ValueError("a multisine needs 'hz_list', for example [0.3, 0.7, 1.3, 2.1]")
        if self.signal == "chirp" and self.hz_range is None:
            raise ValueError("a chirp needs 'hz_range', for example [0.2, 4.0]")
        for name, excite in self.joints.items():
            if self.signal == "sine" and excite.hz is None:
                raise ValueError(f"{name}: a sine needs 'hz'")
            if self.signal != "sweep" and not excite.amplitude_rad:
                raise ValueError(f"{name}: a {self.signal} needs 'amplitude_rad'")


class BenchProtocol(Struct, frozen=True, forbid_unknown_fields=True):
    """A bench run.

    Attributes:
        name: as it appears in logs.
        about: free text.
        pose: joint name or pattern to rad; the others at 0.
        kp, kd: joint name or pattern to N·m/rad and N·m·s/rad; the others get the robot's stand gains.
        ramp_s: over which every segment but a step swells and fades.
        rest_s: in the pose before, between and after the segments.
        margin_rad: distance that no target falls short of to a limit.
        segments: in order.
    """

    name: str
    segments: Annotated[tuple[Segment, ...], Meta(min_length=1)]
    about: str = ""
    pose: dict[str, Angle] = {}
    kp: dict[str, Gain] = {}
    kd: dict[str, Gain] = {}
    ramp_s: Annotated[float, Meta(ge=0.1, le=5)] = 0.5
    rest_s: Annotated[float, Meta(ge=0, le=10)] = 0.5
    margin_rad: Annotated[float, Meta(ge=0.02, le=0.5)] = 0.05

    @property
    def seconds(self) -> float:
        """From the first rest to the last."""
        return sum(segment.for_s + self.rest_s for segment in self.segments) + self.rest_s


def load_bench(name: str, overrides: list[str] | None = None) -> BenchProtocol:
    """Read a shipped protocol or a YAML path.

    Raises:
        ConfigError: no such protocol, or something in it is wrong.
    """
    return load(shipped("bench", name), BenchProtocol, overrides)


def matching(pattern: str, robot: RobotConfig, where: str) -> list[int]:
    """Slots of the joints that a name or pattern means, those that the variant lacks left out.

    Raises:
        ConfigError: there are none.
    """
    names = robot.joint_names
    found = [slot for slot in range(N_JOINTS) if robot.valid[slot] and fnmatchcase(names[slot], pattern)]
    if not found:
        raise ConfigError(f"{where}: '{pattern}' matches no joint of {robot.name}, for example {names[3]}")
    return found


def spread(values: Mapping[str, float], robot: RobotConfig, base: np.ndarray, where: str) -> np.ndarray:
    """(29,) the values of names and patterns over those of `base`; later keys win."""
    out = np.array(base, np.float64)
    for pattern, value in values.items():
        out[matching(pattern, robot, where)] = value
    return out
