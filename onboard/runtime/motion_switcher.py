"""The robot's motion switcher: who controls the motors, and how its own controller is released.

A remote call over two DDS topics. The client asks for the active controller and releases it; the
responder is the other side, for whoever plays the robot. Releasing makes a real robot go limp:
callers decide when, see `onboard.runtime.parent`.
"""

import json
import time
from enum import IntEnum
from typing import Any

from onboard.configs.errors import LinkError
from onboard.configs.untrusted import DAMAGED
from onboard.runtime.dds import DdsDomain
from onboard.runtime.idl import (
    Request,
    RequestHeader,
    RequestIdentity,
    Response,
    ResponseHeader,
    ResponseStatus,
)

REQUEST_TOPIC = "rt/api/motion_switcher/request"
RESPONSE_TOPIC = "rt/api/motion_switcher/response"
CALL_TIMEOUT_S = 5.0  # what the vendor's examples set; a real robot answers in milliseconds, or is busy
_RELEASE_PAUSE_S = 1.0  # between release and the next look, as in the vendor's examples

_BUSY_PAUSE_S = 0.2
_ASK_AGAIN_S = 0.5


class Api(IntEnum):
    """Numbers of the calls."""

    CHECK_MODE = 1001
    SELECT_MODE = 1002
    RELEASE_MODE = 1003


class Code(IntEnum):
    """Answers, from the vendor's motion_switcher_error.hpp and rpc/internal.py."""

    OK = 0
    NOT_IMPLEMENTED = 3203
    BAD_PARAMETER = 7001
    BUSY = 7002
    BAD_EVENT = 7003
    BAD_NAME = 7004
    BAD_COMMAND = 7005
    CHECK_FAILED = 7006
    SWITCH_FAILED = 7007
    RELEASE_FAILED = 7008
    CONFIG_FAILED = 7009


class MotionSwitcher:
    """Client of the robot's motion switcher.

    Args:
        domain: where the robot is.
        timeout_s: for finding the service, and again for its answer.
    """

    def __init__(self, domain: DdsDomain, timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._where = f"domain {domain.id}, {domain.interface}"
        self._requests = domain.writer(REQUEST_TOPIC, Request, reliable=True)
        self._answers = domain.reader(RESPONSE_TOPIC, Response, depth=16)

    def check(self) -> str:
        """Name of the controller that owns the motors ("ai", "normal", ...); "" when it was released.

        Raises:
            LinkError: no such service, no answer in time, a refusal, or an answer without a name.
        """
        text = self._call(Api.CHECK_MODE)
        try:
            name = json.loads(text)["name"]
        except DAMAGED:
            name = None
        if not (isinstance(name, str) and name.isprintable()):
            raise LinkError(f"motion switcher: CHECK_MODE answered {text!r:.200}; expected JSON with a name")
        return name

    def release(self, attempts: int = 5) -> None:
        """Take the motors from the robot's controller; it goes limp. Repeats until nobody owns them.

        Raises:
            LinkError: a call failed, or somebody still owns the motors after the last attempt.
        """
        for _ in range(attempts):
            if not self.check():
                return
            self._call(Api.RELEASE_MODE)
            until = time.monotonic() + _RELEASE_PAUSE_S
            while time.monotonic() < until:
                if not self.check():
                    return
                time.sleep(0.05)
        owner = self.check()
        if owner:
            raise LinkError(f"motion switcher: '{owner}' still owns the motors after {attempts} releases")

    def select(self, name: str) -> None:
        """Give the motors to one of the robot's controllers.

        Raises:
            LinkError: a call failed, or the robot does not know the name.
        """
        self._call(Api.SELECT_MODE, {"name": name})

    def close(self) -> None:
        """Drop the connection; safe to call twice."""
        self._requests.close()
        self._answers.close()

    def _call(self, api: Api, parameter: dict[str, str] | None = None) -> str:
        """One call; a busy service is asked again until the time is over."""
        self._wait_for_service()
        until = time.monotonic() + self._timeout_s
        numbers: set[int] = set()
        fault = (
            f"no answer to {api.name} within {self._timeout_s:g} s on {self._where}; is the robot starting?"
        )
        while time.monotonic() < until:
            numbers.add(self._ask(api, parameter))
            answer = self._answer(numbers, min(until, time.monotonic() + _ASK_AGAIN_S))
            if answer is None:
                continue  # it may not have known our reader yet when it answered
            code, data = answer
            if code == Code.OK:
                return data
            fault = f"{api.name} refused with code {describe(code)}"
            if code != Code.BUSY:
                break
            time.sleep(_BUSY_PAUSE_S)
        raise LinkError(f"motion switcher: {fault}")

    def _wait_for_service(self) -> None:
        until = time.monotonic() + self._timeout_s
        while not (self._requests.matched() and self._answers.matched()):
            if time.monotonic() > until:
                raise LinkError(
                    f"no motion switcher found within {self._timeout_s:g} s on {self._where}; "
                    "is this the robot's network, and is its service up?"
                )
            time.sleep(0.01)

    def _ask(self, api: Api, parameter: dict[str, str] | None) -> int:
        """Send one request; its number."""
        number = time.monotonic_ns()
        header = RequestHeader(RequestIdentity(number, int(api)))
        self._requests.write(padded(Request(header, json.dumps(parameter or {}))))
        return number

    def _answer(self, numbers: set[int], until: float) -> tuple[int, str] | None:
        """Code and data of an answer to one of these requests; None when none came in time."""
        while (left_s := until - time.monotonic()) > 0:
            self._answers.wait(left_s)
            for sample in self._answers.take_all():
                answer = _decoded(Response, sample.raw)
                # others: late, for another client, or no answer at all
                if answer is not None and answer.header.identity.id in numbers:
                    return int(answer.header.status.code), str(answer.data)
        return None


class MotionSwitcherResponder:
    """The robot's side.

    Args:
        domain: where to answer.
        active: controller that owns the motors at first; "" for none.
        names: controllers that can be selected.

    Attributes:
        active: who owns the motors now.
        code: what every call but CHECK_MODE is answered with; anything but OK refuses it.
        silent: requests are taken and never answered.
    """

    def __init__(
        self, domain: DdsDomain, active: str = "ai", names: tuple[str, ...] = ("ai", "normal")
    ) -> None:
        self.active = active
        self.code = Code.OK
        self.silent = False
        self._names = names
        self._requests = domain.reader(REQUEST_TOPIC, Request, depth=16)
        self._answers = domain.writer(RESPONSE_TOPIC, Response, reliable=True)

    def serve(self) -> int:
        """Answer what has come; returns how many requests that were. Never blocks."""
        samples = self._requests.take_all()
        for sample in samples:
            request = _decoded(Request, sample.raw)
            if request is None:
                continue
            code, data = self._act(request.header.identity.api_id, request.parameter)
            if not (self.silent or request.header.policy.noreply):
                header = ResponseHeader(request.header.identity, ResponseStatus(int(code)))
                self._answers.write(padded(Response(header, data)))
        return len(samples)

    def close(self) -> None:
        """Stop answering; safe to call twice."""
        self._requests.close()
        self._answers.close()

    def _act(self, api: int, parameter: str) -> tuple[Code, str]:
        if api == Api.CHECK_MODE:
            return Code.OK, json.dumps({"form": "0", "name": self.active})
        if api not in (Api.RELEASE_MODE, Api.SELECT_MODE):
            return Code.NOT_IMPLEMENTED, ""
        if self.code is not Code.OK:
            return self.code, ""
        name = "" if api == Api.RELEASE_MODE else _name(parameter)
        if name and name not in self._names:
            return Code.BAD_NAME, ""
        if api == Api.SELECT_MODE and not name:
            return Code.BAD_PARAMETER, ""
        self.active = name
        return Code.OK, ""


def _name(parameter: str) -> str:
    try:
        return str(json.loads(parameter)["name"])
    except DAMAGED:
        return ""


def _decoded(kind: Any, raw: bytes) -> Any:  # noqa: ANN401 - IDL messages, types without annotations
    """The message in some bytes; None where there is none."""
    try:
        return kind.deserialize(raw)
    except DAMAGED:
        return None


def padded(message: Any) -> bytes:  # noqa: ANN401 - any IDL message, a type without annotations
    """Serialised, with the length that DDS wants: a multiple of 4."""
    raw: bytes = message.serialize()
    return raw.ljust(-(-len(raw) // 4) * 4, b"\0")


def describe(code: int) -> str:
    """A code with its name where it is known."""
    return f"{code} ({Code(code).name.lower().replace('_', ' ')})" if code in list(Code) else str(code)
