"""Faults injected into a loop in lock-step, on simulated time."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onboard.cli.run_options import run_config
from onboard.configs.events import Tier
from onboard.configs.faults import Fault
from onboard.configs.robot import N_JOINTS
from onboard.runtime.assembly import Plan, make_plan
from onboard.runtime.gateway_core import GatewayState
from onboard.sim.console import Action, parse
from onboard.sim.faults import Faults
from tests.runtime.flight import POLICY, Flight, plan

TICK_MS = 20.0
SHORTEST_LOOK_MS = 500.0
"""How long faults without a reaction are watched."""
LOOK_ON_MS = 200.0
"""How long after the time limit: nothing worse may follow at once."""
AFTERWARDS = 25
"""Ticks without the fault, in which a damped robot must stay damped."""


class Observed(NamedTuple):
    """What followed a fault.

    Attributes:
        tier: the highest reached.
        reaction_ms: from the fault to the expected tier, None where it was not reached, or is `none`.
        log: events and last words.
        exit_code: None in lock-step, where no process ends.
    """

    tier: str
    reaction_ms: float | None
    log: str
    exit_code: int | None = None


RESIDUAL = """residual:
  {schema: 1, name: ankles, kind: linear, mode: add, unit: rad, bound_rad: 0.05, fade_s: 0.1,
   drop_on: {bound_saturated_s: 0.5}, joints: [left_ankle_pitch_joint, right_ankle_pitch_joint],
   coefficients: {left_ankle_pitch_joint: {a: 0.02}, right_ankle_pitch_joint: {a: 0.02}}}
"""
"""A residual that changes little."""


def spoil(flight: Flight, ticks: int, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Let the policy's output be changed for so many ticks."""
    infer, left = flight.policy.infer, [ticks]

    def spoiled() -> np.ndarray:
        base: np.ndarray = infer()
        left[0] -= 1
        return change(base) if left[0] >= 0 else base

    flight.policy.infer = spoiled  # type: ignore[method-assign]  # the fault itself


def filled(value: float) -> Callable[[np.ndarray], np.ndarray]:
    """A change that sets one joint's action."""

    def change(base: np.ndarray) -> np.ndarray:
        base[1] = value
        return base

    return change


def raising(base: np.ndarray) -> np.ndarray:
    """A change that fails."""
    raise RuntimeError("the graph failed")


def keep_stalling(flight: Flight) -> None:
    """Every other tick misses one period."""
    wait, count = flight.clock.wait, [0]

    def slow() -> int:
        count[0] += 1
        if count[0] % 2:
            flight.clock.stall(1)
        return wait()

    flight.clock.wait = slow  # type: ignore[method-assign]  # the fault itself


def orphan(flight: Flight) -> None:
    """The parent's heartbeat stops."""
    flight.link.parent_alive = False


def speak_too(flight: Flight) -> None:
    """Somebody else's command is heard."""
    flight.link.foreign += 1


def spoil_residual(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Flight], None]:
    """An injection that changes the residual's correction."""

    def inject(flight: Flight) -> None:
        delta = flight.loop.pilot.slot._delta  # type: ignore[attr-defined]  # the fault itself
        correction = delta.correction
        delta.correction = lambda: change(correction())

    return inject


def residual_plan(folder: Path) -> Plan:
    """Holosoma's walker with a small linear residual at its ankles."""
    plan()  # skips where the policy is not installed
    path = folder / "residual.yaml"
    path.write_text(RESIDUAL, encoding="utf-8")
    return make_plan(run_config(policy=POLICY, gantry=True, residual=str(path), arm="keep"))


INJECT: dict[str, Callable[[Flight], None]] = {
    "policy_nan_once": lambda flight: spoil(flight, 1, filled(float("nan"))),
    "policy_nan": lambda flight: spoil(flight, 1000, filled(float("nan"))),
    "policy_huge": lambda flight: spoil(flight, 1000, filled(1e6)),
    "policy_shape": lambda flight: spoil(flight, 1000, lambda base: base[: N_JOINTS - 1].copy()),
    "policy_raises": lambda flight: spoil(flight, 1000, raising),
    "overrun_once": lambda flight: flight.clock.stall(1),
    "overruns": keep_stalling,
    "overrun_long": lambda flight: flight.clock.stall(3),
    "parent_silent": orphan,
    "second_publisher": speak_too,
    "residual_nan": spoil_residual(filled(float("nan"))),
    "residual_huge": spoil_residual(filled(1e6)),
    "residual_shape": spoil_residual(lambda found: found[:-1].copy()),
    "residual_raises": spoil_residual(raising),
}
"""Injections of the faults that no command of the simulator makes."""


def stays_damped(flight: Flight) -> bool:
    """Whether nothing but damping follows once the robot and its messages are as good as new."""
    flight.robot.faults = Faults()
    flight.robot.motor_fault[:] = 0
    flight.robot.thermal.forced[:] = np.nan
    damped_ticks = len(flight.states)
    flight.fly(AFTERWARDS)
    return all(state is not GatewayState.PASSING for state in flight.states[damped_ticks:])


def observe(name: str, fault: Fault, folder: Path) -> Observed:
    """Walk, inject, look on, take the fault away again."""
    flight = Flight(residual_plan(folder) if name.startswith("residual") else None).walk()
    return look_on(flight, fault, parse(fault.sim) if fault.sim else lambda _: INJECT[name](flight))


def near_miss(fault: Fault) -> Observed:
    """Walk, inject what is just below the limit, look on."""
    return look_on(Flight().walk(), fault, parse(fault.near))


def look_on(flight: Flight, fault: Fault, inject: Action) -> Observed:
    """Inject into a robot that walks; what followed."""
    if fault.tier == "settle":
        # The run is one on the gantry, where settling may end in hold while a leg swings: it must be there.
        flight.robot.physics.gantry.attach(float(flight.robot.physics.truth().position_m[2]))
    flight.rows.clear()
    flight.states.clear()
    begin_ns = flight.link.now_ns
    inject(flight.robot)
    look_ms = max(SHORTEST_LOOK_MS, (fault.limit_ms or 0.0) + LOOK_ON_MS)
    highest, reaction_ms, expected = Tier.NONE, None, Tier[fault.tier.upper()]
    while (flight.link.now_ns - begin_ns) / 1e6 < look_ms:
        flight.fly(1)
        tier = Tier(int(flight.rows[-1]["tier"]))
        if flight.link.core.state is GatewayState.DAMPING:
            tier = max(tier, Tier.DAMP)
        elif tier is Tier.HOLD:
            tier = Tier.SETTLE  # no event asks for hold: it is how settling ends
        highest = max(highest, tier)
        if reaction_ms is None and expected is not Tier.NONE and tier >= expected:
            reaction_ms = (flight.link.now_ns - begin_ns) / 1e6
    if highest is Tier.DAMP and not stays_damped(flight):
        return Observed("damp, then passing", reaction_ms, "the command was not damping for good")
    log = [*sorted(flight.events), f"gateway: {flight.link.core.reason.name.lower()}"]
    return Observed(highest.name.lower(), reaction_ms, "; ".join(log))
