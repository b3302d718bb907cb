"""The vendor's link with its package replaced; with the real one it is tested in test_interop."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onboard.configs.errors import LinkError
from onboard.configs.robot import N_JOINTS
from onboard.runtime import idl, sdk_link, wire
from onboard.runtime.link import COMMAND, Kind
from onboard.runtime.sdk_link import SdkLink, refuse_dangerous

VALID = np.ones(N_JOINTS, dtype=bool)
VALID[13] = False
DAMPING = np.linspace(3, 1, N_JOINTS, dtype=np.float32)


@pytest.mark.parametrize(
    ("version", "domain_id", "interface"),
    [("0.10.2", 0, "eth0"), ("0.10.5", 0, "lo"), ("11.0.1", 1, "lo"), ("12.0.0", 230, "lo")],
)
def test_harmless_combinations_pass(version: str, domain_id: int, interface: str) -> None:
    refuse_dangerous(version, domain_id, interface)


@pytest.mark.parametrize(
    ("version", "domain_id", "interface"),
    [
        ("11.0.1", 0, "lo"),
        ("11.0.1", 1, "eth0"),
        ("11.0.0", 0, "eth0"),
        ("12.0.0", 1, "wlan0"),
        ("0", 1, "eth0"),
    ],
)
def test_what_could_crash_the_robot_is_refused(version: str, domain_id: int, interface: str) -> None:
    with pytest.raises(
        LinkError, match=f"can crash the robot's .* refuses domain {domain_id} on '{interface}'"
    ):
        refuse_dangerous(version, domain_id, interface)


def test_refusal_comes_before_anything_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_link, "cyclonedds_version", lambda: "11.0.1")
    monkeypatch.setattr(sdk_link, "_Sdk", lambda *_: pytest.fail("connected"))
    with pytest.raises(LinkError, match="refuses domain 0"):
        SdkLink(0, "lo", VALID, DAMPING).open()


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "unitree_sdk2py", None)
    with pytest.raises(LinkError, match=r"needs the vendor's package .* install onboard\[sdk\]"):
        SdkLink(1, "lo", VALID, DAMPING).open()


class FakeSdk:
    """The vendor's package as far as the link uses it, with our messages in place of its own."""

    state_type, command_type, command = idl.LowState, idl.LowCmd, idl.LowCmd

    def __init__(self, states: list[idl.LowState], other_commands: int = 0) -> None:
        self.states, self.other_commands = states, other_commands
        self.written: list[idl.LowCmd] = []
        self.closed: list[str] = []
        self.hand_over: Callable[[Any], None] = lambda _: None

    @property
    def crc(self) -> Any:
        layouts = {idl.LowState: wire.LOW_STATE, idl.LowCmd: wire.LOW_CMD}

        def crc(message: Any) -> int:
            frame = wire.Frame(layouts[type(message)])
            assert frame.load(bytes(message.serialize()))
            return frame.checksum()

        return SimpleNamespace(Crc=crc)

    def subscribe(self, topic: str, kind: type, handler: Callable[[Any], None]) -> Any:
        if kind is idl.LowState:
            self.hand_over = handler
            for state in self.states:
                handler(state)
        else:
            for _ in range(self.other_commands):
                handler(idl.LowCmd())
        return SimpleNamespace(Close=lambda: self.closed.append(topic))

    def publish(self, topic: str, kind: type) -> Any:
        def write(message: idl.LowCmd) -> None:
            self.written.append(idl.LowCmd.deserialize(message.serialize()))

        return SimpleNamespace(Write=write, Close=lambda: self.closed.append(topic))


def state(tick: int, good: bool = True) -> idl.LowState:
    encoder = wire.LowStateEncoder(mode_machine=4)
    encoder.q[:] = np.arange(N_JOINTS)
    encoder.remote[:] = np.arange(40)
    message: idl.LowState = idl.LowState.deserialize(bytes(encoder.seal(tick)))
    message.crc ^= not good
    return message


Connect = Callable[[FakeSdk], SdkLink]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    for name in ("LISTEN_S", "FIRST_STATE_TIMEOUT_S", "DAMPING_S"):
        monkeypatch.setattr(sdk_link, name, 0.02)
    monkeypatch.setattr(sdk_link, "cyclonedds_version", lambda: "0.10.2")

    def link(sdk: FakeSdk) -> SdkLink:
        monkeypatch.setattr(sdk_link, "_Sdk", lambda *_: sdk)
        return SdkLink(0, "lo", VALID, DAMPING)

    return link


def command(kind: Kind) -> np.ndarray:
    filled = np.zeros((), COMMAND)
    filled["kind"], filled["mode_machine"] = kind, 4
    filled["q"], filled["kp"], filled["kd"] = np.arange(N_JOINTS), 40, 2
    return filled


def test_states_are_read_once_each_and_bad_ones_dropped(connect: Connect) -> None:
    sdk = FakeSdk([state(8)])
    link = connect(sdk)
    link.open()
    seen = link.latest()
    assert (seen.robot_tick, seen.mode_machine, seen.new, seen.source_time_ns) == (8, 4, False, 0)
    assert seen.q.tolist() == list(range(N_JOINTS))
    assert seen.remote.tolist() == list(range(40))
    sdk.hand_over(state(10, good=False))
    assert (link.latest().robot_tick, seen.crc_ok, seen.crc_errors, seen.new) == (8, False, 1, False)
    sdk.hand_over(state(12))
    assert (link.latest().robot_tick, seen.crc_ok, seen.crc_errors, seen.new) == (12, True, 1, True)


def test_a_target_is_published_as_it_is(connect: Connect) -> None:
    sdk = FakeSdk([state(8)])
    link = connect(sdk)
    link.open()
    link.send(command(Kind.PASS))
    (sent,) = sdk.written
    modes = [motor.mode for motor in sent.motor_cmd]
    assert modes == [*VALID.astype(int).tolist(), 0, 0, 0, 0, 0, 0]
    assert [motor.q for motor in sent.motor_cmd[:3]] == [0.0, 1.0, 2.0]
    assert (sent.motor_cmd[5].kp, sent.motor_cmd[5].kd, sent.motor_cmd[13]) == (40.0, 2.0, idl.MotorCmd())
    assert (sent.mode_pr, sent.mode_machine) == (0, 4)
    assert sdk.crc.Crc(sent) == sent.crc


@pytest.mark.parametrize("kind", [Kind.DAMP, Kind.STOP])
def test_damp_and_stop_have_no_stiffness(connect: Connect, kind: Kind) -> None:
    sdk = FakeSdk([state(8)])
    link = connect(sdk)
    link.open()
    link.send(command(kind))
    assert [motor.kp for motor in sdk.written[0].motor_cmd] == [0.0] * 35
    assert sdk.written[0].motor_cmd[0].kd == 3.0


def test_the_end_is_damping(connect: Connect) -> None:
    sdk = FakeSdk([state(8)])
    link = connect(sdk)
    link.open()
    link.send(command(Kind.PASS))
    link.close()
    assert len(sdk.written) > 2
    assert {motor.kp for sent in sdk.written[1:] for motor in sent.motor_cmd} == {0.0}
    assert sdk.written[-1].mode_machine == 4
    assert sorted(sdk.closed) == ["rt/lowcmd", "rt/lowcmd", "rt/lowstate"]
    count = len(sdk.written)
    link.close()
    assert len(sdk.written) == count


def test_a_link_that_sent_nothing_ends_silently(connect: Connect) -> None:
    sdk = FakeSdk([state(8)])
    link = connect(sdk)
    link.open()
    link.close()
    assert sdk.written == []


def test_another_commander_is_refused(connect: Connect) -> None:
    with pytest.raises(LinkError, match="somebody else commands the robot: 3 messages"):
        connect(FakeSdk([state(8)], other_commands=3)).open()


def test_silence_is_said_with_the_interfaces(connect: Connect) -> None:
    with pytest.raises(LinkError, match=r"no state on rt/lowstate .* domain 0, lo; .*127\.0\.0\.1"):
        connect(FakeSdk([])).open()
