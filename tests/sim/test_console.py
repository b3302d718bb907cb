import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onboard.configs.errors import ConfigError
from onboard.runtime.link import State
from onboard.runtime.remote import DAMP, LIMP, Button, keys, sticks
from onboard.sim.console import QuitError, parse
from onboard.sim.faults import FIELDS, Fate
from onboard.sim.hands import KEYS
from onboard.sim.robot import SimRobot
from onboard.sim.script import Script

MakeRobot = Callable[..., SimRobot]


@pytest.fixture
def robot(released: MakeRobot) -> SimRobot:
    return released("gantry.attached=true")


def buttons(robot: SimRobot) -> int:
    return keys(robot.remote.encode(robot.physics.time_s))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("press start", Button.START),
        ("press damp", DAMP),
        ("press b", Button.B),
        ("press limp", LIMP),
        ("press l1+r1+b 0.5", LIMP),
        ("press UP", Button.UP),
    ],
)
def test_press_holds_buttons_for_a_while(robot: SimRobot, line: str, expected: int) -> None:
    parse(line)(robot)
    assert buttons(robot) == expected
    robot.advance(260)
    assert buttons(robot) == 0


def test_sticks(robot: SimRobot) -> None:
    for line in ("stick ly 0.5", "nudge ly 0.1", "nudge lx -0.3", "stick rx 7"):
        parse(line)(robot)
    assert sticks(robot.remote.encode(0)) == pytest.approx((-0.3, 0.6, 1.0, 0.0))
    parse("sticks centre")(robot)
    assert sticks(robot.remote.encode(0)) == (0, 0, 0, 0)


def test_remote_off_and_on(robot: SimRobot) -> None:
    parse("remote off")(robot)
    assert not any(robot.remote.encode(0))
    parse("remote on")(robot)
    assert any(robot.remote.encode(0))


def test_gantry(robot: SimRobot) -> None:
    parse("gantry height 0.8")(robot)
    assert robot.physics.gantry.height_m == 0.8
    parse("gantry release")(robot)
    assert not robot.physics.gantry.attached
    parse("gantry attach 1.2")(robot)
    assert robot.physics.gantry.attached
    assert robot.physics.gantry.height_m == 1.2
    parse("gantry attach")(robot)
    assert robot.physics.gantry.height_m == 1.0


def test_the_gantry_tilts_forward_and_to_the_right(robot: SimRobot) -> None:
    parse("gantry tilt 0.3 -0.2")(robot)
    robot.advance(1500)
    w, x, y, z = robot.physics.truth().quat_wxyz
    roll, pitch = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), math.asin(2 * (w * y - z * x))
    assert (roll, pitch) == pytest.approx((-0.2, 0.3), abs=0.1), "limp legs pull at it"
    parse("gantry attach")(robot)
    robot.advance(1500)
    assert robot.physics.tilt_rad() < 0.1


def test_push_mode_reset(robot: SimRobot) -> None:
    parse("push 60 0 -5 0.1 pelvis")(robot)
    assert robot.physics.data.xfrc_applied[robot.physics.model.pelvis, :3].tolist() == [60, 0, -5]
    parse("mode ai")(robot)
    assert robot.controller == "ai"
    parse("mode none")(robot)
    assert robot.controller == ""
    robot.physics.data.qpos[8] = 0.4
    parse("reset")(robot)
    assert robot.physics.data.qpos[8] == robot.physics.pose[1]


def test_faults(robot: SimRobot) -> None:
    for line in ("fault corrupt 3", "fault lost 2", "fault mode_machine 6"):
        parse(line)(robot)
    assert (robot.faults.corrupt, robot.faults.lost, robot.mode_machine) == (3, 2, 6)
    parse("fault motor left_knee_joint 0x400")(robot)
    assert robot.motor_fault[3] == 0x400
    parse("fault heat left_knee_joint 125")(robot)
    assert robot.thermal.forced[3, 1] == 125
    with pytest.raises(ConfigError, match="no joint 'tail'"):
        parse("fault heat tail 125")(robot)


def test_sensor_faults_change_what_is_reported_for_as_long_as_told(robot: SimRobot) -> None:
    state = State()
    for line in ("fault nan 1", "fault quaternion 2", "fault flipped 3"):
        parse(line)(robot)
    parse("fault encoder left_knee_joint 3")(robot)
    parse("fault torque left_knee_joint -200")(robot)
    knee = float(robot.physics.sensors.joints[0][3])
    lengths, first, upright = [], [], []
    for _ in range(4):
        robot.sense(state)
        w, x, y, z = (float(value) for value in state.quat_wxyz)
        lengths.append(round(math.sqrt(w * w + x * x + y * y + z * z), 3))
        first.append(math.isnan(float(state.q[0])))
        upright.append(w * w + z * z > x * x + y * y)
        assert state.q[3] == pytest.approx(knee + 3)
        assert state.tau_est[3] == -200
    assert first == [True, False, False, False]
    assert lengths == [1.2, 1.2, 1.0, 1.0]
    assert upright == [False, False, False, True]


@pytest.mark.parametrize("field", FIELDS)
def test_every_reading_can_be_no_number(robot: SimRobot, field: str) -> None:
    state = State()
    parse(f"fault nan 1 {field}")(robot)
    robot.sense(state)
    assert [name for name in FIELDS if np.isnan(getattr(state, name)).any()] == [field]
    robot.sense(state)
    assert np.isfinite(getattr(state, field)).all()


def test_the_imu_reports_a_pitch_that_is_not_there(robot: SimRobot) -> None:
    state = State()
    parse("fault tilt 0.7")(robot)
    robot.sense(state)
    w, x, y, z = (float(value) for value in state.quat_wxyz)
    assert math.asin(2 * (w * y - z * x)) == pytest.approx(0.7, abs=0.05)
    assert math.hypot(w, x, y, z) == pytest.approx(1.0, abs=1e-6)


def test_a_share_of_the_samples_is_lost(robot: SimRobot) -> None:
    parse("fault loss 0.05")(robot)
    lost = sum(robot.faults.next() is Fate.LOST for _ in range(4000))
    assert 150 < lost < 250
    parse("fault loss 0")(robot)
    assert all(robot.faults.next() is Fate.GOOD for _ in range(100))


def test_quit(robot: SimRobot) -> None:
    with pytest.raises(QuitError):
        parse("quit")(robot)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("jump 3", "no command 'jump'; there are: press, stick"),
        ("press banana", "expected press BUTTON"),
        ("press start -1", "expected press BUTTON"),
        ("press", "expected press BUTTON"),
        ("stick lz 0.5", "expected stick"),
        ("stick ly nan", "expected stick"),
        ("gantry height", "expected gantry attach"),
        ("gantry release 3", "expected gantry attach"),
        ("gantry up", "expected gantry attach"),
        ("push 1 2 3", "expected push FX"),
        ("push 1 2 inf 1", "expected push FX"),
        ("remote maybe", "expected remote"),
        ("fault lost", "expected fault"),
        ("fault lost -3", "expected fault"),
        ("fault melt 3", "expected fault"),
        ("fault motor left_knee_joint", "expected fault"),
        ("fault loss 1.5", "expected fault"),
        ("fault encoder left_knee_joint nan", "expected fault"),
        ("quit now", "expected quit"),
    ],
)
def test_wrong_lines_say_what_is_expected(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(line)


def test_every_key_is_a_command() -> None:
    for line in KEYS.values():
        assert callable(parse(line))


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_script_plays_its_lines_in_time(tmp_path: Path, robot: SimRobot) -> None:
    path = write(tmp_path, "# a walk\n1.0 press start\n\n1.0 stick ly 0.5  # forward\n2.5 sticks centre\n")
    script = Script.read(path)
    assert script.due(0.9) == []
    for action in script.due(1.0):
        action(robot)
    assert buttons(robot) == Button.START
    assert robot.remote.sticks["ly"] == 0.5
    assert script.due(2.0) == []
    assert not script.done
    assert len(script.due(9.0)) == 1
    assert script.done


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.0 press start\nsoon press go\n", "line 2: expected SECONDS COMMAND"),
        ("1.0\n", "line 1: expected SECONDS COMMAND"),
        ("1.0 jump\n", "line 1: .*no command 'jump'"),
        ("2.0 quit\n1.0 reset\n", "line 2: 1 s comes after 2 s"),
    ],
)
def test_a_wrong_script_is_refused_before_anything_happens(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Script.read(write(tmp_path, text))


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.txt: can't be read"):
        Script.read(tmp_path / "nowhere.txt")
