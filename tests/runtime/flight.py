"""A control loop on the in-process simulator, for tests: ramp, policy, faults, and every row kept."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from onboard.cli.run_options import run_config
from onboard.configs.errors import OnboardError
from onboard.configs.events import Event, Mode, names
from onboard.configs.sim import load_sim
from onboard.policies.estimators.provider import Source
from onboard.runtime.assembly import Plan, build_loop, make_plan
from onboard.runtime.gateway_core import GatewayState
from onboard.runtime.link import State
from onboard.runtime.operator_input import LocalPort
from onboard.runtime.watch import NoWatch
from onboard.sim.robot import SimRobot
from onboard.sim.sim_link import LockStepClock, SimLink

Tamper = Callable[[State], None]

POLICY = "holosoma_loco_ppo"


@lru_cache(maxsize=4)
def plan(*safety: str) -> Plan:
    """A run of holosoma's walker; skips the test where the wheel is not installed."""
    try:
        return make_plan(run_config(policy=POLICY, gantry=True, safety_overrides=safety))
    except OnboardError as error:
        pytest.skip(f"{POLICY} is not installed: {error}")


class Flight:
    """One loop in lock-step.

    Args:
        the_plan: holosoma's walker by default.
        hanging: held by the gantry at first.
        sources: makes what provides contact and base velocity, from the link; nothing by default.

    Attributes:
        rows: a copy of every tick's record.
        states: the gateway's state after every tick.
    """

    def __init__(
        self,
        the_plan: Plan | None = None,
        *,
        hanging: bool = True,
        sources: Callable[[SimLink], list[Source]] = lambda link: [],
    ) -> None:
        self.plan = the_plan or plan()
        policies = self.plan.policies()
        self.policy = policy = policies[0]
        self.robot = SimRobot(load_sim("g1", ["builtin.active=false"]))
        self.robot.reset(policy.start_pose)
        if hanging:
            self.robot.physics.gantry.attach(float(self.robot.physics.truth().position_m[2]))
        self.tamper: Tamper | None = None
        self.link = SimLink(self.robot, self.plan.gateway(50.0), tamper=self._tamper)
        self.port = LocalPort(self.link.operator)
        self.clock = LockStepClock(self.link)
        self.rows: list[np.ndarray] = []
        self.states: list[GatewayState] = []
        self.loop = build_loop(
            self.plan,
            policies,
            link=self.link,
            clock=self.clock,
            port=self.port,
            watch=NoWatch(),
            sink=self,
            sources=sources(self.link),
        )
        self.link.open()

    def push(self, record: np.ndarray) -> int:
        """Keep a row (the loop's sink)."""
        self.rows.append(record.copy())
        return len(self.rows)

    @property
    def mode(self) -> Mode:
        """Of the last tick."""
        return Mode(int(self.rows[-1]["mode"]))

    @property
    def events(self) -> set[str]:
        """Names of all events so far."""
        return set(names(self.loop.recorder.events_seen))

    def fly(self, ticks: int) -> None:
        """Let ticks pass."""
        for _ in range(ticks):
            self.loop.tick(self.clock.wait())
            self.states.append(self.link.core.state)

    def until(self, mode: Mode, most: int = 400) -> int:
        """Fly until a mode is reached; how many ticks that took."""
        for count in range(1, most + 1):
            self.fly(1)
            if self.mode is mode:
                return count
        raise AssertionError(
            f"mode {mode.name} was not reached in {most} ticks, the mode is {self.mode.name}"
        )

    def walk(self, vx: float = 0.5, ticks: int = 50) -> "Flight":
        """Ramp, start the policy, let the gantry go and walk."""
        self.fly(1)
        self.port.press("start")
        self.until(Mode.HOLD)
        self.port.press("go")
        self.fly(1)
        assert self.mode is Mode.POLICY
        self.robot.physics.gantry.release()
        self.port.set_velocity((vx, 0.0, 0.0))
        self.fly(ticks)
        assert self.mode is Mode.POLICY
        assert not self.events
        return self

    def column(self, name: str, last: int | None = None) -> np.ndarray:
        """One column of the rows kept."""
        rows = self.rows if last is None else self.rows[-last:]
        return np.array([row[name] for row in rows])

    def has(self, event: Event) -> bool:
        """Whether an event was active in the last tick."""
        return bool(int(self.rows[-1]["safety_events"]) >> event & 1)

    def _tamper(self, state: State) -> None:
        if self.tamper is not None:
            self.tamper(state)


def setting(**values: Any) -> Tamper:
    """A tamper that overwrites fields of the state."""

    def tamper(state: State) -> None:
        for name, value in values.items():
            current = getattr(state, name)
            if isinstance(current, np.ndarray):
                current[...] = value
            else:
                setattr(state, name, value)

    return tamper
