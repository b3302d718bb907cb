"""The moving part of `onboard check --gantry`: every joint takes a small step, one takes a chirp.

The robot hangs. What plays is a bench protocol in the place of a policy, through the same gateway, gate,
limits and recorder as every run, with the full-rate state recorded; what is judged is its rollout.
"""

from typing import NamedTuple

import msgspec
import numpy as np

from onboard.configs.bench import BenchProtocol, Excite, Segment, load_bench, spread
from onboard.configs.robot import RobotConfig
from onboard.configs.script import ScriptConfig, Step
from onboard.logging.rollout import Rollout
from onboard.policies.bench_signals import Course, plan_course
from onboard.policies.estimators.kinematics import Float64Array
from onboard.runtime.preflight.balance import Balance, integral
from onboard.runtime.preflight.recording import BEFORE_S, SETTLE_S, Recording, Samples
from onboard.runtime.preflight.response import LAGS_S, Fit, fit

PROTOCOL = "probe"
CHIRP_RAD = 0.06
CHIRP_HZ = (0.8, 5.0)
CHIRP_S = 8.0
PIECE_S = 1.0
"""The chirp is measured in pieces of so much; their scatter is the uncertainty."""
LEVELS = 4
"""Of a step segment: up, back, down, back."""
SETTLED = 0.4
"""Last part of a level in which a joint counts as settled."""
OBEYS = 0.15
"""Strength above which a joint counts as obeying; a dead one shows below 0.01."""
STRAYED, STRAYED_EXPLAINED = 0.3, 0.9
"""From when on another joint counts as the one that obeyed."""
STRAYS = 3
"""So many of the joints that went farthest are tried."""
WAIST = (12, 13, 14)
"""Nobody knows whether the gantry holds the pelvis or the torso: what the waist carries is not known."""


class Response(NamedTuple):
    """How one joint's step was answered.

    Attributes:
        joint: SDK motor index of the joint that was commanded.
        mover: of the joint that obeyed; None where none did.
        reversed: it went the wrong way.
        reach: how far it went in the end, as a share of the step.
        fit: of what moved; None where nothing did.
    """

    joint: int
    mover: int | None
    reversed: bool
    reach: float
    fit: Fit | None


class Measured(NamedTuple):
    """What a probe showed.

    Attributes:
        responses: of every joint whose segment was played to its end.
        missing: SDK motor indices of the joints that were to be moved and were not.
        rest: still, in the probe's pose.
        chirp: of every piece of the chirp that could be told; empty where it was not played.
    """

    responses: list[Response]
    missing: list[int]
    rest: Samples
    chirp: list[Fit]


def probe_protocol(robot: RobotConfig, chirp_joint: str) -> BenchProtocol:
    """The shipped steps for the joints that a robot has, and a chirp on one of them.

    Raises:
        ConfigError: the robot has no such joint, or a target would leave its range.
    """
    robot.slot(chirp_joint)
    protocol = load_bench(PROTOCOL)
    segments = []
    for segment in protocol.segments:
        joints = {name: excite for name, excite in segment.joints.items() if _has(robot, name)}
        if joints:
            segments.append(msgspec.structs.replace(segment, joints=joints))
    chirp = Segment("chirp", CHIRP_S, {chirp_joint: Excite(CHIRP_RAD)}, hz_range=CHIRP_HZ)
    return msgspec.structs.replace(
        protocol,
        segments=(*segments, chirp),
        **{name: _known(getattr(protocol, name), robot) for name in ("pose", "kp", "kd")},
    )


def probe_script(protocol: BenchProtocol) -> ScriptConfig:
    """Ramp to the pose, play, and stop in order from the last rest."""
    return ScriptConfig(
        (
            Step(press="start", until="ramp", timeout_s=120.0),
            Step(until="hold", timeout_s=60.0),
            Step(press="go", until="policy", for_s=protocol.seconds - protocol.rest_s / 2),
        )
    )


class Reading:
    """Measures one probe.

    Args:
        protocol: that was played.
        robot: that played it.

    Raises:
        ConfigError: nothing is known about the masses of this robot's links.
    """

    def __init__(self, protocol: BenchProtocol, robot: RobotConfig) -> None:
        self._protocol = protocol
        self._robot = robot
        self._balance = Balance(robot)
        self._kp = spread(protocol.kp, robot, robot.stand_kp, "probe: kp")

    def measure(self, rollout: Rollout) -> Measured:
        """Everything that a rollout shows.

        Raises:
            RolloutError: nothing was played.
        """
        recording = Recording(rollout, self._course(rollout.period_s))
        responses: list[Response] = []
        missing: list[int] = []
        chirp: list[Fit] = []
        for number, segment in enumerate(self._protocol.segments):
            span_s = recording.span_s(number)
            slots = [self._robot.slot(name) for name in segment.joints]
            if span_s is None:
                missing += slots
            elif segment.signal == "chirp":
                chirp = self._pieces(recording, slots[0], span_s)
            else:
                responses += [self._step(recording, segment, slot, span_s) for slot in slots]
        return Measured(responses, missing, recording.rest(), chirp)

    def load(self, rest: Samples) -> Float64Array:
        """(29,) N·m that the still robot's motors need against gravity."""
        return self._balance.load(rest.q.mean(0), rest.accel.mean(0))

    def _course(self, period_s: float) -> Course:
        return plan_course(self._protocol, self._robot, period_s)

    def _step(
        self, recording: Recording, segment: Segment, joint: int, span_s: tuple[float, float]
    ) -> Response:
        begin_s, end_s = span_s
        samples = recording.samples(begin_s - BEFORE_S, end_s + SETTLE_S)
        excite = segment.joints[self._robot.joint_names[joint]]
        shift = round(excite.phase_rad / (np.pi / 2))
        asked = excite.amplitude_rad * np.roll([1.0, 0.0, -1.0, 0.0], -shift)
        reach = asked @ _levels(samples, begin_s, segment.step_s) / (asked @ asked)
        steps_s = [begin_s + level * segment.step_s for level in range(LEVELS + 1)]
        own = self._fit(recording, samples, joint, steps_s)
        if own.strength > OBEYS:
            return Response(joint, joint, False, float(reach[joint]), own)
        return self._stray(recording, samples, joint, reach, steps_s)

    def _stray(
        self,
        recording: Recording,
        samples: Samples,
        joint: int,
        reach: Float64Array,
        steps_s: list[float],
    ) -> Response:
        """Who obeyed a command that its own joint did not, if anybody."""
        far = [int(slot) for slot in np.argsort(-np.abs(reach)) if slot != joint and self._robot.valid[slot]]
        tries = [(joint, -1.0), *((slot, sign) for slot in far[:STRAYS] for sign in (1.0, -1.0))]
        fits = [self._fit(recording, samples, mover, steps_s, joint, sign) for mover, sign in tries]
        strong = [index for index, one in enumerate(fits) if one.strength > STRAYED]
        best = max(strong, key=lambda index: fits[index].explained, default=0)
        if not strong or fits[best].explained < STRAYED_EXPLAINED:
            return Response(joint, None, False, float(reach[joint]), None)
        mover, sign = tries[best]
        return Response(joint, mover, sign < 0, float(reach[mover]), fits[best])

    def _pieces(self, recording: Recording, joint: int, span_s: tuple[float, float]) -> list[Fit]:
        begins = np.arange(span_s[0], span_s[1] + SETTLE_S - PIECE_S, PIECE_S)
        pieces = [recording.samples(begin, begin + PIECE_S) for begin in begins.tolist()]
        return [self._fit(recording, samples, joint, []) for samples in pieces]

    def _fit(
        self,
        recording: Recording,
        samples: Samples,
        mover: int,
        steps_s: list[float],
        commanded: int | None = None,
        sign: float = 1.0,
    ) -> Fit:
        """How one joint followed the commands, possibly turned round, of itself or of another."""
        joint, time_s = mover if commanded is None else commanded, samples.time_s
        if mover in WAIST:
            impulse = integral(time_s, samples.tau_est[:, mover])
        else:
            stream = (samples.q, samples.dq, samples.gyro, samples.accel)
            impulse = self._balance.impulse(mover, time_s, *stream)
        asked = sign * recording.asked(joint, time_s, LAGS_S)
        return fit(samples, impulse, asked, mover, float(self._kp[joint]), steps_s)


def _levels(samples: Samples, begin_s: float, step_s: float) -> Float64Array:
    """(4, 29) rad, where every joint settled in each level, from their mean."""
    rows = []
    for level in range(LEVELS):
        end_s = begin_s + (level + 1) * step_s
        part = slice(*np.searchsorted(samples.time_s, (end_s - SETTLED * step_s, end_s)))
        rows.append(samples.q[part].mean(0))
    found: Float64Array = np.array(rows)
    found -= found.mean(0)
    return found


def _has(robot: RobotConfig, joint: str) -> bool:
    return joint in robot.joint_names and bool(robot.valid[robot.joint_names.index(joint)])


def _known(values: dict[str, float], robot: RobotConfig) -> dict[str, float]:
    """Without the joints that the robot lacks."""
    return {name: value for name, value in values.items() if "*" in name or _has(robot, name)}
