"""The DDS link against a small robot in another process."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import pytest

from onboard.configs.errors import LinkError
from onboard.runtime import dds_link, idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.dds_link import CommandWatch, DdsLink, listen_for_commander
from onboard.runtime.link import COMMAND
from tests.dds_domain import domain_id

__all__ = ["domain_id"]

T = TypeVar("T")

ROBOT = """
import sys, time
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.wire import ImuEncoder, LowCmdWriter, LowStateEncoder
import numpy as np
how = sys.argv[2]
with DdsDomain(int(sys.argv[1]), "lo") as domain:
    kind = idl.LowCmd if how == "other type" else idl.LowState
    states = domain.writer(idl.LOW_STATE_TOPIC, kind) if how != "commands" else None
    torso = domain.writer(idl.TORSO_IMU_TOPIC, idl.ImuState)
    commands = domain.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
    state, imu = LowStateEncoder(mode_machine=5), ImuEncoder()
    imu.quat_wxyz[:], imu.gyro[:] = (1, 0, 0, 0), (1, 2, 3)
    ones = np.ones(29, np.float32)
    for tick in range(10000):
        time.sleep(0.002)
        state.q[:] = tick
        raw = state.seal(tick * 2)
        if how == "bad checksum" or (how == "some bad" and tick % 2):
            raw[-1] ^= 1
        if states and how != "other type":
            states.write(raw)
        if not (how == "torso stops" and tick > 500):
            torso.write(imu.buffer)
        if how == "commands":
            commands.write(LowCmdWriter(ones > 0).fill(ones, ones, ones, 5))
"""


@pytest.fixture
def domain(domain_id: int) -> Iterator[DdsDomain]:
    with DdsDomain(domain_id, "lo") as opened:
        yield opened


@pytest.fixture
def robot(domain: DdsDomain) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []

    def start(how: str) -> subprocess.Popen[bytes]:
        running.append(subprocess.Popen([sys.executable, "-c", ROBOT, str(domain.id), how]))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], T], seconds: float = 15.0) -> T:
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "did not happen in time"
        time.sleep(0.002)
    return found


def heard(domain: DdsDomain, topic: str) -> bool:
    return topic in {found.topic for found in domain.publications()}


def test_states_flow_and_age_grows_when_they_stop(
    domain: DdsDomain, robot: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    process = robot("good")
    wait_for(lambda: heard(domain, idl.LOW_STATE_TOPIC))
    link = DdsLink(domain)
    link.open()
    state = link.latest()
    assert state.received
    wait_for(lambda: link.latest().new)
    first, first_stamp = state.robot_tick, state.source_time_ns
    assert state.q[0] == first / 2
    assert (state.crc_ok, state.crc_errors, state.mode_machine) == (True, 0, 5)
    wait_for(lambda: link.latest().robot_tick >= first + 200)
    assert state.source_time_ns > first_stamp
    wait_for(lambda: not np.isnan(link.latest().torso_gyro[0]))
    assert state.torso_gyro.tolist() == [1, 2, 3]
    process.kill()
    process.wait()
    wait_for(lambda: link.latest().age_s > 0.25)
    assert not state.new
    assert time.monotonic_ns() - state.recv_ns > 0.2e9
    link.close()
    link.close()
    assert link.latest() is state


def test_a_bad_sample_is_dropped_and_counted(
    domain: DdsDomain, robot: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    robot("some bad")
    wait_for(lambda: heard(domain, idl.LOW_STATE_TOPIC))
    link = DdsLink(domain)
    link.open()
    wait_for(lambda: not link.latest().crc_ok)
    state = link.latest()
    assert state.crc_errors > 0
    kept = state.q.copy()
    wait_for(lambda: not link.latest().new and not state.crc_ok)
    wait_for(lambda: link.latest().new)
    assert state.crc_ok
    assert state.q[0] > kept[0]
    assert state.q[0] % 2 == 0  # only every second sample is whole


def test_a_torso_imu_that_falls_silent_becomes_nan(
    domain: DdsDomain, robot: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    robot("torso stops")
    wait_for(lambda: heard(domain, idl.LOW_STATE_TOPIC))
    link = DdsLink(domain)
    link.open()
    wait_for(lambda: not np.isnan(link.latest().torso_gyro[0]))
    wait_for(
        lambda: np.isnan(link.latest().torso_gyro).all() and np.isnan(link.latest().torso_quat_wxyz).all()
    )
    assert link.latest().received


def test_nobody_there_is_answered_with_the_interfaces(
    domain: DdsDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dds_link, "FIRST_STATE_TIMEOUT_S", 0.2)
    with pytest.raises(
        LinkError, match=r"no state on rt/lowstate within 0.2 s .* no publisher; .*: none; .* lo \("
    ) as info:
        DdsLink(domain).open()
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("how", "topic", "said"),
    [
        ("bad checksum", idl.LOW_STATE_TOPIC, r"\d+ samples came, each with a wrong checksum"),
        (
            "other type",
            idl.LOW_STATE_TOPIC,
            r"publisher of unitree_hg::msg::dds_::LowCmd_ .*expected",
        ),
        ("commands", idl.LOW_CMD_TOPIC, r"no publisher; other topics heard: rt/lowcmd, rt/secondary_imu"),
    ],
)
def test_what_was_heard_instead_is_said(
    how: str,
    topic: str,
    said: str,
    domain: DdsDomain,
    robot: Callable[[str], subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dds_link, "FIRST_STATE_TIMEOUT_S", 0.3)
    robot(how)
    wait_for(lambda: heard(domain, topic) and heard(domain, idl.TORSO_IMU_TOPIC))
    with pytest.raises(LinkError, match=said):
        DdsLink(domain).open()


def test_a_commander_is_heard_and_silence_is_not_one(
    domain: DdsDomain, robot: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    own = domain.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
    own.write(idl.LowCmd().serialize())
    robot("good")  # has a writer on the topic, and is silent on it
    wait_for(lambda: heard(domain, idl.LOW_CMD_TOPIC))
    assert listen_for_commander(domain, seconds=0.1) == ""
    robot("commands")
    watch = CommandWatch(domain)
    assert set(wait_for(watch.poll)) <= {found.writer for found in domain.publications()}
    watch.close()
    assert "on rt/lowcmd from participant" in listen_for_commander(domain, seconds=0.1)


def test_commands_go_to_the_sink_and_nowhere_else(domain: DdsDomain) -> None:
    taken: list[int] = []
    command = np.zeros((), COMMAND)
    command["number"] = 7
    DdsLink(domain, sink=lambda handed: taken.append(int(handed["number"]))).send(command)
    assert taken == [7]


def test_a_dry_link_sends_nothing(domain: DdsDomain) -> None:
    reader = domain.reader(idl.LOW_CMD_TOPIC, idl.LowCmd)
    DdsLink(domain).send(np.zeros((), COMMAND))
    assert reader.matched() == 0
    assert reader.take() is None
