"""What the gateway puts on the wire, frame by frame, for any course of commands, buttons and disturbances.

The real `Gateway` and `Robot` run on a wire and a clock of the test's own, so that a course of seconds
takes milliseconds and gives the same bytes every time.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.configs.robot import N_JOINTS, RobotConfig, load_robot
from onboard.runtime import gateway, realtime
from onboard.runtime.gateway import Gateway, Robot
from onboard.runtime.gateway_core import MS, GatewayConfig, GatewayState, make_config
from onboard.runtime.idl import LowState
from onboard.runtime.link import COMMAND, Kind
from onboard.runtime.ports import GATEWAY, OPERATOR, SENT
from onboard.runtime.remote import DAMP, LIMP, START, encode_remote
from onboard.runtime.shm import Shared
from onboard.runtime.wire import LowCmdDecoder, LowStateEncoder

ROBOTS = [load_robot("g1_29dof"), load_robot("g1_23dof")]
DAMPING_KD = np.linspace(1, 5, N_JOINTS, dtype=np.float32)
LAYOUT = {"command": (COMMAND, 8), "sent": (SENT, 8), "gateway": (GATEWAY, 4), "operator": (OPERATOR, 4)}
TILTED = (0.7, 0.714, 0.0, 0.0)
MODE_MACHINE = 6


class Step(NamedTuple):
    """What happens before one wake-up of the gateway."""

    delta_ms: int = 5
    command: bool = True
    """Control hands a new command over."""
    kind: int = Kind.PASS
    age_ms: int = 1
    counts: bool = True
    """The command's number rises."""
    session: int = 0
    """Added to the session that control is in."""
    fault: tuple[str, int, float] | None = None
    """A field, a joint and the value that the command has there."""
    buttons: int = 0
    """On the remote."""
    press: str = ""
    """An edge counter of the operator's port."""
    tilted: bool = False
    foreign: bool = False
    parent_hangs: bool = False
    control_done: bool = False


class FakeDds:
    """One robot's two topics: what the gateway reads is set, what it writes is kept."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.state: bytes | None = None
        self.foreign: list[bytes] = []

    def reader(self, topic: str, kind: type, **options: Any) -> "_Reader":
        return _Reader(self, kind)

    def writer(self, topic: str, kind: type) -> "FakeDds":
        return self

    def write(self, raw: bytearray) -> None:
        self.frames.append(bytes(raw))

    def matched(self) -> int:
        return 1


class _Reader:
    def __init__(self, dds: FakeDds, kind: type) -> None:
        self._dds, self._state = dds, kind is LowState

    def take(self) -> "_Reader | None":
        return self if self._state and self._dds.state else None

    @property
    def raw(self) -> bytes:
        assert self._dds.state
        return self._dds.state

    def take_all(self) -> list[bytes]:
        taken, self._dds.foreign = self._dds.foreign, []
        return taken


class Desk:
    """One gateway, with control, operator, robot and clock in the test's hand."""

    def __init__(self, folder: Path, robot: RobotConfig) -> None:
        self.now_ns = 10_000 * MS
        self.config: GatewayConfig = make_config(robot, DAMPING_KD, expiry_ms=50)
        self.dds = FakeDds()
        self.shared = Shared.create(LAYOUT, folder)
        self.operator = np.zeros((), OPERATOR)
        self.command = np.zeros((), COMMAND)
        self.command["session"], self.command["mode_machine"] = 1, MODE_MACHINE
        self._state = LowStateEncoder(mode_machine=MODE_MACHINE)
        self._beat_ns = self.now_ns
        eyes = Robot(self.dds, robot)  # type: ignore[arg-type]
        self.gateway = Gateway(self.shared, eyes, self.config, realtime.NOT_ASKED)

    def monotonic_ns(self) -> int:
        return self.now_ns

    def step(self, step: Step) -> list[bytes]:
        """One wake-up; the frames that it published."""
        self.now_ns += step.delta_ms * MS
        self._look_of_the_robot(step)
        self._operator(step)
        if step.command:
            self._hand_over(step)
        before = len(self.dds.frames)
        self.gateway.cycle()
        return self.dds.frames[before:]

    def _look_of_the_robot(self, step: Step) -> None:
        self._state.quat_wxyz[:] = TILTED if step.tilted else (1, 0, 0, 0)
        self._state.remote[:] = np.frombuffer(encode_remote(step.buttons), np.uint8)
        self.dds.state = bytes(self._state.seal(self.now_ns // MS))
        if step.foreign:
            self.dds.foreign.append(b"")

    def _operator(self, step: Step) -> None:
        if not step.parent_hangs:
            self._beat_ns = self.now_ns
        self.operator["heartbeat_ns"], self.operator["control_done"] = self._beat_ns, step.control_done
        if step.press:
            self.operator[step.press] += 1
        self.shared["operator"].push(self.operator)

    def _hand_over(self, step: Step) -> None:
        command = self.command
        command["number"] += step.counts
        command["made_ns"], command["kind"] = self.now_ns - step.age_ms * MS, step.kind
        command["session"] = max(0, int(command["session"]) + step.session)
        command["q"], command["kp"], command["kd"] = 0.0, 40.0, 2.0
        if step.fault is not None:
            field, joint, value = step.fault
            command[field][joint] = value
        self.shared["command"].push(command)

    def close(self) -> None:
        self.shared.close()
        self.shared.unlink()


def fly(course: list[Step], robot: RobotConfig, look: Any = lambda desk, step, frames: None) -> list[bytes]:
    """Every frame of a course; `look` is called after each step."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        desk = Desk(Path(folder), robot)
        patch.setattr(gateway, "time", desk)
        try:
            for step in course:
                frames = desk.step(step)
                look(desk, step, frames)
        finally:
            desk.close()
        return desk.dds.frames


ORDINARY = Step()
FAULTS = st.tuples(
    st.sampled_from(["q", "kp", "kd"]),
    st.integers(0, N_JOINTS - 1),
    st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 1e30, 11.0, 600.0]),
)
ODD = st.builds(
    Step,
    delta_ms=st.integers(0, 60),
    command=st.booleans(),
    kind=st.sampled_from([Kind.PASS, Kind.PASS, Kind.PASS, Kind.DAMP, Kind.STOP, 0, 9]),
    age_ms=st.sampled_from([0, 1, 20, 49, 51, 500, -20, -70]),
    counts=st.booleans(),
    session=st.sampled_from([0, 0, 1, -1]),
    fault=st.none() | FAULTS,
    buttons=st.sampled_from([0, 0, 0, START, DAMP, LIMP]),
    press=st.sampled_from(["", "", "", "starts", "damps", "limps"]),
    tilted=st.booleans(),
    foreign=st.sampled_from([False, False, False, True]),
    parent_hangs=st.booleans(),
    control_done=st.sampled_from([False, False, False, True]),
)
RESTARTS = st.sampled_from([Step(press="starts", command=False), Step(session=1), Step(buttons=START)])
COURSES = st.lists(st.just(ORDINARY) | RESTARTS | ODD, max_size=25).map(lambda course: [ORDINARY, *course])


def frame(raw: bytes) -> LowCmdDecoder:
    decoder = LowCmdDecoder()
    assert decoder.decode(raw), decoder.fault
    return decoder


def is_free(raw: bytes) -> bool:
    """A damping or limp frame: no joint is told where to go."""
    return not frame(raw).kp.any()


def damping(robot: RobotConfig) -> bytes:
    """The one damping frame there is."""
    frames = fly([ORDINARY, Step(press="damps")], robot)
    return frames[-1]


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: str(robot.name))
@settings(max_examples=60)
@given(course=COURSES)
def test_every_frame_is_finite_inside_the_limits_and_whole(course: list[Step], robot: RobotConfig) -> None:
    config = make_config(robot, DAMPING_KD, expiry_ms=50)
    for raw in fly(course, robot):
        read = frame(raw)  # length, header and checksum hold
        asked = np.concatenate([read.q, read.kp, read.kd])
        assert np.all((asked >= config.low) & (asked <= config.high))  # false for NaN
        assert read.mode_machine == MODE_MACHINE
        assert read.mode_pr == 0
        assert not read.dq.any()
        assert not read.tau.any()
        np.testing.assert_array_equal(read.motor_mode(), robot.valid)
        for values in (read.q, read.kp, read.kd):
            assert not values[~robot.valid].any()
        assert not any(read.frame.motor[N_JOINTS:].tobytes()), "a slot beyond the joints"


@settings(max_examples=100)
@given(course=COURSES)
def test_after_damping_only_damping_until_the_operator_starts_a_new_session(course: list[Step]) -> None:
    class Latch:
        holds = started = False
        session = 0

    latch = Latch()

    def look(desk: Desk, step: Step, frames: list[bytes]) -> None:
        latch.started |= step.press == "starts" or bool(step.buttons & START)
        for raw in frames:
            if is_free(raw):
                if not latch.holds:
                    latch.started, latch.session = False, desk.gateway.core.session
                latch.holds = True
            elif latch.holds:
                assert latch.started, "a target passed without the operator"
                assert desk.gateway.core.session > latch.session, "a target of the latched session passed"
                latch.holds = False

    fly(course, ROBOTS[0], look)


@settings(max_examples=60)
@given(course=COURSES)
def test_a_damping_frame_depends_on_nothing_but_its_gains(course: list[Step]) -> None:
    the_one = damping(ROBOTS[0])
    np.testing.assert_array_equal(frame(the_one).kd, DAMPING_KD)
    for raw in fly(course, ROBOTS[0]):
        assert raw == the_one or not is_free(raw) or not frame(raw).kd.any()


@settings(max_examples=40)
@given(course=COURSES)
def test_the_same_course_gives_the_same_bytes(course: list[Step]) -> None:
    assert fly(course, ROBOTS[0]) == fly(course, ROBOTS[0])


@settings(max_examples=60)
@given(course=COURSES)
def test_whatever_came_before_a_silent_control_is_damped_within_its_expiry(course: list[Step]) -> None:
    """Once commands stop: expiry, the time to confirm it and one wake-up later nothing is tracked."""
    silence = [Step(command=False)] * 12  # 60 ms
    states: list[GatewayState] = []
    fly([*course, *silence], ROBOTS[0], lambda desk, step, frames: states.append(desk.gateway.core.state))
    assert states[-1] is not GatewayState.PASSING


def test_ordinary_commands_pass_as_they_are() -> None:
    """The courses above mean something: an undisturbed one is passed on."""
    frames = fly([ORDINARY] * 10, ROBOTS[0])
    assert len(frames) == 10
    assert all(frame(raw).kp.all() for raw in frames)


@pytest.mark.parametrize(
    "bad",
    [
        Step(fault=("q", 4, np.nan), counts=False),
        Step(fault=("q", 4, np.nan), age_ms=51),
        Step(kind=9, age_ms=51),
    ],
    ids=["number repeated", "expired", "expired and of no kind"],
)
def test_a_bad_target_is_never_published_however_it_is_dressed(bad: Step) -> None:
    """Neither a repeated number nor its age hides what a command holds from the hard limits."""
    frames = fly([ORDINARY, bad], ROBOTS[0])
    assert frames[-1] == damping(ROBOTS[0])
