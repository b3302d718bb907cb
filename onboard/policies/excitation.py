"""A bench protocol in the place of a policy: the same loop, gate, gateway and record.

Its contract is a policy's without a network: the raw action is the offset from the pose, rad, so that
targets, gains and joints of a bench rollout read like any other's.
"""

from pathlib import Path

import numpy as np

from onboard.configs.bench import BenchProtocol, spread
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.policies.action import ActionMap, Float32Array
from onboard.policies.bench_signals import plan_course
from onboard.policies.bundle import PolicyBundle
from onboard.policies.command import MotionCommand
from onboard.policies.contract import Action, Contract, Graph, Motion
from onboard.policies.inputs import Input
from onboard.runtime.link import State

GRAPH = "excitation"


def bench_bundle(protocol: BenchProtocol, robot: RobotConfig, rate_hz: float) -> PolicyBundle:
    """The bundle that stands for a protocol.

    Raises:
        ConfigError: the protocol does not fit the robot.
    """
    course = plan_course(protocol, robot, 1.0 / rate_hz)
    slots = np.flatnonzero(robot.valid)
    kp = spread(protocol.kp, robot, robot.stand_kp, f"bench {protocol.name}: kp")
    kd = spread(protocol.kd, robot, robot.stand_kd, f"bench {protocol.name}: kd")
    pose = tuple(course.pose[slots].tolist())
    names = tuple(robot.joint_names[slot] for slot in slots)
    graph = Graph(
        model=f"bench:{protocol.name}",
        inputs={"tick": Input(carries="motion_index")},
        action=Action("offset_rad", tuple(robot.joint_names[slot] for slot in course.slots), "default", 1.0),
    )
    contract = Contract(
        schema=1,
        name=f"bench_{protocol.name}",
        rate_hz=rate_hz,
        imu="pelvis",
        joints=names,
        kp=tuple(kp[slots].tolist()),
        kd=tuple(kd[slots].tolist()),
        default_rad=pose,
        start_rad=pose,
        hold_rad=pose,
        observed_joints=names,
        graphs={GRAPH: graph},
        motion=Motion(source="clock", length_s=len(course.offsets) / rate_hz),
        about=protocol.about,
    )
    return PolicyBundle(
        name=contract.name,
        robot=robot,
        contract=contract,
        models={},
        motion_frames=None,
        folder=Path(),
        format="bench",
        preset=None,
        overrides=(),
        defaults=(),
    )


class Excitation:
    """Plays a protocol; see `onboard.policies.actor.Actor`.

    Attributes:
        obs: (1,) the row that is played.
        raw: (n,) rad, offsets of the joints that move.
        segment: index of the segment in this tick, -1 in a rest.
    """

    has_motion = True
    hands_over = False
    reference_q = None

    def __init__(self, bundle: PolicyBundle, protocol: BenchProtocol, robot: RobotConfig) -> None:
        contract = bundle.contract
        self.bundle = bundle
        self._course = plan_course(protocol, robot, 1.0 / contract.rate_hz)
        self.start_pose: Float32Array = self._course.pose.astype(np.float32)
        self.hold = self.start_pose.copy()
        self.kp, self.kd = np.zeros((2, N_JOINTS), np.float32)
        slots = [robot.slot(joint) for joint in contract.joints]
        self.kp[slots], self.kd[slots] = contract.kp, contract.kd
        self._map = ActionMap(contract, robot, self.hold, self.start_pose)
        self.obs: Float32Array = np.zeros(1, np.float32)
        self.raw: Float32Array = np.zeros(self._map.width, np.float32)
        self.phase: Float32Array = np.zeros(2, np.float32)
        self.extras: dict[str, Float32Array] = {}
        self.provided: dict[str, Float32Array] = {}
        self._target = self.start_pose.copy()
        self._row = 0

    @property
    def motion_index(self) -> int:
        """Row of the course."""
        return self._row

    @property
    def motion_done(self) -> bool:
        """The last row was played."""
        return self._row >= len(self._course.offsets) - 1

    @property
    def segment(self) -> int:
        """Index of the segment in this tick, -1 in a rest."""
        return int(self._course.segment[self._row])

    def neutral_command(self) -> MotionCommand:
        """Nobody commands an excitation."""
        return MotionCommand()

    def reset(self, state: State) -> None:
        """From the first row on."""
        self._row = 0

    def observe(self, state: State, command: MotionCommand, step: int) -> Float32Array:
        """Look the row up; skipped periods skip rows, the last one stays."""
        self._row = min(max(step, 0), len(self._course.offsets) - 1)
        self.obs[0] = self._row
        return self.obs

    def infer(self) -> Float32Array:
        """(n,) rad, the row."""
        self.raw[:] = self._course.offsets[self._row]
        return self.raw

    def target(self, base: Float32Array) -> Float32Array:
        """(29,) rad."""
        return self._map.apply(base, self._target)

    def commit(self, base: Float32Array) -> None:
        """There is nothing to remember."""

    def warm(self) -> None:
        """Look the row up once."""
        self.infer()
