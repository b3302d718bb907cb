"""What people type and press: keys, the remote's bytes, the simulator's console and scripts."""

from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from onboard.configs.errors import OnboardError
from onboard.configs.events import Mode
from onboard.configs.run import Sticks
from onboard.runtime.console import Console
from onboard.runtime.keyboard import ACTIONS, STEPS, Keyboard
from onboard.runtime.link import State
from onboard.runtime.operator_input import LocalPort, Operator
from onboard.runtime.ports import OPERATOR
from onboard.runtime.remote import encode_remote
from onboard.sim.console import QuitError, parse
from onboard.sim.robot import SimRobot
from onboard.sim.script import Script
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.kinds.messages import _simulated
from tests.fuzz.mutate import TEXTS, Strategy, blobs

RANGES = ((-0.5, 1.0), (-0.3, 0.3), (-0.2, 0.2))
LINES = (
    *("press start", "press l1+r1+b 0.5", "stick ly 0.5", "nudge ly -0.1", "sticks centre", "remote off"),
    *("gantry attach 1.0", "gantry height 0.75", "gantry release", "push 60 0 0 0.1 pelvis", "mode ai"),
    *("fault lost 5", "fault loss 0.05", "fault mode_machine 6", "fault motor left_knee_joint 1", "reset"),
    *(
        "fault encoder left_knee_joint 3",
        "fault torque left_knee_joint 200",
        "fault heat left_knee_joint 125",
    ),
)
WORDS = (
    *(b" nan", b" inf", b" -1", b" 1e308", b" 1e999", b" 0", b" " + b"9" * 5000, b" world", b" head", b"+"),
    *(b" 0x7fffffffff", b" left_knee_joint", b" -0x1", b" 1_0", b" \xc2\xb2", b"\x00", b"quit", b" 1e-320"),
)


def _keys() -> Strategy:
    known = st.sampled_from([key.encode() for key in [*ACTIONS, *STEPS, "0"]])
    sequence = st.lists(st.one_of(known, known, st.binary(max_size=8)), max_size=60).map(b"".join)
    remotes = [encode_remote(0x100, 1.0, -1.0, 0.5, 0.0), encode_remote(0), bytes(40), bytes([255]) * 40]
    floats = [np.float32(x).tobytes() for x in (np.nan, np.inf, -np.inf, 3e38, -7.0)]
    remote = st.lists(blobs(*remotes, pieces=floats), max_size=6).map(b"".join)
    return st.fixed_dictionaries({"keys": sequence, "remote": remote})


def _read_keys(place: Path) -> None:
    """Keys and remote together, tick by tick: the velocity stays finite and inside the ranges."""
    port = LocalPort(np.zeros((), OPERATOR))
    keyboard, operator, state = Keyboard(0), Operator(port, Sticks(), RANGES, 0.02), State()
    console = Console(keyboard=keyboard)
    keys, remote = (place / "keys").read_bytes(), (place / "remote").read_bytes()
    for tick in range(max(1, len(keys) // 16 + 1, len(remote) // 40)):
        for key in keys[16 * tick : 16 * tick + 16].decode(errors="ignore"):
            keyboard.feed(key)
        content = remote[40 * tick : 40 * tick + 40].ljust(40, b"\0")
        state.remote[:] = np.frombuffer(content, np.uint8)
        console.look(port, tick * 20_000_000, Mode.HOLD)
        asked = operator.read(state)
        assert np.isfinite(asked.velocity).all()
        for value, (low, high) in zip(asked.velocity, RANGES, strict=True):
            assert low - 1e-6 <= value <= high + 1e-6


def _lines() -> Strategy:
    _simulated()
    texts = [line.encode() for line in LINES]
    line = blobs(*texts, pieces=(*WORDS, *texts, *TEXTS))
    return st.lists(line, min_size=1, max_size=4).map(lambda found: {"lines": b"\n".join(found)})


def _read_lines(place: Path) -> None:
    """Every line that is a command is done to a simulated robot, which goes on for a while."""
    robot, refused = _fresh(), None
    for line in (place / "lines").read_bytes().decode("utf-8", "replace").splitlines():
        if not line.strip():
            continue
        try:
            parse(line)(robot)
        except QuitError:
            break
        except OnboardError as error:
            refused = error
        robot.advance(2)
    robot.sense(State())
    if refused is not None:
        raise refused


def _fresh() -> SimRobot:
    robot = _simulated()
    robot.faults.__init__()  # type: ignore[misc]  # as new; making a whole robot takes too long for a case
    robot.remote.__init__()  # type: ignore[misc]
    robot.reset()
    return robot


@cache
def _whole_script() -> bytes:
    return "\n".join(f"{second}.5 {line}" for second, line in enumerate(LINES)).encode()


def _scripts() -> Strategy:
    example = _whole_script()
    return blobs(
        example, b"# walk\n1.0 press start\n", pieces=(*WORDS, *TEXTS, b"\n", b"#", b"nan ", b"-5 ")
    ).map(lambda text: {"script.txt": text})


def _read_script(place: Path) -> None:
    script = Script.read(place / "script.txt")
    for second in range(40):
        script.due(float(second))


KINDS = [
    Kind("keys", "keys and the remote's bytes", _keys, _read_keys),
    Kind("console", "lines for the simulator", _lines, _read_lines),
    Kind("sim-script", "timed lines for the simulator", _scripts, _read_script, "script.txt"),
]
