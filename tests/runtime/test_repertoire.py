"""Handing over between policies: approach, switch, return; on real policies in lock-step."""

import numpy as np
import pytest

from onboard.cli.run_options import run_config
from onboard.configs.events import Mode
from onboard.runtime.assembly import make_plan
from tests.runtime.flight import Flight
from tests.shared import shared_folder


@pytest.fixture(scope="module")
def loco_and_motion() -> tuple[str, str]:
    folders = [shared_folder("policies", name) for name in ("asap_dec_loco", "asap_mimic_cr7")]
    loco, motion = (str(next(folder.glob("*.onnx"))) for folder in folders)
    return loco, motion


def flight(loco: str, motion: str) -> Flight:
    config = run_config(
        policy=loco,
        preset="asap_dec_loco",
        also=[{"policy": motion, "preset": "asap_mimic"}],
        gantry=True,
    )
    return Flight(make_plan(config))


def test_walk_motion_walk(loco_and_motion: tuple[str, str]) -> None:
    made = flight(*loco_and_motion).walk(vx=0.0, ticks=100)
    loco, motion = made.loop.pilot.repertoire.policies
    own_hold = loco.hold.copy()
    made.port.switch(1)
    made.fly(60)
    assert set(made.column("policy", 60)) == {0}  # the approach: loco still balances
    assert made.mode is Mode.POLICY
    made.fly(20)
    assert int(made.rows[-1]["policy"]) == 1
    length_s = motion.bundle.contract.motion.length_s  # type: ignore[union-attr]
    made.fly(round((length_s or 0.0) * 50) + 20)
    assert int(made.rows[-1]["policy"]) == 0  # it came back by itself
    made.port.set_velocity((0.4, 0.0, 0.0))
    made.fly(250)
    assert made.mode is Mode.POLICY
    assert not made.events & {"ROLL", "PITCH", "TILT", "FALL", "JOINT_SPEED", "ANGULAR_RATE"}
    assert made.robot.physics.truth().position_m[2] > 0.6
    assert np.allclose(loco.hold, own_hold, atol=1e-6)
    assert made.column("episode").tolist()[-1] == 2


def test_targets_and_gains_blend_over_a_switch(loco_and_motion: tuple[str, str]) -> None:
    made = flight(*loco_and_motion).walk(vx=0.0, ticks=100)
    made.port.switch(1)
    made.fly(100)
    sent, policy = made.column("action_sent"), made.column("policy")
    switch = int(np.flatnonzero(policy == 1)[0])
    assert np.abs(np.diff(sent[switch - 2 : switch + 15], axis=0)).max() < 0.25


def test_unknown_and_present_policies_are_ignored(loco_and_motion: tuple[str, str]) -> None:
    made = flight(*loco_and_motion).walk(vx=0.0, ticks=20)
    for index in (0, 2, -7):
        made.port.switch(index)
        made.fly(3)
        assert made.loop.pilot.repertoire.wanted is None
    made.port.switch(-1)
    made.fly(1)
    assert made.loop.pilot.repertoire.wanted == 1


def test_one_policy_has_nobody_to_hand_over_to() -> None:
    made = Flight().walk(ticks=10)
    made.port.switch(-1)
    made.fly(10)
    assert set(made.column("policy", 10)) == {0}
