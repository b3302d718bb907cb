"""What both sides of an interoperability test send, and how a side reports. Standard library only.

A side publishes all the time, says one line of JSON once it has received enough good messages,
and goes on publishing until its standard input is closed, so that the other side gets enough too.
"""

import json
import select
import struct
import sys
import time
from collections.abc import Callable, Mapping

ENOUGH = 20
JOINTS = range(29)
TICK = 123456
MODE_MACHINE = 5
QUATERNION = (0.5, -0.5, 0.5, -0.5)
GYRO = (0.25, -0.5, 1.0)
ACCEL = (0.125, 0.25, 9.75)
REMOTE = tuple(range(40))

STATE_Q = [0.03125 * i - 0.25 for i in JOINTS]
STATE_DQ = [-0.0625 * i for i in JOINTS]
STATE_TAU = [0.5 * i for i in JOINTS]
STATE_TEMPERATURE = [(30 + i, 40 - i) for i in JOINTS]
COMMAND_Q = [0.25 - 0.015625 * i for i in JOINTS]
COMMAND_KP = [40.0 + i for i in JOINTS]
COMMAND_KD = [1.0 + 0.125 * i for i in JOINTS]


def float32(value: float) -> float:
    """The value as it comes back from a 32-bit field."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def differing(found: Mapping[str, object], expected: Mapping[str, object]) -> str:
    """Names and values of what is not as expected, "" when all is."""
    return "; ".join(f"{name}: {found[name]!r}" for name in expected if found[name] != expected[name])


def run(publish: Callable[[], None], receive: Callable[[], str | None], seconds: float = 20.0) -> int:
    """Publish every 2 ms and receive until told to end.

    Args:
        publish: sends one message.
        receive: None when nothing new came, "" for a good message, else what is wrong with it.
        seconds: to receive enough.

    Returns:
        The process' exit code.
    """
    good, faults, reported = 0, [], False
    until = time.monotonic() + seconds
    while True:
        publish()
        fault = receive()
        good += fault == ""
        if fault:
            faults.append(fault)
        over = time.monotonic() > until
        if not reported and (good >= ENOUGH or over):
            reported = True
            print(json.dumps({"good": good, "faults": faults[:3]}), flush=True)  # noqa: T201 - the report
        if select.select([sys.stdin], [], [], 0.002)[0] or (over and time.monotonic() > until + seconds):
            return 0
