"""A healthy robot that tests make ill, and a gate driven tick by tick."""

import numpy as np

from onboard.configs.events import Event, Mode, Tier, bits
from onboard.configs.robot import N_JOINTS, RobotConfig, load_robot
from onboard.configs.safety import SafetyConfig, load_safety
from onboard.runtime.link import State
from onboard.safety.gate import Gate

PERIOD_S = 0.02
PERIOD_NS = 20_000_000
ROBOT: RobotConfig = load_robot("g1_29dof")
CONFIG: SafetyConfig = load_safety("g1")
KP = np.full(N_JOINTS, 80, np.float32)
KD = np.full(N_JOINTS, 2, np.float32)
STAND = np.zeros(N_JOINTS, np.float32)
STAND[[3, 9]] = 0.3
STAND[[4, 10]] = -0.2


def healthy(tick: int = 0) -> State:
    """Standing upright and still, everything cool, remote connected; `tick` control ticks after the start."""
    state = State()
    state.received = state.new = True
    state.robot_tick = 1000 + 20 * tick
    state.recv_ns = PERIOD_NS * tick
    state.age_s = 0.003
    state.mode_machine = 5
    state.q[:] = STAND
    state.accel_body[2] = 9.81
    state.temperature[:] = 35
    state.remote[:2] = 0x55, 0x51
    return state


def quaternion(roll: float = 0.0, pitch: float = 0.0, yaw: float = 0.0) -> np.ndarray:
    """Orientation w, x, y, z of intrinsic yaw, pitch, roll angles."""
    cr, sr = np.cos(roll / 2), np.sin(roll / 2)
    cp, sp = np.cos(pitch / 2), np.sin(pitch / 2)
    cy, sy = np.cos(yaw / 2), np.sin(yaw / 2)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        np.float32,
    )


class Bench:
    """One gate, one robot state that the test edits, and the clock that goes with them."""

    def __init__(self, config: SafetyConfig = CONFIG, *, settle_is_hold: bool = False) -> None:
        self.gate = Gate(config, ROBOT, PERIOD_S, settle_is_hold=settle_is_hold)
        self.state = healthy()
        self.mode = Mode.POLICY
        self.airborne = False

    def tick(self, *raised: Event, new: bool = True) -> Tier:
        """One control tick; without `new` the link shows the old sample, 20 ms older."""
        state = self.state
        state.new = new
        if new:
            state.robot_tick = (state.robot_tick + 20) & 0xFFFFFFFF
            state.age_s = 0.003
        else:
            state.age_s += PERIOD_S
        state.recv_ns += PERIOD_NS
        return self.gate.check_state(state, state.recv_ns, bits(*raised), self.mode, self.airborne)

    def fires(self, event: Event) -> bool:
        return bool(self.gate.events >> event & 1)
