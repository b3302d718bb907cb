"""One tiny command language for scripts, standard input and keys: a line is one thing that happens.

```
press start            the remote's buttons for 0.2 s: start a b x y l1+r1+b up ..., or the words
                       start go stop damp mark limp; a number after it is the time in seconds
stick ly 0.5           a stick axis (lx ly rx ry) to a value in [-1, 1]
nudge ly 0.1           the same, by so much from where it is
sticks centre          all four to 0
remote off             the remote is lost (or on again)
gantry attach 1.0      take the pelvis and go to a height in m; without one the configured height
gantry height 0.75     go up or down to a height
gantry tilt 0.3 -0.2   tilt the pelvis: forward 0.3 rad, to its left 0.2 rad (to its right is positive)
gantry release         let go
push 60 0 0 0.1        force in N (world frame) on the torso for so many seconds; a link may follow
mode ai                put a built-in controller in charge; `mode none` releases it
fault lost 5           samples of LowState: lost, corrupt, frozen, duplicated, reordered, backwards (tick),
                       quaternion (of a wrong length), flipped (IMU upside down)
fault nan 5 dq         samples with NaN in q, dq, tau_est, quat_wxyz, gyro_body or accel_body
fault loss 0.05        share of the samples that are lost, at random
fault tick -60000      milliseconds that the tick jumps by
fault tilt 0.7         radians that the IMU reports to be pitched forward
fault mode_machine 6   report another robot type
fault mode_pr 1        report the ankles as actuators A and B, not as pitch and roll
fault motor left_knee_joint 1       motorstate bits
fault encoder left_knee_joint 3     radians that its encoder reports too much
fault torque left_knee_joint 200    N·m that it reports
fault heat left_knee_joint 125      a winding's temperature in degrees C
fault casing left_knee_joint 90     a casing's
reset                  start pose again
quit                   end
```
"""

from collections.abc import Callable

import numpy as np

from onboard.configs.errors import ConfigError
from onboard.runtime.remote import ACTIONS, Button
from onboard.sim.faults import FIELDS
from onboard.sim.remote import AXES
from onboard.sim.robot import SimRobot

PRESS_S = 0.2
_SAMPLE_FAULTS = (
    "lost",
    "corrupt",
    "frozen",
    "duplicated",
    "reordered",
    "backwards",
    "quaternion",
    "flipped",
)
Action = Callable[[SimRobot], object]
"""What one line does to a robot."""


class QuitError(Exception):
    """A line asked for the end."""


def parse(line: str) -> Action:
    """The action of one line.

    Raises:
        ConfigError: unknown command or wrong arguments; the message shows how it is used.
    """
    word, *arguments = line.split()
    if word not in _COMMANDS:
        raise ConfigError(
            f"simulator command '{line}': no command '{word}'; there are: {', '.join(_COMMANDS)}"
        )
    usage, build = _COMMANDS[word]
    try:
        return build(*arguments)
    except (TypeError, ValueError, KeyError) as error:
        raise ConfigError(f"simulator command '{line}': expected {usage}") from error


def _press(names: str, seconds: str = str(PRESS_S)) -> Action:
    buttons = ACTIONS.get(names) or 0
    if not buttons:
        for name in names.split("+"):
            buttons |= Button[name.upper()]
    duration = _positive(seconds)
    return lambda robot: robot.remote.press(buttons, robot.physics.time_s + duration)


def _stick(axis: str, value: str) -> Action:
    name, number = _choice(axis, *AXES), _number(value)
    return lambda robot: robot.remote.move(name, number)


def _nudge(axis: str, change: str) -> Action:
    name, number = _choice(axis, *AXES), _number(change)
    return lambda robot: robot.remote.move(name, round(robot.remote.sticks[name] + number, 6))


def _sticks(word: str) -> Action:
    _choice(word, "centre", "center")
    return lambda robot: robot.remote.sticks.update(dict.fromkeys(AXES, 0.0))


def _remote(word: str) -> Action:
    connected = _choice(word, "on", "off") == "on"
    return lambda robot: setattr(robot.remote, "connected", connected)


def _gantry(word: str, height: str | None = None, *more: str) -> Action:
    _choice(word, "attach", "release", "height", "tilt")
    if word == "tilt":
        (right,) = more
        pitch, roll = _number(height or ""), _number(right)
        return lambda robot: robot.physics.gantry.tilt(roll, pitch)
    if more:
        raise ValueError
    metres = None if height is None else _positive(height)
    if word == "attach":
        return lambda robot: robot.physics.gantry.attach(metres)
    if (word == "height") is (metres is None):
        raise ValueError
    if word == "release":
        return lambda robot: robot.physics.gantry.release()
    return lambda robot: setattr(robot.physics.gantry, "height_m", metres)


def _push(x: str, y: str, z: str, seconds: str, link: str = "torso_link") -> Action:
    force, duration = (_number(x), _number(y), _number(z)), _positive(seconds)
    return lambda robot: robot.physics.push(force, duration, link)


def _mode(name: str) -> Action:
    if name == "none":
        return lambda robot: robot.release_mode()
    return lambda robot: robot.select_mode(name)


def _fault(kind: str, *arguments: str) -> Action:
    if kind in _OWN_FAULTS:
        return _OWN_FAULTS[kind](*arguments)
    if kind in ("motor", "heat", "casing", "encoder", "torque"):
        return _motor_fault(kind, *arguments)
    _choice(kind, *_SAMPLE_FAULTS, "mode_machine", "mode_pr")
    (text,) = arguments
    number = int(text)
    if number < 0:
        raise ValueError
    return lambda robot: setattr(robot.faults, kind, number)


def _nan(samples: str, name: str = FIELDS[0]) -> Action:
    number, field = int(samples), _choice(name, *FIELDS)
    if number < 0:
        raise ValueError

    def spoil(robot: SimRobot) -> None:
        robot.faults.nan, robot.faults.nan_field = number, field

    return spoil


def _loss(text: str) -> Action:
    share = _number(text)
    if not 0.0 <= share <= 1.0:
        raise ValueError
    return lambda robot: setattr(robot.faults, "loss", share)


def _tick(text: str) -> Action:
    jump_ms = int(text)
    return lambda robot: setattr(robot.faults, "tick_ms", jump_ms)


def _tilt(text: str) -> Action:
    angle_rad = _number(text)
    return lambda robot: setattr(robot.faults, "tilt_rad", angle_rad)


_OWN_FAULTS: dict[str, Callable[..., Action]] = {"nan": _nan, "loss": _loss, "tick": _tick, "tilt": _tilt}


def _motor_fault(kind: str, joint: str, text: str) -> Action:
    value = float(np.uint32(int(text, 0))) if kind == "motor" else _number(text)

    def report(robot: SimRobot) -> None:
        slot = robot.physics.model.robot.slot(joint)
        if kind == "motor":
            robot.motor_fault[slot] = np.uint32(value)
        elif kind in ("heat", "casing"):
            robot.thermal.forced[slot, int(kind == "heat")] = value
        else:
            faulty = robot.faults.offset_rad if kind == "encoder" else robot.faults.torque_nm
            faulty[slot] = value

    return report


def _reset() -> Action:
    return lambda robot: robot.reset()


def _quit() -> Action:
    def leave(_: SimRobot) -> None:
        raise QuitError

    return leave


def _number(text: str) -> float:
    number = float(text)
    if not np.isfinite(number):
        raise ValueError
    return number


def _positive(text: str) -> float:
    number = _number(text)
    if number <= 0:
        raise ValueError
    return number


def _choice(word: str, *choices: str) -> str:
    if word not in choices:
        raise ValueError
    return word


_COMMANDS: dict[str, tuple[str, Callable[..., Action]]] = {
    "press": ("press BUTTON[+BUTTON...] [SECONDS], for example: press l1+r1+b 0.5", _press),
    "stick": ("stick lx|ly|rx|ry VALUE, for example: stick ly 0.5", _stick),
    "nudge": ("nudge lx|ly|rx|ry CHANGE, for example: nudge ly -0.1", _nudge),
    "sticks": ("sticks centre", _sticks),
    "remote": ("remote on|off", _remote),
    "gantry": (
        "gantry attach [HEIGHT_M], gantry height HEIGHT_M, gantry tilt FORWARD_RAD RIGHT_RAD, "
        "or gantry release",
        _gantry,
    ),
    "push": ("push FX FY FZ SECONDS [LINK], for example: push 60 0 0 0.1", _push),
    "mode": ("mode NAME, for example: mode ai; mode none releases", _mode),
    "fault": (
        f"fault {'|'.join(_SAMPLE_FAULTS)} SAMPLES, fault nan SAMPLES [{'|'.join(FIELDS)}], "
        "fault loss SHARE, fault tick MS, fault tilt RAD, fault mode_machine NUMBER, fault mode_pr NUMBER, "
        "fault motor JOINT BITS, fault encoder JOINT RAD, fault torque JOINT NM, "
        "fault heat JOINT CELSIUS, or fault casing JOINT CELSIUS",
        _fault,
    ),
    "reset": ("reset", _reset),
    "quit": ("quit", _quit),
}
