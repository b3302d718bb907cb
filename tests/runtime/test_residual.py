"""A residual in the loop: what reaches the robot, what the record says about it, when it is dropped."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from onboard.cli.run_options import run_config
from onboard.configs.errors import ConfigError, OnboardError
from onboard.configs.events import Arm, Event
from onboard.policies.residual.files import driven_scales
from onboard.runtime.assembly import Plan, make_plan, run_info
from tests.runtime.flight import POLICY, Flight

ANKLES = ["left_ankle_pitch_joint", "right_ankle_pitch_joint"]
SLOTS = [4, 10]


def planned(folder: Path, arm: str, **changes: Any) -> Plan:
    plain = {
        "schema": 1,
        "name": "ankles",
        "kind": "linear",
        "mode": "add",
        "unit": "rad",
        "joints": ANKLES,
        "coefficients": {name: {"a": 0.02} for name in ANKLES},
        "fade_s": 0.1,
    }
    path = folder / "residual.yaml"
    path.write_text(yaml.safe_dump({"residual": plain | changes}))
    try:
        return make_plan(run_config(policy=POLICY, gantry=True, residual=str(path), arm=arm))
    except ConfigError:
        raise
    except OnboardError as error:
        pytest.skip(f"{POLICY} is not installed: {error}")


def test_what_was_added_reaches_the_target_and_the_record(tmp_path: Path) -> None:
    flight = Flight(planned(tmp_path, "keep")).walk(ticks=60)
    base, added, combined = (
        flight.column(name, last=40) for name in ("action_policy", "action_residual", "action_combined")
    )
    assert np.array_equal(base + added, combined)
    assert set(flight.column("arm")) == {Arm.KEEP}
    contract = flight.plan.bundle.contract
    scales = driven_scales(contract)
    order, names = list(scales), flight.plan.robot.joint_names
    for joint in ANKLES:
        element, slot = order.index(joint), names.index(joint)
        wanted = base[:, element] * scales[joint] + contract.default_rad[contract.joints.index(joint)]
        q, target = flight.column("q", last=40)[:, slot], flight.column("target", last=40)[:, slot]
        assert np.allclose(target, wanted + 0.02 * (wanted - q), atol=1e-5)
    untouched = [element for element, joint in enumerate(order) if joint not in ANKLES]
    assert not added[:, untouched].any()


def test_a_shadow_changes_nothing_of_the_flight(tmp_path: Path) -> None:
    shadow, without = Flight(planned(tmp_path, "shadow")).walk(ticks=60), Flight().walk(ticks=60)
    assert np.array_equal(shadow.column("target"), without.column("target"))
    assert np.array_equal(shadow.column("q"), without.column("q"))
    assert shadow.column("action_residual", last=40).any()
    assert np.array_equal(shadow.column("action_combined"), shadow.column("action_policy"))
    assert set(shadow.column("arm")) == {Arm.SHADOW}
    assert set(without.column("arm")) == {Arm.NONE}


def test_a_residual_that_stays_at_its_bound_is_dropped_and_said(tmp_path: Path) -> None:
    plan = planned(tmp_path, "keep", bound_rad=1e-5, drop_on={"bound_saturated_s": 0.1})
    flight = Flight(plan)
    with pytest.raises(AssertionError):
        flight.walk(ticks=100)  # which insists on a flight without events
    assert flight.events == {Event.RESIDUAL_DROPPED.name}
    assert flight.loop.pilot.slot.dropped == "at its bound"
    assert not flight.column("action_residual", last=10).any()


def test_the_policy_sees_its_own_action(tmp_path: Path) -> None:
    flight = Flight(planned(tmp_path, "keep")).walk(ticks=30)
    width = flight.policy.raw.size
    base, obs = flight.column("action_policy", last=2), flight.column("obs", last=2)
    last = [row[start : start + width] for row in obs[1:] for start in range(len(row) - width + 1)]
    assert any(np.allclose(found, base[0], atol=1e-6) for found in last)


def test_the_run_says_which_residual_it_had(tmp_path: Path) -> None:
    plan = planned(tmp_path, "keep")
    info = run_info(plan, plan.policies())
    assert info.arm == "keep"
    assert info.stem.endswith("_keep")
    assert yaml.safe_load(info.policies[0].residual)["residual"]["name"] == "ankles"


@pytest.mark.parametrize(("residual", "arm"), [("r.yaml", "none"), ("", "keep"), ("", "shadow")])
def test_an_arm_without_its_residual_is_refused(residual: str, arm: str) -> None:
    with pytest.raises(OnboardError, match="give --residual FILE --arm"):
        make_plan(run_config(policy=POLICY, residual=residual, arm=arm))


def test_an_inverse_through_the_gains_changes_what_is_sent_and_the_record_tells_it(tmp_path: Path) -> None:
    weak = {joint: {"a": -0.1} for joint in ANKLES}
    plan = planned(tmp_path, "keep", mode="invert", through="gains", coefficients=weak)
    flight = Flight(plan).walk(ticks=40)
    kp = flight.loop.command["kp"]
    assert np.allclose(kp[SLOTS], flight.policy.kp[SLOTS] / 0.9, rtol=1e-5)
    assert np.array_equal(np.delete(kp, SLOTS), np.delete(flight.policy.kp, SLOTS))
    assert np.array_equal(flight.column("action_combined", last=9), flight.column("action_policy", last=9))
    assert flight.column("action_residual", last=9).any()
