"""What the gateway decides, as a pure function: `step(core, inputs, config) -> core`.

The gateway is the only publisher of rt/lowcmd. It passes control's newest target on and knows by
itself when to stop doing so. Nothing here reads a clock, a socket or shared memory, so that every
case is tested in microseconds, and the in-process simulator applies the very same checks.

```
IDLE ──first command──▶ PASSING ──any reason below──▶ DAMPING ──second combination──▶ LIMP
                           ▲                             │  │                           │
                           └──start edge, new session────┴──┼───────────────────────────┘
                                                            ├──stop handshake, 1 s──▶ DONE
                                                            ├──parent dead, 5 s─────▶ DONE
                                                            └──another publisher, 1 s─▶ SILENT
```

Damping is latched: after it, a target of the old session is ignored for ever, whatever signal
follows. Damping needs no valid state, no policy and no configuration but the damping gains.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from onboard.configs.errors import ConfigError
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.runtime.link import COMMAND, Float32Array, Kind
from onboard.runtime.remote import DAMP, LIMP, START

MS = 1_000_000


class GatewayState(IntEnum):
    """What the gateway does now."""

    IDLE = 0
    PASSING = 1
    DAMPING = 2
    LIMP = 3
    SILENT = 4
    DONE = 5


class Reason(IntEnum):
    """Why the gateway stopped passing targets on."""

    NONE = 0
    CONTROL = 1
    STOPPED = 2
    EXPIRED = 3
    CORRUPT = 4
    NOT_FINITE_OR_RANGE = 5
    TILT = 6
    EMERGENCY_STOP = 7
    PARENT_LOST = 8
    SECOND_PUBLISHER = 9


class GatewayConfig(NamedTuple):
    """Limits of the gateway; times in ns.

    `confirm_ns`: an expired target damps only when it is still expired in a look so much later. When
    the whole machine was held up, the gateway may wake first; control gets its turn before the verdict.
    """

    low: Float32Array  # (87,) lowest q, kp, kd that are passed on
    high: Float32Array  # (87,) highest
    damping_kd: Float32Array  # (29,) N·m·s/rad
    expiry_ns: int
    tilt_limit_rad: float
    repeat_ns: int = 5 * MS
    parent_lost_ns: int = 200 * MS
    stop_damping_ns: int = 1000 * MS
    orphan_damping_ns: int = 5000 * MS
    confirm_ns: int = 4 * MS
    conflict_damping_ns: int = 1000 * MS


class Inputs(NamedTuple):
    """All that one step looks at."""

    now_ns: int
    command: np.ndarray | None  # newest whole `COMMAND`, None before the first
    corrupt: bool  # the slot could not be read whole
    keys: int  # the remote's buttons, 0 without a valid state
    tilt_rad: float  # 0 without a valid state
    starts: int  # edge counters of the operator port
    damps: int
    limps: int
    parent_ns: int  # the parent's heartbeat
    foreign: int  # samples of other publishers so far
    control_done: bool = False  # the parent knows that control has ended


class Core(NamedTuple):
    """The gateway's memory from step to step."""

    state: GatewayState = GatewayState.IDLE
    reason: Reason = Reason.NONE
    since_ns: int = 0  # when this state began
    session: int = 0  # of the newest command accepted
    number: int = 0
    armed: bool = False  # a start edge was seen after the latch
    stopping: bool = False  # control has asked for the clean end
    conflict: bool = False  # another publisher was heard
    tilted: int = 0  # consecutive steps beyond the tilt limit
    expired_ns: int = 0  # when the target in force was first seen expired, 0 while it is fresh
    keys: int = 0
    starts: int = 0
    damps: int = 0
    limps: int = 0
    foreign: int = 0


def make_config(
    robot: RobotConfig,
    damping_kd: Float32Array,
    *,
    expiry_ms: float,
    tilt_limit_rad: float = 1.2,
    range_margin_rad: float = 1e-3,
    kp_max: float = 500.0,
    kd_max: float = 40.0,
) -> GatewayConfig:
    """Hard limits for one robot.

    Args:
        robot: its physical joint ranges.
        damping_kd: (29,) gains of a damping frame.
        expiry_ms: age at which a target is no longer passed on; 2.5 periods with SCHED_FIFO.
        tilt_limit_rad: angle between the pelvis' z axis and up; infinite lifts it for get-up policies.
        range_margin_rad: how far a target may lie outside the physical range.
        kp_max: N·m/rad.
        kd_max: N·m·s/rad.

    Raises:
        ConfigError: the damping gains lie outside [0, kd_max].
    """
    if not (np.all(damping_kd >= 0) and np.all(damping_kd <= kd_max)):
        raise ConfigError(f"damping gains {damping_kd} lie outside 0 to {kd_max} N·m·s/rad")
    zeros = np.zeros(N_JOINTS, np.float32)
    margin = np.float32(range_margin_rad)
    # A slot that the variant lacks is never enabled; its target must still be a number.
    low = np.where(robot.valid, robot.lower - margin, np.float32(-10))
    high = np.where(robot.valid, robot.upper + margin, np.float32(10))
    return GatewayConfig(
        low=np.concatenate([low, zeros, zeros]).astype(np.float32),
        high=np.concatenate([high, zeros + np.float32(kp_max), zeros + np.float32(kd_max)]).astype(
            np.float32
        ),
        damping_kd=damping_kd.astype(np.float32),
        expiry_ns=int(expiry_ms * MS),
        tilt_limit_rad=tilt_limit_rad,
    )


_TARGETS = COMMAND.itemsize - 4 * 3 * N_JOINTS  # q, kp and kd end the record


def within_limits(command: np.ndarray, config: GatewayConfig) -> bool:
    """True when every q, kp and kd is finite and inside the hard limits."""
    values = np.ndarray((3 * N_JOINTS,), np.float32, command, _TARGETS)
    return bool(((values >= config.low) & (values <= config.high)).all())  # false for NaN


def step(core: Core, inputs: Inputs, config: GatewayConfig) -> Core:
    """One decision; called at every new target and at every repeat."""
    started = bool(inputs.keys & START and not core.keys & START) or inputs.starts != core.starts
    damp_asked = inputs.keys & DAMP == DAMP or inputs.damps != core.damps
    limp_asked = inputs.keys & LIMP == LIMP or inputs.limps != core.limps
    core = core._replace(
        keys=inputs.keys,
        starts=inputs.starts,
        damps=inputs.damps,
        limps=inputs.limps,
        foreign=inputs.foreign,
        conflict=core.conflict or inputs.foreign != core.foreign,
        tilted=core.tilted + 1 if inputs.tilt_rad > config.tilt_limit_rad else 0,
    )
    if core.state is GatewayState.DONE:
        return core
    if core.state is GatewayState.SILENT:
        over = inputs.control_done or inputs.now_ns - inputs.parent_ns > config.parent_lost_ns
        return core._replace(state=GatewayState.DONE, since_ns=inputs.now_ns) if over else core
    if core.state in (GatewayState.IDLE, GatewayState.PASSING):
        return _passing(core, inputs, config, damp_asked)
    return _latched(core, inputs, config, started=started, damp_asked=damp_asked, limp_asked=limp_asked)


def _passing(core: Core, inputs: Inputs, config: GatewayConfig, damp_asked: bool) -> Core:
    command = inputs.command
    if core.state is GatewayState.IDLE and (command is None or core.conflict):
        # Nothing was ever published: stay quiet, above all beside another publisher.
        return _silent(core, inputs) if core.conflict else core
    reason = _outer_reason(core, inputs, config, damp_asked)
    if reason is Reason.NONE:
        reason = _command_reason(core, inputs, config)
    if reason is not Reason.EXPIRED:
        core = core._replace(expired_ns=0)
    elif not core.expired_ns or inputs.now_ns - core.expired_ns < config.confirm_ns:
        return core._replace(expired_ns=core.expired_ns or inputs.now_ns)
    if reason is Reason.NONE and command is not None:
        since = inputs.now_ns if core.state is GatewayState.IDLE else core.since_ns
        return _accept(core, command, since)
    return core._replace(
        state=GatewayState.DAMPING,
        reason=reason,
        since_ns=inputs.now_ns,
        session=core.session if command is None else max(core.session, int(command["session"])),
        armed=False,
        stopping=reason is Reason.STOPPED,
    )


def _accept(core: Core, command: np.ndarray, since_ns: int) -> Core:
    return core._replace(
        state=GatewayState.PASSING,
        reason=Reason.NONE,
        since_ns=since_ns,
        session=int(command["session"]),
        number=int(command["number"]),
        armed=False,
    )


def _silent(core: Core, inputs: Inputs) -> Core:
    return core._replace(
        state=GatewayState.SILENT, reason=Reason.SECOND_PUBLISHER, since_ns=inputs.now_ns, armed=False
    )


def _outer_reason(core: Core, inputs: Inputs, config: GatewayConfig, damp_asked: bool) -> Reason:
    """Reasons to damp that need no command."""
    if damp_asked:
        return Reason.EMERGENCY_STOP
    if core.conflict:
        return Reason.SECOND_PUBLISHER
    if inputs.now_ns - inputs.parent_ns > config.parent_lost_ns:
        return Reason.PARENT_LOST
    if core.tilted >= 2 and core.state is GatewayState.PASSING:
        return Reason.TILT
    return Reason.NONE


def _command_reason(core: Core, inputs: Inputs, config: GatewayConfig) -> Reason:
    """Reasons to damp that lie in the newest command.

    The limits come before the age: what has expired is still repeated until that is confirmed. They
    are looked at every time, whatever number the command has.
    """
    command = inputs.command
    if inputs.corrupt or command is None:
        return Reason.CORRUPT
    age_ns = inputs.now_ns - int(command["made_ns"])
    kind = int(command["kind"])
    if int(command["session"]) < core.session or age_ns < -config.expiry_ns:
        return Reason.CORRUPT
    if kind == Kind.STOP:
        return Reason.STOPPED
    if kind == Kind.DAMP:
        return Reason.CONTROL
    if kind != Kind.PASS:
        return Reason.CORRUPT
    if not within_limits(command, config):
        return Reason.NOT_FINITE_OR_RANGE
    return Reason.EXPIRED if age_ns > config.expiry_ns else Reason.NONE


def _latched(
    core: Core, inputs: Inputs, config: GatewayConfig, *, started: bool, damp_asked: bool, limp_asked: bool
) -> Core:
    """Damping or limp: what may follow."""
    held_ns = inputs.now_ns - core.since_ns
    if core.conflict:
        return _silent(core, inputs) if held_ns > config.conflict_damping_ns else core
    command = inputs.command
    stop = not inputs.corrupt and command is not None and int(command["kind"]) == Kind.STOP
    if (stop or inputs.control_done) and not core.stopping:
        core = core._replace(stopping=True)
        if not stop or core.state is GatewayState.LIMP:
            # Control died or the robot is limp: the second of damping that ends every run begins now.
            return core._replace(state=GatewayState.DAMPING, since_ns=inputs.now_ns, armed=False)
    orphan = inputs.now_ns - inputs.parent_ns > config.parent_lost_ns
    enough_ns = config.orphan_damping_ns if orphan else config.stop_damping_ns
    if (core.stopping or orphan) and held_ns >= enough_ns:
        return core._replace(state=GatewayState.DONE, since_ns=inputs.now_ns)
    if damp_asked:
        core = core._replace(armed=False)
    if limp_asked and core.state is GatewayState.DAMPING:
        return core._replace(state=GatewayState.LIMP, since_ns=inputs.now_ns, armed=False)
    if started and not damp_asked and not core.stopping and not orphan:
        core = core._replace(armed=True)
    if not core.armed or inputs.corrupt or command is None or int(command["session"]) <= core.session:
        return core
    if _outer_reason(core, inputs, config, damp_asked) is not Reason.NONE:
        return core
    if _command_reason(core, inputs, config) is not Reason.NONE:
        return core
    return _accept(core, command, inputs.now_ns)
