"""How the parent looks after recorder and control: who hangs or died is replaced or ended, not who works."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from onboard.cli.run_options import run_config
from onboard.configs.errors import OnboardError
from onboard.logging.layout import blank_record, record_dtype
from onboard.runtime import parent
from onboard.runtime.assembly import make_plan
from onboard.runtime.children import Child
from onboard.runtime.console import Console
from onboard.runtime.dds import DdsDomain
from onboard.runtime.parent import RECORDER_HUNG_S, RECORDER_RESTARTS, START_S, Parent
from onboard.runtime.ports import CONTROL, RECORDER, run_layout
from onboard.runtime.shm import Shared
from tests.disks import Ext4
from tests.logging.synthetic import WALK
from tests.runtime.flight import POLICY

S = 1_000_000_000
IDLE = ("-c", "import time; time.sleep(600)")


class Watched:
    """A parent with nothing but a recorder, which only sleeps."""

    def __init__(self, shared: Shared) -> None:
        try:
            plan = make_plan(run_config(policy=POLICY, dry=True))
        except OnboardError as error:
            pytest.skip(f"{POLICY} is not installed: {error}")
        self.shared = shared
        self.parent = Parent(plan, shared, cast(DdsDomain, None), Console(), IDLE, lambda line: None)
        self.parent._recorder = self.parent._start_recorder()

    @property
    def pid(self) -> int:
        assert self.parent._recorder is not None
        return self.parent._recorder.pid

    def beat(self, now_ns: int, *, closed: bool = False) -> None:
        status = np.zeros((), RECORDER)
        status["heartbeat_ns"], status["closed"] = now_ns, closed
        self.shared["recorder"].push(status)

    def watch(self, now_ns: int) -> None:
        self.parent.status.read()
        self.parent._watch_recorder(now_ns)


@pytest.fixture
def watched() -> Iterator[Watched]:
    shared = Shared.create(run_layout(blank_record(record_dtype([WALK])).dtype))
    made = Watched(shared)
    with made.parent:
        yield made
    shared.unlink()
    shared.close()


def test_one_that_beats_or_still_starts_is_left_alone(watched: Watched) -> None:
    first, now = watched.pid, time.monotonic_ns()
    watched.watch(now + int((START_S - 1) * S))
    watched.beat(now + 100 * S)
    watched.watch(now + int((100 + RECORDER_HUNG_S - 1) * S))
    assert watched.pid == first
    assert watched.parent.faults == []


def test_one_that_hangs_is_killed_and_replaced(watched: Watched) -> None:
    first, now = watched.pid, time.monotonic_ns()
    os.kill(first, signal.SIGSTOP)
    watched.beat(now + 100 * S)
    watched.watch(now + int((100 + RECORDER_HUNG_S + 1) * S))
    assert watched.pid != first
    assert "gave no sign of life for 10 s" in watched.parent.faults[0]
    end = time.monotonic() + 20.0
    while watched.parent._hung_recorders[0].exit_code is None:
        assert time.monotonic() < end, "it was not killed"
        time.sleep(0.01)


def test_one_that_converts_may_take_its_time(watched: Watched) -> None:
    first, now = watched.pid, time.monotonic_ns()
    watched.parent.request("recorder_stop")
    watched.watch(now + 1000 * S)
    assert watched.pid == first


def test_one_that_keeps_dying_is_given_up(watched: Watched) -> None:
    for count in range(RECORDER_RESTARTS + 1):
        recorder = watched.parent._recorder
        assert recorder is not None
        recorder.kill()
        watched.watch(time.monotonic_ns())
        assert len(watched.parent.faults) == count + 1
    assert watched.parent._recorder is None
    watched.watch(time.monotonic_ns())
    assert len(watched.parent.faults) == RECORDER_RESTARTS + 1


def test_one_that_has_nothing_left_to_do_is_not_missed(watched: Watched) -> None:
    watched.beat(time.monotonic_ns(), closed=True)
    os.kill(watched.pid, signal.SIGKILL)
    watched.watch(time.monotonic_ns() + 1000 * S)
    assert watched.parent.faults == []


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder has a tenth of a second to close its rollout."""
    monkeypatch.setattr(parent, "CONVERT_S", 0.1)


@pytest.mark.usefixtures("hasty")
def test_one_that_never_closes_its_rollout_is_killed(watched: Watched) -> None:
    watched.parent._end()
    assert watched.parent._recorder is not None
    assert watched.parent._recorder.exit_code == -signal.SIGKILL
    assert (
        watched.parent.faults[-1] == "the recorder got no further with the rollout for 0.1 s; it was killed"
    )


@pytest.fixture
def writer(disk: Ext4) -> Iterator[list[str]]:
    """Arguments of a process that its disk holds for ever: not even SIGKILL ends it."""
    disk.freeze()
    yield ["-c", f"open({str(disk.folder / 'x')!r}, 'w')"]
    disk.thaw()


def test_one_that_gets_on_may_take_longer(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "CONVERT_S", 0.5)
    monkeypatch.setattr(parent, "CONVERT_SAID_S", 0.0)
    said: list[str] = []
    monkeypatch.setattr(watched.parent, "_say", said.append)
    until = time.monotonic_ns() + 2 * S
    recorder = watched.parent._recorder
    assert recorder is not None

    def work() -> None:
        while time.monotonic_ns() < until:
            watched.beat(time.monotonic_ns())
            time.sleep(0.01)
        watched.beat(time.monotonic_ns(), closed=True)
        recorder.kill()

    working = threading.Thread(target=work)
    working.start()
    watched.parent._see_recorder_out()
    assert time.monotonic_ns() >= until
    working.join()
    assert watched.parent.faults == []
    assert said == ["the rollout is being written"]


@pytest.mark.usefixtures("hasty")
def test_one_that_its_disk_holds_is_left_there(watched: Watched, disk: Ext4, writer: list[str]) -> None:
    assert watched.parent._recorder is not None
    watched.parent._recorder.close()
    watched.parent._recorder_arguments = writer
    watched.parent._recorder = stuck = watched.parent._start_recorder()
    held(stuck)
    watched.parent._end()
    assert watched.parent.faults[-1].endswith("was killed, but a disk that gives no answer holds it")
    stuck.close()  # comes back, although the process is still there
    assert stuck.exit_code is None
    disk.thaw()
    assert stuck.wait(20.0)


def test_a_control_that_its_disk_holds_is_waited_for_a_while(
    watched: Watched, disk: Ext4, writer: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.parent._control = stuck = Child("control", writer)
    held(stuck)
    status, now = np.zeros((), CONTROL), time.monotonic_ns()
    status["heartbeat_ns"] = now - 2 * S
    watched.shared["control"].push(status)
    watched.parent.status.read()
    for _ in range(3):
        watched.parent._watch_control(now)
    assert watched.parent.faults == ["control hung: no tick for 1 s; it was killed"]
    assert not watched.parent._control_is_gone()
    monkeypatch.setattr(parent, "GONE_S", 0.0)
    assert watched.parent._control_is_gone()
    assert stuck.complaint() == "it still runs"
    disk.thaw()
    assert stuck.wait(20.0)


def held(child: Child) -> None:
    """Wait until a process can't be interrupted."""
    until = time.monotonic() + 20.0
    while Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "D":
        assert time.monotonic() < until, "the disk does not hold it"
        time.sleep(0.01)
