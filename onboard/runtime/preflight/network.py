"""Is the robot heard as it should be, is it the right one, and is it ours to command?"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from onboard.configs.errors import LinkError
from onboard.configs.robot import RobotConfig
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain, cyclonedds_version
from onboard.runtime.link import State
from onboard.runtime.motion_switcher import MotionSwitcher
from onboard.runtime.preflight.report import Check, Finding, judged, passed
from onboard.runtime.wire import LowStateDecoder

SAMPLES = 1000
PATIENCE_S = 5.0
PERIOD_MS = 2.0
"""LowState at 500 Hz."""
LATE_MS = 10.0
"""Half a control period: a state that comes so late is an old one."""
COMPANY_S = 0.3
SWITCHER_TIMEOUT_S = 1.0


class Heard(NamedTuple):
    """LowState samples in the order in which they came.

    Attributes:
        tick: (N,) robot_tick of the good ones.
        time_ns: (N,) CLOCK_MONOTONIC when they were taken.
        bad: samples of a wrong length or checksum.
        state: the newest.
    """

    tick: np.ndarray
    time_ns: np.ndarray
    bad: int
    state: State


def listen(dds: DdsDomain, count: int = SAMPLES) -> Heard:
    """Hear `count` samples, or as many as come in 5 s."""
    reader = dds.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=256)
    decoder, state = LowStateDecoder(), State()
    ticks: list[int] = []
    times: list[int] = []
    bad = 0
    until = time.monotonic() + PATIENCE_S
    while len(ticks) < count and time.monotonic() < until:
        reader.wait(0.05)
        now = time.monotonic_ns()
        for sample in reader.take_all():
            if decoder.decode(sample.raw, state):
                ticks.append(state.robot_tick)
                times.append(now)
            else:
                bad += 1
    reader.close()
    return Heard(np.array(ticks, np.int64), np.array(times, np.int64), bad, state)


class NetworkChecks:
    """The checks of one domain; the samples are heard once and looked at from several sides.

    Args:
        dds: where; closed by its owner.
        robot: the description that the run will use.
    """

    def __init__(self, dds: DdsDomain, robot: RobotConfig) -> None:
        self._dds = dds
        self._robot = robot
        self._heard: Heard | None = None

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        looks = (
            ("interface", self._interface),
            ("types", judge_types),
            ("rate", lambda: judge_rate(self._listened())),
            ("loss", lambda: judge_loss(self._listened())),
            ("checksums", lambda: judge_checksums(self._listened())),
            ("tick_unit", lambda: judge_tick_unit(self._listened())),
            ("robot_type", self._robot_type),
            ("publishers", self._publishers),
            ("commanders", self._commanders),
            ("motion_service", self._motion_service),
        )
        return [Check("network", name, look) for name, look in looks]

    def _listened(self) -> Heard:
        if self._heard is None:
            self._heard = listen(self._dds)
        if self._heard.tick.size < 2:
            raise LinkError(
                f"no LowState on {self._dds.interface}, domain {self._dds.id}, within {PATIENCE_S:g} s; "
                "is the robot on, the cable in, and this the right interface?"
            )
        return self._heard

    def _interface(self) -> Finding:
        return passed(f"{self._dds.interface}, domain {self._dds.id}")

    def _robot_type(self) -> Finding:
        reported, known = self._listened().state.mode_machine, self._robot.mode_machine
        return judged(
            f"mode_machine {reported}; {self._robot.name} is {', '.join(map(str, known))}",
            warn=False,
            fail=reported not in known,
            advice="give the description of this robot with --robot",
        )

    def _publishers(self) -> Finding:
        self._listened()
        count = sum(found.topic == idl.LOW_STATE_TOPIC for found in self._dds.publications())
        return judged(
            f"{count} publishers of {idl.LOW_STATE_TOPIC}",
            warn=False,
            fail=count > 1,
            advice="a second robot or a simulator speaks here; leave one",
        )

    def _commanders(self) -> Finding:
        reader = self._dds.reader(idl.LOW_CMD_TOPIC, idl.LowCmd, depth=256, ignore_own=True)
        time.sleep(COMPANY_S)
        count = len(reader.take_all())
        reader.close()
        return judged(
            f"{count} commands heard on {idl.LOW_CMD_TOPIC} in {COMPANY_S:g} s",
            warn=False,
            fail=count > 0,
            advice="somebody else commands the robot; stop that program first",
        )

    def _motion_service(self) -> Finding:
        switcher = MotionSwitcher(self._dds, SWITCHER_TIMEOUT_S)
        try:
            owner = switcher.check()
        except LinkError as error:
            return judged(
                str(error), warn=True, fail=False, advice="a robot has one; some simulators have not"
            )
        finally:
            switcher.close()
        return judged(
            f"'{owner}' has the motors" if owner else "released",
            warn=bool(owner),
            fail=False,
            advice="run with --release, on the gantry or seated: the robot goes limp",
        )


def judge_types(md5: Callable[[str], str] = idl.type_map_md5) -> Finding:
    """Whether this computer describes its messages as the robot does, whose process crashes otherwise."""
    other = [name for name, pinned in idl.PINNED_TYPE_MAPS.items() if md5(name) != pinned]
    return judged(
        f"cyclonedds {cyclonedds_version()}; "
        + (f"other type hashes of {', '.join(other)}" if other else "type hashes are the robot's"),
        warn=False,
        fail=bool(other),
        advice="do not go near a robot: install another cyclonedds (0.10.x or 11.x)",
    )


def judge_rate(heard: Heard) -> Finding:
    """Rate and jitter as control would meet them."""
    gaps_ms = np.diff(heard.time_ns) / 1e6
    seconds = (heard.time_ns[-1] - heard.time_ns[0]) / 1e9
    rate = (heard.time_ns.size - 1) / seconds if seconds > 0 else 0.0
    tail, longest = (float(value) for value in np.percentile(gaps_ms, (99, 100)))
    return judged(
        f"{rate:.0f} Hz over {heard.time_ns.size} samples, gaps p99 {tail:.1f} ms, longest {longest:.1f} ms",
        warn=tail > 2 * PERIOD_MS or longest > LATE_MS,
        fail=rate < 400 or tail > LATE_MS,
        advice="use a cable, not Wi-Fi; stop other work on this computer",
        values={"rate_hz": rate, "gap_p99_ms": tail, "gap_max_ms": longest},
    )


def judge_loss(heard: Heard) -> Finding:
    """Samples that are missing, come twice or out of order, by robot tick."""
    steps = np.diff(heard.tick)
    forward = steps[steps > 0]
    usual = int(np.median(forward)) if forward.size else 0
    missing = int(np.sum(np.maximum(forward // max(usual, 1) - 1, 0)))
    repeated, reordered = int((steps == 0).sum()), int((steps < 0).sum())
    share = missing / (missing + heard.tick.size)
    return judged(
        f"{100 * share:.2f} % lost, {repeated} repeated, {reordered} out of order",
        warn=missing > 0 or repeated > 0 or reordered > 0,
        fail=share > 0.01 or repeated + reordered > 0.01 * heard.tick.size,
        advice="look at cable and switch; nothing else should send on this network",
        values={"lost_share": share, "repeated": repeated, "reordered": reordered},
    )


def judge_checksums(heard: Heard) -> Finding:
    """Samples that were damaged on the way."""
    share = heard.bad / (heard.bad + heard.tick.size)
    return judged(
        f"{heard.bad} of {heard.bad + heard.tick.size} bad",
        warn=heard.bad > 0,
        fail=share > 0.01,
        advice="the sender speaks another version of the message, or the network damages it",
    )


def judge_tick_unit(heard: Heard) -> Finding:
    """Milliseconds of our clock that one unit of robot_tick takes."""
    span = int(heard.tick[-1] - heard.tick[0])
    if span <= 0:
        return judged("robot_tick stands still", warn=False, fail=True, advice="restart the robot")
    unit_ms = _slope_ms(heard.tick, heard.time_ns)
    return judged(
        f"1 unit of robot_tick is {unit_ms:.4f} ms",
        warn=abs(unit_ms - 1) > 0.01,
        fail=abs(unit_ms - 1) > 0.05,
        advice="ages and gaps are told in units of 1 ms; this robot counts otherwise",
        values={"tick_ms": unit_ms},
    )


def _slope_ms(tick: Sequence[int] | np.ndarray, time_ns: np.ndarray) -> float:
    x = np.asarray(tick, np.float64)
    y = (time_ns - time_ns[0]) / 1e6
    x = x - x.mean()
    return float(x @ (y - y.mean()) / (x @ x))
