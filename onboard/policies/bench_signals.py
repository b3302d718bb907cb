"""The signals of a bench run, computed before it starts: one row of joint offsets a tick."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.bench import BenchProtocol, Excite, Segment, matching, spread
from onboard.configs.errors import ConfigError
from onboard.configs.robot import N_JOINTS, RobotConfig

Float64Array = NDArray[np.float64]


class Course(NamedTuple):
    """A protocol on a robot.

    Attributes:
        pose: (29,) rad.
        slots: SDK motor indices of all joints that move, ascending.
        offsets: (ticks, len(slots)) rad, from the pose.
        segment: (ticks,) index of the segment, -1 in a rest.
    """

    pose: Float64Array
    slots: list[int]
    offsets: NDArray[np.float32]
    segment: NDArray[np.int64]


def plan_course(protocol: BenchProtocol, robot: RobotConfig, period_s: float) -> Course:
    """Compute every offset and check that all targets stay inside the joints' ranges.

    Raises:
        ConfigError: a joint is unknown, or a target comes nearer to a limit than the protocol's margin.
    """
    where = f"bench {protocol.name}"
    pose = spread(protocol.pose, robot, np.zeros(N_JOINTS), f"{where}: pose")
    rest = np.zeros((round(protocol.rest_s / period_s), N_JOINTS))
    rows, segment = [rest], [np.full(len(rest), -1)]
    for index, part in enumerate(protocol.segments):
        moved = _segment(part, protocol, robot, pose, period_s)
        _check_range(moved, pose, robot, protocol, f"{where}: segments[{index}]")
        rows += [moved, rest]
        segment += [np.full(len(moved), index), np.full(len(rest), -1)]
    offsets = np.concatenate(rows)
    slots = [slot for slot in range(N_JOINTS) if np.any(offsets[:, slot])]
    if not slots:
        slots = [int(np.flatnonzero(robot.valid)[0])]  # a mere hold still needs one column
    return Course(pose, slots, offsets[:, slots].astype(np.float32), np.concatenate(segment))


def _segment(
    part: Segment, protocol: BenchProtocol, robot: RobotConfig, pose: Float64Array, period_s: float
) -> Float64Array:
    """(ticks, 29) rad offsets of one segment."""
    ticks = max(2, round(part.for_s / period_s))
    time_s: Float64Array = (np.arange(ticks) * period_s).astype(np.float64)
    out = np.zeros((ticks, N_JOINTS))
    envelope = np.ones(ticks) if part.signal in {"step", "sweep"} else _envelope(time_s, protocol.ramp_s)
    for pattern, excite in part.joints.items():
        for slot in matching(pattern, robot, f"bench {protocol.name}"):
            if part.signal == "sweep":
                room = (robot.upper[slot] - pose[slot], pose[slot] - robot.lower[slot])
                out[:, slot] = _sweep(time_s, part, float(room[0]), float(room[1]), protocol.margin_rad)
            else:
                out[:, slot] = excite.amplitude_rad * envelope * _shape(time_s, part, excite, slot)
    return out


def _shape(time_s: Float64Array, part: Segment, excite: Excite, slot: int) -> Float64Array:
    """A signal between -1 and 1."""
    if part.signal == "sine":
        return _float64(np.sin(2 * math.pi * (excite.hz or 0.0) * time_s + excite.phase_rad))
    if part.signal == "chirp":
        low, high = part.hz_range or (1.0, 1.0)
        growth = math.log(high / low) / part.for_s if high != low else 0.0
        cycles = low * (np.expm1(growth * time_s) / growth if growth else time_s)
        return _float64(np.sin(2 * math.pi * cycles))
    if part.signal == "step":
        quarters = round(excite.phase_rad / (math.pi / 2))
        return _float64(np.array([1.0, 0.0, -1.0, 0.0])[((time_s / part.step_s).astype(int) + quarters) % 4])
    # Another phase for every joint and frequency, the same in every run.
    phases = np.random.default_rng(slot).uniform(0, 2 * math.pi, len(part.hz_list))
    waves = np.sin(2 * math.pi * np.outer(part.hz_list, time_s) + phases[:, None]).sum(axis=0)
    return _float64(waves / np.abs(waves).max())


def _sweep(time_s: Float64Array, part: Segment, up: float, down: float, margin: float) -> Float64Array:
    """From the pose to near the upper limit, to near the lower one, and back, without a jerk."""
    wave = np.sin(2 * math.pi * time_s / part.for_s)
    reach_up, reach_down = (max(0.0, part.range_share * room - margin) for room in (up, down))
    return _float64(np.where(wave > 0, wave * reach_up, wave * reach_down))


def _envelope(time_s: Float64Array, ramp_s: float) -> Float64Array:
    """Swells over `ramp_s` and fades over `ramp_s`, raised cosines."""
    left_s = time_s[-1] - time_s
    share = np.clip(np.minimum(time_s, left_s) / ramp_s, 0.0, 1.0)
    return _float64(0.5 - 0.5 * np.cos(math.pi * share))


def _float64(values: NDArray[Any]) -> Float64Array:
    return values.astype(np.float64)


def _check_range(
    moved: Float64Array, pose: Float64Array, robot: RobotConfig, protocol: BenchProtocol, where: str
) -> None:
    target = pose + moved
    room = np.minimum(robot.upper - target.max(axis=0), target.min(axis=0) - robot.lower)
    room[~robot.valid] = np.inf
    slot = int(np.argmin(room))
    if room[slot] < protocol.margin_rad - 1e-6:
        joint = robot.joints[slot]
        raise ConfigError(
            f"{where}: {joint.name} would go from {target[:, slot].min():.3f} to "
            f"{target[:, slot].max():.3f} rad; "
            f"its range is {joint.lower_rad:.3f} to {joint.upper_rad:.3f} and must be kept by "
            f"{protocol.margin_rad:g} rad: change pose or amplitude_rad"
        )
