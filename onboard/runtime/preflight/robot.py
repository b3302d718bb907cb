"""Is every motor well, does every joint obey: what the robot says of itself, and what a probe showed."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from onboard.configs.errors import LinkError
from onboard.configs.events import Event
from onboard.configs.robot import RobotConfig
from onboard.configs.safety import SafetyConfig
from onboard.policies.estimators.kinematics import Float64Array
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.link import State
from onboard.runtime.preflight.probe import WAIST, Measured, Response
from onboard.runtime.preflight.recording import Samples
from onboard.runtime.preflight.report import Check, Finding, Verdict, judged, passed
from onboard.runtime.wire import LowStateDecoder

LISTEN_S = 0.5
BATTERY_PATIENCE_S = 1.0
PATIENCE_S = 5.0
BATTERY_WARN, BATTERY_FAIL = 40, 20
"""Per cent. At 20 the vendor's own controllers end; a run should begin with more."""
ENCODER_FAIL_RAD = 0.05
"""Beyond its range; the gate damps from there on."""
NOISE_WARN_RAD_S, NOISE_FAIL_RAD_S = 0.1, 0.5
"""Standard deviation of a still joint's velocity; policies are trained with noise of up to 1.5 rad/s in all,
a simulated robot at rest shows 0.02."""
TORQUE_WARN, TORQUE_FAIL = 0.15, 0.4
"""Share of a joint's torque limit by which the reported torque may differ from what gravity asks for."""
STRENGTH_FAIL, STRENGTH_WARN = (0.7, 1.5), (0.8, 1.3)
"""`python -m benchmarks.probes` shows what healthy robots have; docs/check.md says how these were chosen."""
DELAY_WARN_S, DELAY_FAIL_S = 0.010, 0.020
"""Against the median of all joints."""
FRICTION_WARN, FRICTION_FAIL = 0.1, 0.25
"""Share of a joint's torque limit."""
NAMED = 4
"""So many joints are named, the worst first."""


class Heard(NamedTuple):
    """Half a second of LowState.

    Attributes:
        state: the newest.
        motor_mode: (29,) 1 where the motor says that it is enabled.
    """

    state: State
    motor_mode: np.ndarray


def listen(dds: DdsDomain) -> Heard:
    """Hear a few samples.

    Raises:
        LinkError: none came within 5 s.
    """
    reader, decoder, state = (
        dds.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=64),
        LowStateDecoder(),
        State(),
    )
    until = time.monotonic() + PATIENCE_S
    enough = until
    try:
        while time.monotonic() < min(until, enough):
            reader.wait(0.05)
            for sample in reader.take_all():
                if decoder.decode(sample.raw, state) and not state.received:
                    state.received, enough = True, time.monotonic() + LISTEN_S
    finally:
        reader.close()
    if not state.received:
        raise LinkError(f"no LowState on {dds.interface}, domain {dds.id}, within {PATIENCE_S:g} s")
    mode = decoder.frame.motor["mode"][: len(state.q)].copy()
    mode[0] = decoder.frame.fields["mode_0"]
    return Heard(state, mode)


class RobotChecks:
    """What the robot says of itself; nothing moves. The samples are heard once.

    Args:
        dds: where; closed by its owner.
        robot: the description that the run will use.
        safety: the table that the run will use.
    """

    def __init__(self, dds: DdsDomain, robot: RobotConfig, safety: SafetyConfig) -> None:
        self._dds = dds
        self._robot = robot
        self._safety = safety
        self._kept: Heard | None = None

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        looks: Sequence[tuple[str, Callable[[], Finding]]] = (
            ("battery", lambda: judge_battery(hear_battery(self._dds))),
            ("mode", lambda: judge_mode(self._heard(), self._robot)),
            ("motor_faults", lambda: judge_motor_faults(self._heard().state, self._robot, self._safety)),
            ("temperature", lambda: judge_temperature(self._heard().state, self._robot, self._safety)),
            ("encoders", lambda: judge_encoders(self._heard().state, self._robot)),
        )
        return [Check("robot", name, look) for name, look in looks]

    def _heard(self) -> Heard:
        if self._kept is None:
            self._kept = listen(self._dds)
        return self._kept


def hear_battery(dds: DdsDomain) -> int | None:
    """State of charge, per cent; None where nobody publishes it."""
    reader = dds.reader(idl.BATTERY_TOPIC, idl.BmsState)
    try:
        reader.wait(BATTERY_PATIENCE_S)
        sample = reader.take()
    finally:
        reader.close()
    return idl.state_of_charge(sample.raw) if sample else None


def judge_battery(charge: int | None) -> Finding:
    """Enough for a run?"""
    if charge is None:
        return passed("not published here")
    return judged(
        f"{charge} % charged",
        warn=charge < BATTERY_WARN,
        fail=charge < BATTERY_FAIL,
        advice="charge or change the battery; a voltage that sinks under load ends in a fall",
        values={"charge_percent": charge},
    )


def judge_mode(heard: Heard, robot: RobotConfig) -> Finding:
    """Ankles as pitch and roll, motors enabled."""
    wrong, off = heard.state.mode_pr != 0, robot.valid & (heard.motor_mode == 0)
    return judged(
        f"mode_pr {heard.state.mode_pr}, {int((robot.valid & ~off).sum())} of {int(robot.valid.sum())} "
        f"motors enabled{_names(off, robot)}",
        warn=bool(off.any()),
        fail=wrong,
        advice="mode_pr must be 0: the ankles are then commanded as pitch and roll, not as actuators A and B"
        if wrong
        else "a motor that is not enabled ignores commands; some simulators report none as enabled",
    )


def judge_motor_faults(state: State, robot: RobotConfig, safety: SafetyConfig) -> Finding:
    """Fault bits of the motors, as the safety table takes them."""
    bits = np.where(robot.valid, state.motor_fault, 0)
    severe = np.bitwise_and(bits, np.bitwise_or.reduce(np.array(safety.severe_fault_bits, np.uint32)))
    told = [f"{robot.joint_names[slot]} {bits[slot]:#x}" for slot in np.flatnonzero(bits)[:NAMED]]
    return judged(
        "; ".join(told) or "none",
        warn=bool(bits.any()),
        fail=bool(severe.any()),
        advice="look the bits up in docs/check.md; switch the robot off and on",
    )


def judge_temperature(state: State, robot: RobotConfig, safety: SafetyConfig) -> Finding:
    """Casing and winding against the thresholds of the run."""
    celsius = np.where(robot.valid[:, None], state.temperature, -273)
    hot = np.array([safety.limit(Event.CASING_HOT), safety.limit(Event.WINDING_HOT)])
    too_hot = np.array([safety.limit(Event.CASING_OVERHEATED), safety.limit(Event.WINDING_OVERHEATED)])
    casing, winding = (int(slot) for slot in celsius.argmax(0))
    return judged(
        f"casing {celsius[casing, 0]} °C ({robot.joint_names[casing]}), "
        f"winding {celsius[winding, 1]} °C ({robot.joint_names[winding]})",
        warn=bool((celsius > hot).any()),
        fail=bool((celsius > too_hot).any()),
        advice="let the robot cool down, hanging and limp",
        values={"casing_celsius": float(celsius[casing, 0]), "winding_celsius": float(celsius[winding, 1])},
    )


def judge_encoders(state: State, robot: RobotConfig) -> Finding:
    """Every joint inside its mechanical range."""
    beyond = np.where(robot.valid, np.maximum(robot.lower - state.q, state.q - robot.upper), -np.inf)
    worst = int(beyond.argmax())
    return judged(
        f"nearest to a limit, or beyond: {robot.joint_names[worst]} at {state.q[worst]:.3f} rad of "
        f"{robot.lower[worst]:.3f} to {robot.upper[worst]:.3f}",
        warn=bool(beyond[worst] > 0.0),
        fail=bool(beyond[worst] > ENCODER_FAIL_RAD) or not bool(np.isfinite(state.q).all()),
        advice="a joint at its stop is a little beyond; further off the encoder has lost its zero: calibrate",
    )


def judge_noise(rest: Samples, robot: RobotConfig) -> Finding:
    """Velocity of joints that should be still."""
    noise = np.where(robot.valid, rest.dq.std(0), 0.0)
    worst = int(noise.argmax())
    return judged(
        f"{noise[worst]:.3f} rad/s at most ({robot.joint_names[worst]})",
        warn=bool(noise[worst] > NOISE_WARN_RAD_S),
        fail=bool(noise[worst] > NOISE_FAIL_RAD_S),
        advice="a policy sees this as motion: look at the encoder's cable, at play, at the gantry",
        values={"noise_rad_s": float(noise[worst])},
    )


def judge_torque(rest: Samples, load: Float64Array, robot: RobotConfig) -> Finding:
    """Reported torque of the still robot against what gravity asks for; the waist's is not known."""
    judgeable = robot.valid.copy()
    judgeable[list(WAIST)] = False
    tau = rest.tau_est.mean(0)
    share = np.where(judgeable, np.abs(tau - load) / robot.effort, 0.0)
    worst = int(share.argmax())
    return judged(
        f"{robot.joint_names[worst]} reports {tau[worst]:+.2f} N·m, gravity asks for {load[worst]:+.2f}: "
        f"{100 * share[worst]:.1f} % of its limit apart",
        warn=bool(share[worst] > TORQUE_WARN),
        fail=bool(share[worst] > TORQUE_FAIL),
        advice="something holds this joint, or it carries what the model does not know (hands, a tool)",
        values={"apart_share": float(share[worst])},
    )


def judge_wiring(measured: Measured, robot: RobotConfig) -> Finding:
    """Every joint obeys its own commands, the right way round."""
    wrong = [response for response in measured.responses if _astray(response)]
    if wrong and len(wrong) == len(measured.responses) and all(one.mover is None for one in wrong):
        return judged(
            "no joint obeys at all",
            warn=False,
            fail=True,
            advice="another controller has the motors, they are in another mode, or mode_machine is wrong: "
            "look at robot.mode and network.motion_service",
        )
    told = [_told(response, robot) for response in wrong]
    return judged(
        "; ".join(told) or f"{len(measured.responses)} joints obey, each its own commands",
        warn=False,
        fail=bool(wrong),
        advice="do not run: look at the motors' cables and ids, at the joint order, at the encoders",
    )


def judge_strength(measured: Measured, robot: RobotConfig) -> Finding:
    """Torque that a command makes, as a share of what it asks for."""
    return _each(
        {one.joint: one.fit.strength for one in measured.responses if one.fit and not _astray(one)},
        robot,
        Scale("share", 100.0, "% of the torque asked for", middle=1.0),
        Bounds(*STRENGTH_WARN, *STRENGTH_FAIL),
        "a weak motor or gear, wrong gains, or a load that the model does not know (hands, a tool)",
    )


def judge_delay(measured: Measured, robot: RobotConfig) -> Finding:
    """Delay of every joint against the median of all."""
    delay_s = {one.joint: one.fit.delay_s for one in measured.responses if one.fit and not _astray(one)}
    middle_s = float(np.median(list(delay_s.values()))) if delay_s else 0.0
    return _each(
        {joint: value - middle_s for joint, value in delay_s.items()},
        robot,
        Scale("delay_s", 1000.0, f"ms against the median of {1000 * middle_s:.1f} ms"),
        Bounds(-DELAY_WARN_S, DELAY_WARN_S, -DELAY_FAIL_S, DELAY_FAIL_S),
        "one motor hears its commands later than the others: look at its bus, its id and its firmware",
    )


def judge_friction(measured: Measured, robot: RobotConfig) -> Finding:
    """Dry friction of every joint as a share of its torque limit."""
    friction = {
        one.joint: one.fit.friction_nm / float(robot.effort[one.joint])
        for one in measured.responses
        if one.fit and not _astray(one)
    }
    return _each(
        friction,
        robot,
        Scale("friction_share", 100.0, "% of the torque limit"),
        Bounds(-FRICTION_WARN, FRICTION_WARN, -FRICTION_FAIL, FRICTION_FAIL),
        "move the limp joint by hand: does something rub, is a cable in the way?",
    )


class Scale(NamedTuple):
    """How a figure is told: name of its value, factor, unit, and what it should be."""

    name: str
    factor: float
    unit: str
    middle: float = 0.0


class Bounds(NamedTuple):
    """Between which values a figure is well, and between which it is not bad enough to fail."""

    warn_low: float
    warn_high: float
    fail_low: float
    fail_high: float


def _each(values: dict[int, float], robot: RobotConfig, scale: Scale, bounds: Bounds, advice: str) -> Finding:
    """A finding about one figure of every joint; those that are not well are named."""
    if not values:
        return Finding(Verdict.FAIL, "no joint could be measured", "mend robot.wiring first")

    def told(joint: int) -> str:
        return f"{robot.joint_names[joint]} {scale.factor * values[joint]:.3g}"

    odd = [joint for joint, value in values.items() if not bounds.warn_low <= value <= bounds.warn_high]
    odd.sort(key=lambda joint: -abs(values[joint] - scale.middle))
    lowest, highest = (pick(values, key=lambda joint: values[joint]) for pick in (min, max))
    shown = ", ".join(told(joint) for joint in odd[:NAMED]) or f"{told(lowest)} to {told(highest)}"
    more = f" and {len(odd) - NAMED} more" if len(odd) > NAMED else ""
    return judged(
        f"{shown}{more} {scale.unit}",
        warn=bool(odd),
        fail=any(not bounds.fail_low <= value <= bounds.fail_high for value in values.values()),
        advice=advice,
        values={f"{robot.joint_names[joint]}_{scale.name}": value for joint, value in values.items()},
    )


def _astray(response: Response) -> bool:
    """The commands of this joint did not move it, or the wrong way."""
    return response.mover != response.joint or response.reversed


def _told(response: Response, robot: RobotConfig) -> str:
    """What became of a joint's commands."""
    names, joint = robot.joint_names, response.joint
    if response.mover is None:
        return f"{names[joint]} does not obey: dead, jammed, or its commands are lost"
    way = " the wrong way" if response.reversed else ""
    whom = "turns" if response.mover == joint else f"commands move {names[response.mover]}"
    return f"{names[joint]} {whom}{way}"


def _names(which: np.ndarray, robot: RobotConfig) -> str:
    """The first of some joints in brackets; nothing for none."""
    slots = np.flatnonzero(which)
    return f" (not {', '.join(robot.joint_names[slot] for slot in slots[:NAMED])})" if slots.size else ""
