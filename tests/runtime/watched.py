"""A robot that is watched from outside, in lock-step, and a policy that reads what is seen."""

import numpy as np

from onboard.cli.run_options import run_config
from onboard.policies.estimators.provider import EXTERNAL, ExternalSource
from onboard.runtime.assembly import Plan, make_plan
from onboard.runtime.ports import RECORDER
from onboard.runtime.shm import Ring
from onboard.sim.sim_link import SimLink
from tests.shared import shared_folder


def playground(provider: str) -> Plan:
    """The policy that reads its own base velocity."""
    path = shared_folder("policies", "mujoco_playground_g1", "g1_policy.onnx")
    return make_plan(
        run_config(policy=str(path), preset="mujoco_playground_g1", provider=provider, gantry=True)
    )


class Watched:
    """An external pose as the recorder publishes it: the simulator's truth, until the cameras are covered."""

    name = EXTERNAL

    def __init__(self, link: SimLink) -> None:
        self._link = link
        self._row = np.zeros((), RECORDER)
        self._ring = Ring(memoryview(bytearray(Ring.size(RECORDER, 4))), RECORDER, 4)
        self._source = ExternalSource(self._ring)
        self.known = self._source.known
        self.covered = False

    def look(self) -> None:
        if not self.covered:
            row, truth = self._row, self._link.robot.physics.truth()
            row["external_pose"] = [*truth.position_m, *truth.quat_wxyz]
            row["external_velocity"] = truth.velocity_body_m_s
            row["external_recv_ns"], row["external_pose_ns"] = self._link.now_ns, 1 + self._link.now_ns
            self._ring.push(row)
        self._source.look()
