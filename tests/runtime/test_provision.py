"""Contact and base velocity in the loop: in the record, in the gate, and too old."""

from collections.abc import Callable

import numpy as np
import pytest

from onboard.analysis.lock_step_sources import lock_step_sources
from onboard.configs.errors import PolicyError
from onboard.configs.events import Event, Mode
from onboard.policies.estimators.provider import (
    EXTERNAL,
    LEG_ODOMETRY,
    SIMULATOR_TRUTH,
    Source,
)
from onboard.sim.sim_link import SimLink
from tests.runtime.flight import Flight
from tests.runtime.watched import Watched, playground


def source(name: str) -> Callable[[SimLink], list[Source]]:
    """What makes one source of a link."""
    return lambda link: lock_step_sources(link, {name})


def test_the_record_holds_contact_force_and_velocity() -> None:
    flight = Flight(sources=source(LEG_ODOMETRY))
    flight.walk(0.5, ticks=250)
    truth = flight.robot.physics.truth()
    np.testing.assert_allclose(flight.column("base_velocity", 1)[0], truth.velocity_body_m_s, atol=0.06)
    assert flight.column("contact_force", 50).sum(1).mean() > 250.0
    contact = flight.column("contact", 100)
    assert set(np.unique(contact)) == {0, 1}
    assert contact.max(1).min() == 1, "one foot at least stands in every tick of a walk"


def test_without_a_source_the_record_says_unknown() -> None:
    flight = Flight()
    flight.fly(3)
    assert (flight.column("contact") == -1).all()
    assert np.isnan(flight.column("base_velocity")).all()


def test_a_policy_walks_on_its_own_estimate_as_on_the_truth() -> None:
    speeds = []
    for provider in (SIMULATOR_TRUTH, LEG_ODOMETRY):
        flight = Flight(playground(provider), sources=source(provider))
        flight.walk(0.5, ticks=300)
        speeds.append(flight.column("base_velocity", 150)[:, 0].mean())
    assert speeds[0] > 0.4
    assert abs(speeds[1] - speeds[0]) < 0.1


def test_a_policy_walks_on_the_external_pose_and_damps_when_it_is_lost() -> None:
    watched: list[Watched] = []

    def watch(link: SimLink) -> list[Source]:
        watched.append(Watched(link))
        return list(watched)

    flight = Flight(playground(EXTERNAL), sources=watch)
    flight.walk(0.5, ticks=300)
    pose = flight.column("external_pose", 100)
    np.testing.assert_allclose(pose[-1, :3], flight.robot.physics.truth().position_m, atol=0.02)
    assert pose[-1, 0] - pose[0, 0] > 0.6, "it walked"
    assert (flight.column("external_age_s", 100) == 0.0).all()
    watched[0].covered = True
    flight.fly(6)
    assert flight.mode is Mode.DAMP
    assert Event.PROVIDER_OLD.name in flight.events
    assert (np.diff(flight.column("external_age_s", 5)) > 0.015).all(), "the last pose stays and ages"


def test_an_estimate_that_stops_coming_damps_a_policy_that_reads_it() -> None:
    flight = Flight(playground(LEG_ODOMETRY), sources=source(LEG_ODOMETRY))
    flight.walk(0.0, ticks=50)
    flight.link.after_step = None
    flight.fly(3)
    assert flight.mode is Mode.POLICY, "60 ms are not too old"
    flight.fly(3)
    assert flight.mode is Mode.DAMP
    assert Event.PROVIDER_OLD.name in flight.events


def test_a_policy_that_reads_none_does_not_mind() -> None:
    flight = Flight(sources=source(LEG_ODOMETRY))
    flight.walk(0.0, ticks=50)
    flight.link.after_step = None
    flight.fly(50)
    assert flight.mode is Mode.POLICY
    assert (flight.column("contact", 10) == -1).all()


def test_a_run_without_the_provider_is_refused_before_it_starts() -> None:
    with pytest.raises(PolicyError, match="is to come from simulator_truth, which is not there"):
        Flight(playground(SIMULATOR_TRUTH))
