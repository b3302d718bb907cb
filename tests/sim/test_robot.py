from collections.abc import Callable

import numpy as np
import pytest

from onboard.configs.robot import N_JOINTS
from onboard.runtime.link import Float32Array, State
from onboard.runtime.remote import START, keys, sticks
from onboard.runtime.wire import LOW_CMD, Frame, LowCmdWriter
from onboard.sim.robot import ACCEPTED, IGNORED, SimRobot

MakeRobot = Callable[..., SimRobot]
KP = np.full(N_JOINTS, 60.0, np.float32)
KD = np.full(N_JOINTS, 2.0, np.float32)
NONE = np.zeros(N_JOINTS, np.float32)


def command(q: Float32Array, kp: Float32Array = KP, kd: Float32Array = KD, mode_machine: int = 5) -> bytes:
    return bytes(LowCmdWriter(np.ones(N_JOINTS, bool)).fill(q, kp, kd, mode_machine))


def measured(robot: SimRobot) -> State:
    state = State()
    robot.sense(state)
    return state


def test_obeys_a_good_command(released: MakeRobot) -> None:
    robot = released("gantry.attached=true")
    target = measured(robot).q.copy()
    target[18] += 0.3
    assert robot.receive(command(target)) == ACCEPTED
    robot.advance(500)
    assert measured(robot).q[18] == pytest.approx(target[18], abs=0.05)
    assert robot.verdicts == {ACCEPTED: 1}


def spoiled(spoil: Callable[[Frame], None]) -> bytes:
    """A good command, changed, with a checksum that holds again."""
    frame = Frame(LOW_CMD)
    frame.load(command(NONE))
    spoil(frame)
    return bytes(frame.seal())


def set_field(frame: Frame, path: str, value: float) -> None:
    frame.motor[path][7] = value


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (command(NONE)[:-4], "length"),
        (command(NONE)[:-1] + bytes([command(NONE)[-1] ^ 1]), "crc"),
        (command(NONE)[:100] + bytes([command(NONE)[100] ^ 4]) + command(NONE)[101:], "crc"),
        (command(NONE, mode_machine=6), "mode_machine"),
        (command(NONE, mode_machine=0), "mode_machine"),
        (spoiled(lambda frame: set_field(frame, "mode", 0)), "motor_mode"),
        (spoiled(lambda frame: set_field(frame, "q", np.nan)), "not_finite"),
        (spoiled(lambda frame: set_field(frame, "kp", np.inf)), "not_finite"),
        (spoiled(lambda frame: set_field(frame, "tau", -np.inf)), "not_finite"),
    ],
)
def test_refuses_what_the_robot_refuses_and_counts_why(released: MakeRobot, raw: bytes, reason: str) -> None:
    robot = released("gantry.attached=true")
    held = measured(robot).q.copy()
    robot.receive(command(held))
    before = robot.physics.motors.command.copy()
    assert robot.receive(raw) == reason
    assert robot.verdicts == {ACCEPTED: 1, reason: 1}
    np.testing.assert_array_equal(robot.physics.motors.command, before)


def test_ignores_commands_until_its_own_controller_is_released(released: MakeRobot) -> None:
    robot = released("builtin.active=true")
    assert robot.controller == "ai"
    assert robot.receive(command(NONE, NONE, NONE)) == IGNORED
    robot.advance(1000)
    assert robot.physics.tilt_rad() < 0.1
    robot.release_mode()
    assert robot.controller == ""
    robot.advance(20)
    assert not measured(robot).tau_est.any()
    assert robot.receive(command(NONE)) == ACCEPTED


def test_its_own_controller_takes_over_again_where_the_joints_are(released: MakeRobot) -> None:
    robot = released("gantry.attached=true")
    robot.advance(1000)
    q = measured(robot).q.copy()
    robot.receive(command(NONE))
    robot.select_mode("ai")
    robot.advance(1500)
    assert np.abs(measured(robot).q - q)[15:].max() < 0.2
    assert robot.receive(command(NONE)) == IGNORED


def test_holds_the_last_command_when_commands_stop(released: MakeRobot) -> None:
    robot = released("gantry.attached=true", "silence.action=hold")
    target = measured(robot).q.copy()
    target[18] += 0.3
    robot.receive(command(target))
    robot.advance(1500)
    assert measured(robot).q[18] == pytest.approx(target[18], abs=0.05)
    assert robot.damped_by_silence == 0


def test_damps_itself_exactly_when_it_is_told_to(released: MakeRobot) -> None:
    robot = released("gantry.attached=true", "silence.action=damp", "silence.after_s=0.1")
    robot.advance(100)  # before the first command there is nothing to be silent about
    assert robot.damped_by_silence == 0
    robot.receive(command(measured(robot).q))
    robot.advance(50)
    assert robot.physics.motors.command[3].max() > 0  # kp
    robot.advance(1)
    assert robot.damped_by_silence == 1
    assert not robot.physics.motors.command[3].any()
    np.testing.assert_allclose(robot.physics.motors.command[4][[0, 15, 19]], [3.0, 2.0, 1.0])
    robot.advance(200)
    assert robot.damped_by_silence == 1
    robot.receive(command(measured(robot).q))
    robot.advance(40)
    robot.receive(command(measured(robot).q))
    robot.advance(40)
    assert robot.damped_by_silence == 1  # commands every 80 ms are no silence


def test_reports_what_a_low_state_holds(released: MakeRobot) -> None:
    robot = released()
    robot.motor_fault[7] = 0x400
    robot.remote.press(START, 1.0)
    robot.remote.move("ly", 0.5)
    robot.remote.move("rx", -3.0)
    robot.advance(5)
    state = measured(robot)
    assert robot.tick == 10
    assert state.q.dtype == np.float32
    np.testing.assert_array_equal(state.q, robot.physics.data.qpos[7:].astype(np.float32))
    np.testing.assert_array_equal(state.dq, robot.physics.data.qvel[6:].astype(np.float32))
    assert np.linalg.norm(state.quat_wxyz) == pytest.approx(1.0)
    assert state.motor_fault[7] == 0x400
    assert keys(state.remote.tobytes()) == START
    assert sticks(state.remote.tobytes()) == (0.0, 0.5, -1.0, 0.0)
    robot.advance(500)
    assert keys(measured(robot).remote.tobytes()) == 0  # the press was over after 1 s


def test_a_lost_remote_reports_zeros(released: MakeRobot) -> None:
    robot = released()
    robot.remote.held = START
    robot.remote.connected = False
    assert not measured(robot).remote.any()


def test_motors_warm_up_under_load_and_not_without(released: MakeRobot) -> None:
    robot = released("gantry.attached=true", "ambient_c=25")
    state = measured(robot)
    assert (state.temperature == 25).all()
    target = state.q.copy()
    target[18] = 2.0944 + 1.0  # against the elbow's stop
    robot.receive(command(target))
    robot.advance(5000)
    temperature = measured(robot).temperature
    assert temperature[18, 1] > temperature[18, 0] >= 25
    assert temperature[18, 1] > temperature[19, 1]
    robot.thermal.forced[3] = [80, 125]
    robot.advance(10)
    assert measured(robot).temperature[3].tolist() == [80, 125]


def test_judges_gains_as_an_explicit_pd_would_take_them(
    released: MakeRobot, caplog: pytest.LogCaptureFixture
) -> None:
    robot = released("gantry.attached=true")
    robot.receive(command(NONE))
    mild = robot.explicit_pd.eigenvalue
    assert 0 < mild < 2
    assert not caplog.messages
    for kd in (10.0, 11.0):
        robot.receive(command(NONE, kd=np.full(N_JOINTS, kd, np.float32)))
    assert robot.explicit_pd.unstable
    assert [text for text in caplog.messages if "unstable" in text] == caplog.messages[:1]
    robot.receive(command(NONE))
    assert robot.explicit_pd.unstable  # the worst of the run is kept


def test_the_clock_goes_on_over_a_reset(released: MakeRobot) -> None:
    robot = released()
    robot.advance(100)
    robot.reset()
    assert robot.tick == 200
    robot.advance(1)
    assert robot.tick == 202
