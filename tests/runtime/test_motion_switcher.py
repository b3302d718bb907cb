"""Client and responder of the motion switcher, in two processes over loopback DDS."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from onboard.configs.errors import LinkError
from onboard.runtime import motion_switcher
from onboard.runtime.dds import DdsDomain
from onboard.runtime.idl import Request, RequestHeader, RequestIdentity, Response
from onboard.runtime.motion_switcher import Code, MotionSwitcher, MotionSwitcherResponder, describe, padded
from tests.dds_domain import domain_id

__all__ = ["domain_id"]

ROBOT = """
import sys, time
from onboard.runtime.dds import DdsDomain
from onboard.runtime.motion_switcher import Code, MotionSwitcherResponder
how = sys.argv[2]
with DdsDomain(int(sys.argv[1]), "lo") as domain:
    responder = MotionSwitcherResponder(domain)
    responder.code = Code[how] if how in Code.__members__ else Code.OK
    responder.silent = how == "silent"
    answered, busy = 0, 4 if how == "busy for a while" else 0
    stubborn = 2 if how == "stubborn" else 0
    for _ in range(20000):
        time.sleep(0.001)
        answered += responder.serve()
        if busy:
            responder.code = Code.BUSY if answered < busy else Code.OK
        if stubborn and not responder.active:
            responder.active, stubborn = "ai", stubborn - 1
"""

Start = Callable[[str], MotionSwitcher]


@pytest.fixture
def domain(domain_id: int) -> Iterator[DdsDomain]:
    with DdsDomain(domain_id, "lo") as opened:
        yield opened


@pytest.fixture
def start(domain: DdsDomain) -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []

    def robot(how: str) -> MotionSwitcher:
        running.append(subprocess.Popen([sys.executable, "-c", ROBOT, str(domain.id), how]))
        return MotionSwitcher(domain, timeout_s=15.0)

    yield robot
    for process in running:
        process.kill()
        process.wait()


def test_check_release_select(start: Start) -> None:
    client = start("good")
    assert client.check() == "ai"
    client.release()
    assert client.check() == ""
    client.release()  # nothing to do
    client.select("normal")
    assert client.check() == "normal"
    with pytest.raises(LinkError, match=r"SELECT_MODE refused with code 7004 \(bad name\)"):
        client.select("dance")
    with pytest.raises(LinkError, match=r"SELECT_MODE refused with code 7001 \(bad parameter\)"):
        client.select("")
    client.close()
    client.close()


def test_release_is_repeated_until_it_holds(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(motion_switcher, "_RELEASE_PAUSE_S", 0.1)
    client = start("stubborn")
    with pytest.raises(LinkError, match="'ai' still owns the motors after 1 releases"):
        client.release(attempts=1)
    client.release()
    assert client.check() == ""


def test_a_refusal_says_its_code(start: Start) -> None:
    with pytest.raises(LinkError, match=r"RELEASE_MODE refused with code 7008 \(release failed\)"):
        start("RELEASE_FAILED").release()


def test_a_busy_service_is_asked_again(start: Start) -> None:
    client = start("busy for a while")
    client.release()
    assert client.check() == ""


def test_a_service_that_stays_busy_is_given_up(start: Start) -> None:
    client = start("BUSY")
    assert client.check() == "ai"
    client._timeout_s = 0.5
    with pytest.raises(LinkError, match=r"RELEASE_MODE refused with code 7002 \(busy\)"):
        client.release()


def test_no_answer_in_time_is_said(start: Start) -> None:
    client = start("silent")
    while not (client._requests.matched() and client._answers.matched()):
        time.sleep(0.01)
    client._timeout_s = 0.3
    with pytest.raises(LinkError, match=r"no answer to CHECK_MODE within 0\.3 s"):
        client.check()


def test_nobody_to_ask_is_said(domain: DdsDomain) -> None:
    with pytest.raises(LinkError, match=r"no motion switcher found within 0\.1 s on domain \d+, lo"):
        MotionSwitcher(domain, timeout_s=0.1).check()


def answers(domain: DdsDomain, monkeypatch: pytest.MonkeyPatch, data: str) -> str:
    """What `check` says when the service answers `data`, after a late answer to another call."""
    client = MotionSwitcher(domain, timeout_s=5.0)
    requests = domain.reader(motion_switcher.REQUEST_TOPIC, Request)
    responses = domain.writer(motion_switcher.RESPONSE_TOPIC, Response, reliable=True)

    def write(raw: bytes) -> None:
        forward(raw)
        sample = requests.take()
        assert sample is not None
        identity = Request.deserialize(sample.raw).header.identity
        late = Response(data='{"name": "late"}')
        late.header.identity = RequestIdentity(identity.id - 1, identity.api_id)
        answer = Response(data=data)
        answer.header.identity = identity
        for message in (late, answer):
            responses.write(padded(message))

    forward = client._requests.write
    monkeypatch.setattr(client._requests, "write", write)
    return client.check()


def test_an_answer_to_another_call_is_passed_over(domain: DdsDomain, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(domain, monkeypatch, '{"form": "0", "name": "ai"}') == "ai"


@pytest.mark.parametrize("data", ["", "no JSON", '{"form": "0"}', "[]", "null"])
def test_an_answer_without_a_name_is_an_error(
    domain: DdsDomain, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    with pytest.raises(LinkError, match="expected JSON with a name"):
        answers(domain, monkeypatch, data)


def test_a_call_that_the_responder_does_not_know_is_refused(domain: DdsDomain) -> None:
    responder = MotionSwitcherResponder(domain, active="")
    requests = domain.writer(motion_switcher.REQUEST_TOPIC, Request, reliable=True)
    responses = domain.reader(motion_switcher.RESPONSE_TOPIC, Response)
    requests.write(padded(Request(RequestHeader(RequestIdentity(5, 1004)), "{}")))
    assert responder.serve() == 1
    assert responder.serve() == 0
    sample = responses.take()
    assert sample is not None
    answer = Response.deserialize(sample.raw)
    assert (answer.header.identity.id, answer.header.status.code) == (5, Code.NOT_IMPLEMENTED)


def test_a_request_that_wants_no_answer_gets_none(domain: DdsDomain) -> None:
    responder = MotionSwitcherResponder(domain)
    requests = domain.writer(motion_switcher.REQUEST_TOPIC, Request, reliable=True)
    responses = domain.reader(motion_switcher.RESPONSE_TOPIC, Response)
    request = Request(RequestHeader(RequestIdentity(5, int(motion_switcher.Api.RELEASE_MODE))), "{}")
    request.header.policy.noreply = True
    requests.write(padded(request))
    assert responder.serve() == 1
    assert responses.take() is None
    assert responder.active == ""


def test_codes_are_described() -> None:
    assert describe(7008) == "7008 (release failed)"
    assert describe(4711) == "4711"
