"""The checks that move the robot: one probe, looked at from several sides."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onboard.configs.bench import BenchProtocol
from onboard.configs.errors import RolloutError
from onboard.configs.events import Mode
from onboard.configs.robot import RobotConfig
from onboard.logging.rollout import Rollout
from onboard.runtime.preflight.latency import judge_latency
from onboard.runtime.preflight.probe import Measured, Reading
from onboard.runtime.preflight.report import Check, Finding, Verdict, passed
from onboard.runtime.preflight.robot import (
    judge_delay,
    judge_friction,
    judge_noise,
    judge_strength,
    judge_torque,
    judge_wiring,
)


class Flown(NamedTuple):
    """How a probe's run ended.

    Attributes:
        ok: the script was played to its end and nothing stopped it.
        end: why it ended, in words.
        rollout: None where there is none.
    """

    ok: bool
    end: str
    rollout: Path | None


class GantryChecks:
    """The checks of one probe; the first of them makes the robot move.

    Args:
        protocol: see `probe_protocol`; its last segment is the chirp.
        robot: that hangs there.
        fly: plays the protocol, on the robot or in lock-step.
    """

    def __init__(self, protocol: BenchProtocol, robot: RobotConfig, fly: Callable[[], Flown]) -> None:
        self._reading = Reading(protocol, robot)
        self._protocol = protocol
        self._robot = robot
        self._fly = fly
        self._measured: Measured | None = None
        self.rollout: Path | None = None

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        chirped = next(iter(self._protocol.segments[-1].joints))
        robot = self._robot
        looks: Sequence[tuple[str, str, Callable[[Measured], Finding]]] = (
            ("robot", "wiring", lambda seen: judge_wiring(seen, robot)),
            ("robot", "velocity_noise", lambda seen: judge_noise(seen.rest, robot)),
            ("robot", "torque", lambda seen: judge_torque(seen.rest, self._reading.load(seen.rest), robot)),
            ("robot", "strength", lambda seen: judge_strength(seen, robot)),
            ("robot", "delay", lambda seen: judge_delay(seen, robot)),
            ("robot", "friction", lambda seen: judge_friction(seen, robot)),
            ("latency", "command", lambda seen: judge_latency(seen.chirp, chirped)),
        )
        return [Check("robot", "probe", self._probe), *(self._check(*look) for look in looks)]

    def _check(self, group: str, name: str, judge: Callable[[Measured], Finding]) -> Check:
        return Check(group, name, lambda: judge(self._seen()))

    def _seen(self) -> Measured:
        if self._measured is None:
            raise RolloutError("nothing was measured; see robot.probe")
        return self._measured

    def _probe(self) -> Finding:
        """Move, and read what was recorded."""
        flown = self._fly()
        if flown.rollout is None:
            return Finding(Verdict.FAIL, f"{flown.end}; no rollout", "mend this and check again")
        self.rollout = flown.rollout
        with Rollout(flown.rollout) as rollout:
            behind = "" if flown.ok else _behind(rollout)
            if (rollout.column("mode") == Mode.POLICY).any():
                self._measured = self._reading.measure(rollout)
        if flown.ok and self._measured is not None and not self._measured.missing:
            return passed(
                f"{len(self._measured.responses)} joints stepped, one at a time or two; {flown.rollout}"
            )
        return Finding(
            Verdict.FAIL,
            f"ended too early: {flown.end}{behind}; {flown.rollout}",
            "if nobody stopped it, mend what is named here and check again",
        )


def _behind(rollout: Rollout) -> str:
    """The joint that was farthest from its target when the robot was last driven."""
    driven = np.flatnonzero(np.isin(rollout.column("mode"), (Mode.RAMP, Mode.HOLD, Mode.POLICY)))
    if not driven.size:
        return ""
    row = slice(int(driven[-1]), int(driven[-1]) + 1)
    apart = (rollout.column("q", row) - rollout.column("action_sent", row))[0]
    worst = int(np.abs(apart).argmax())
    return f"; {rollout.joint_names[worst]} was {abs(apart[worst]):.2f} rad from its target"
