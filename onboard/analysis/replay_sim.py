"""What a run becomes in the nominal simulator, from a logged state on.

Either the sent targets are sent again (open loop), or the policy is in charge again (closed loop).

The start is what the log knows: joints, orientation and angular velocity, base velocity where it was
estimated; the height is found by putting the feet on the floor, or the gantry holds the robot. How fast
the two part is the size of the gap between simulator and robot, and near a fall of chaos.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import RolloutError
from onboard.configs.events import Mode
from onboard.configs.sim import load_sim
from onboard.logging.export.described import Described
from onboard.logging.rollout import Rollout
from onboard.policies.command import MotionCommand
from onboard.policies.policy import Policy
from onboard.runtime.link import State
from onboard.sim.physics import Physics

Float64Array = NDArray[np.float64]
Watch = Callable[[Physics], object]

DRIFTED_RAD = 0.1
"""RMS over all joints from which on the two runs are told apart."""
FALLEN_RAD = 1.2
MARKS_S = (0.1, 0.5, 1.0, 2.0, 5.0)
GANTRY = ("gantry.attached=true", "gantry.height_m=1.2")

_COLUMNS = (
    "time_s",
    "q",
    "dq",
    "quat_wxyz",
    "gyro_body",
    "base_velocity",
    "action_sent",
    "command",
    "step",
    "mode",
    "episode",
    "contact",
)


@dataclass(frozen=True)
class Stretch:
    """Part of a rollout to simulate: its first row, columns, gains (n, 29), and whether the robot hangs."""

    first: int
    columns: dict[str, np.ndarray]
    kp: NDArray[np.float32]
    kd: NDArray[np.float32]
    fade_rows: int
    held: bool

    @property
    def simulator(self) -> tuple[str, ...]:
        """Overrides of the nominal simulator's configuration."""
        return GANTRY if self.held else ()


@dataclass(frozen=True)
class Drift:
    """A simulated run beside the logged one; n rows, the first is the common start.

    Attributes:
        time_s: (n,) from the start.
        joint_rad: (n, 29) simulated less logged.
        tilt_rad: (n,) angle between the two pelvises' vertical axes.
        fallen_s: when the simulated robot lay down; None where it did not.
    """

    time_s: Float64Array
    joint_rad: Float64Array
    tilt_rad: Float64Array
    fallen_s: float | None

    @property
    def rms_rad(self) -> Float64Array:
        """(n,) over all joints."""
        rms: Float64Array = np.sqrt(np.mean(self.joint_rad**2, axis=1))
        return rms

    @property
    def apart_s(self) -> float | None:
        """When the joints had drifted apart by `DRIFTED_RAD`; None where they did not."""
        beyond = np.flatnonzero(self.rms_rad > DRIFTED_RAD)
        return float(self.time_s[beyond[0]]) if len(beyond) else None

    def at_marks(self) -> dict[str, float]:
        """RMS over all joints, rad, by seconds after the start, as far as the run goes."""
        rows = {mark: int(np.searchsorted(self.time_s, mark - 1e-6)) for mark in MARKS_S}
        return {f"{mark:g}": float(self.rms_rad[row]) for mark, row in rows.items() if row < len(self.time_s)}


def stretch(rollout: Rollout, start_s: float, seconds: float, *, held: bool) -> Stretch:
    """The rows from `start_s` after the policy's first row on, at most `seconds` of one episode.

    Raises:
        RolloutError: there is no policy row there.
    """
    mode, time_s = rollout.column("mode"), rollout.column("time_s")
    rows = np.flatnonzero(mode == Mode.POLICY)
    rows = rows[time_s[rows] >= time_s[rows[0]] + start_s - 1e-6] if len(rows) else rows
    if len(rows) < 2:
        raise RolloutError(f"{rollout.path}: no policy runs {start_s:g} s after the first one's start")
    episode = rollout.column("episode")
    inside = (mode == Mode.POLICY) & (episode == episode[rows[0]]) & (time_s <= time_s[rows[0]] + seconds)
    last = int(np.flatnonzero(inside)[-1])
    block = slice(int(rows[0]), last + 1)
    described = Described(rollout)
    kp, kd = (_filled(gains) for gains in described.gains(block))
    if not np.isfinite(kp).all():
        raise RolloutError(f"{rollout.path}: its contract's text, and so its gains, can't be read")
    columns = {name: rollout.column(name, block) for name in _COLUMNS}
    return Stretch(block.start, columns, kp, kd, described.fade_rows, held)


def open_loop(part: Stretch, watch: Watch = lambda physics: None) -> Drift:
    """The sent targets once more.

    Args:
        part: what was logged.
        watch: sees the simulated robot after every row.
    """
    return _run(part, lambda physics, row: part.columns["action_sent"][row], watch)


def closed_loop(part: Stretch, policy: Policy, watch: Watch = lambda physics: None) -> Drift:
    """The policy once more, on the simulator's states, with the logged commands.

    While it fades in, what was sent is sent again.

    Args:
        part: what was logged.
        policy: as it was before the stretch's first row, see `replay.bring_to`.
        watch: sees the simulated robot after every row.
    """
    state, command = State(), MotionCommand()
    columns = part.columns

    def target(physics: Physics, row: int) -> np.ndarray:
        _sense(physics, state)
        command.values[:] = columns["command"][row]
        if columns["step"][row] == 0:
            policy.reset(state)
        policy.observe(state, command, int(columns["step"][row]))
        base = policy.infer()
        wanted = policy.target(base)
        policy.commit(base)
        sent: np.ndarray = columns["action_sent"][row] if columns["step"][row] < part.fade_rows else wanted
        return sent

    return _run(part, target, watch)


def _run(part: Stretch, target: Callable[[Physics, int], np.ndarray], watch: Watch) -> Drift:
    columns = part.columns
    physics = Physics(load_sim("g1", ["builtin.active=false", *part.simulator]))
    set_start(physics, columns, 0)
    time_s = columns["time_s"] - columns["time_s"][0]
    grid = np.rint(time_s / physics.config.timestep_s).astype(int)
    found = np.empty((len(time_s), columns["q"].shape[1]))
    tilt_rad = np.zeros(len(time_s))
    found[0] = columns["q"][0]
    fallen_s = None
    for row in range(len(time_s) - 1):
        physics.motors.set(target(physics, row), part.kp[row], part.kd[row])
        physics.step(max(1, int(grid[row + 1] - grid[row])))
        watch(physics)
        found[row + 1] = physics.sensors.joints[0]
        tilt_rad[row + 1] = _angle(physics.sensors.imu[0][:4], columns["quat_wxyz"][row + 1])
        if fallen_s is None and physics.tilt_rad() > FALLEN_RAD:
            fallen_s = float(time_s[row + 1])
    return Drift(time_s, found - columns["q"], tilt_rad, fallen_s)


def set_start(physics: Physics, columns: dict[str, np.ndarray], row: int) -> None:
    """Put the simulated robot where a row of the log says, as far as the log knows, and at rest elsewhere."""
    quat = columns["quat_wxyz"][row].astype(np.float64)
    physics.reset(columns["q"][row], columns["dq"][row], quat, columns["gyro_body"][row])
    velocity = columns["base_velocity"][row].astype(np.float64)
    if np.isfinite(velocity).all():
        mujoco.mju_rotVecQuat(physics.data.qvel[:3], velocity, quat / np.linalg.norm(quat))
        mujoco.mj_forward(physics.model.mj, physics.data)


def _sense(physics: Physics, state: State) -> None:
    state.q[:], state.dq[:], state.tau_est[:] = physics.sensors.joints
    pelvis, torso = physics.sensors.imu
    state.quat_wxyz[:], state.gyro_body[:], state.accel_body[:] = pelvis[:4], pelvis[4:7], pelvis[7:]
    state.torso_quat_wxyz[:], state.torso_gyro[:] = torso[:4], torso[4:7]


def _filled(gains: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows whose gains are not known, while a policy fades in, take those that follow."""
    known = np.flatnonzero(np.isfinite(gains).all(axis=1))
    if not len(known):
        return gains
    take = known[np.minimum(np.searchsorted(known, np.arange(len(gains))), len(known) - 1)]
    return gains[take]


def _angle(one: np.ndarray, other: np.ndarray) -> float:
    """Between the vertical axes of two orientations, rad."""
    up = [_up(quat) for quat in (one, other)]
    return float(np.arccos(np.clip(up[0] @ up[1], -1.0, 1.0)))


def _up(quat: np.ndarray) -> Float64Array:
    """(3,) the world's vertical in the body's frame."""
    w, x, y, z = np.asarray(quat, np.float64) / np.linalg.norm(quat)
    return np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
