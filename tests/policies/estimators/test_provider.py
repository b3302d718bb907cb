import copy
import dataclasses
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from onboard.configs.errors import PolicyError
from onboard.policies.estimators.provider import (
    EXTERNAL,
    LEG_ODOMETRY,
    SIMULATOR_TRUTH,
    ExternalSource,
    Known,
    PortSource,
    Provision,
    check_providers,
    signals_from,
)
from onboard.policies.policy import Policy
from onboard.runtime.ports import RECORDER
from onboard.runtime.shm import Ring

MS = 1_000_000


class Told:
    """A source that knows what the test says."""

    def __init__(self, name: str = LEG_ODOMETRY) -> None:
        self.name = name
        self.known = Known()
        self.looks = 0

    def look(self) -> None:
        self.looks += 1

    def tell(self, made_ns: int, contact: tuple[int, int] = (1, 1)) -> None:
        self.known.contact[:], self.known.contact_force[:] = contact, (200.0, 130.0)
        self.known.base_velocity[:], self.known.made_ns = (0.5, 0.1, 0.0), made_ns


def with_providers(policy: Policy, **providers: str) -> Policy:
    """The same policy as if its contract named providers; it reads none of their terms."""
    copied = copy.copy(policy)
    contract = msgspec.structs.replace(policy.bundle.contract, providers=providers)
    copied.bundle = dataclasses.replace(policy.bundle, contract=contract)
    return copied


@pytest.fixture
def ring() -> Iterator[Ring]:
    made = Ring(memoryview(bytearray(Ring.size(RECORDER, 4))), RECORDER, 4)
    yield made
    made.release()


def test_what_the_recorder_published_is_known(ring: Ring) -> None:
    source, row = PortSource(ring), np.zeros((), RECORDER)
    source.look()
    assert source.known.made_ns == 0
    assert list(source.known.contact) == [-1, -1]
    row["contact"], row["contact_force"], row["base_velocity"] = (1, 0), (310.0, 4.0), (0.4, 0.0, -0.1)
    row["contact_ns"] = 77
    ring.push(row)
    source.look()
    assert list(source.known.contact) == [1, 0]
    np.testing.assert_array_equal(source.known.contact_force, np.array([310.0, 4.0], np.float32))
    np.testing.assert_array_equal(source.known.base_velocity, np.array([0.4, 0.0, -0.1], np.float32))
    assert source.known.made_ns == 77


def heard(recv_ns: int, stamp_ns: int, velocity: tuple[float, float, float]) -> np.ndarray:
    row = np.zeros((), RECORDER)
    row["external_pose"], row["external_velocity"] = (1.0, 2.0, 0.78, 1.0, 0.0, 0.0, 0.0), velocity
    row["external_pose_ns"], row["external_recv_ns"] = stamp_ns, recv_ns
    return row


def test_the_external_pose_is_known_with_its_age(ring: Ring) -> None:
    source = ExternalSource(ring)
    provision = Provision([Told(), source], [], limit_s=0.06)
    provision.look(50 * MS)
    assert np.isnan(provision.external.pose).all()
    assert np.isnan(provision.external_age_s)
    ring.push(heard(100 * MS, 7, (0.4, 0.0, 0.1)))
    provision.look(130 * MS)
    assert provision.external.pose.tolist() == [1.0, 2.0, 0.78, 1.0, 0.0, 0.0, 0.0]
    assert provision.external.pose_ns == 7
    assert provision.external_age_s == pytest.approx(0.03)
    assert source.known.base_height[0] == np.float32(0.78)
    provision.look(2_100 * MS)
    assert provision.external_age_s == pytest.approx(2.0), "a lost pose goes on to age"
    assert np.isnan(provision.base_velocity).all(), "the first source's alone"


def test_a_policy_walks_on_the_external_velocity_while_it_is_new_and_known(
    ring: Ring, walker: Policy
) -> None:
    reader = with_providers(walker, base_lin_vel=EXTERNAL)
    assert signals_from(reader.bundle.contract, EXTERNAL) == {"base_lin_vel"}
    provision = Provision([Told(), ExternalSource(ring)], [reader], limit_s=0.06)
    ring.push(heard(100 * MS, 7, (0.4, 0.0, 0.1)))
    provision.look(160 * MS)
    assert not provision.old(0)
    provision.serve(0)
    np.testing.assert_array_equal(walker.provided["base_lin_vel"], np.array([0.4, 0.0, 0.1], np.float32))
    provision.look(161 * MS)
    assert provision.old(0)
    ring.push(heard(170 * MS, 8, (np.nan, np.nan, np.nan)))
    provision.look(171 * MS)
    assert provision.old(0), "new, but who sent it knows no velocity"


def test_too_old_is_unknown() -> None:
    source = Told()
    provision = Provision([source], [], limit_s=0.06)
    source.tell(1000 * MS, contact=(1, 0))
    provision.look(1060 * MS)
    assert list(provision.contact) == [1, 0]
    assert provision.airborne
    np.testing.assert_array_equal(provision.base_velocity, np.array([0.5, 0.1, 0.0], np.float32))
    provision.look(1061 * MS)
    assert list(provision.contact) == [-1, -1]
    assert np.isnan(provision.contact_force).all()
    assert np.isnan(provision.base_velocity).all()
    assert not provision.airborne, "unknown contact says nothing"


def test_without_sources_nothing_is_known_and_nothing_old(walker: Policy) -> None:
    provision = Provision([], [walker], limit_s=0.06)
    provision.look(5)
    assert list(provision.contact) == [-1, -1]
    assert not provision.old(0)


def test_a_policy_is_served_what_it_reads_and_the_age_counts_for_it_alone(walker: Policy) -> None:
    source = Told()
    reader = with_providers(walker, base_lin_vel_imu=LEG_ODOMETRY, contact=LEG_ODOMETRY)
    provision = Provision([source], [walker, reader], limit_s=0.06)
    provision.look(10 * MS)
    assert provision.old(1), "never known is too old"
    source.tell(100 * MS)
    provision.look(120 * MS)
    assert not provision.old(1)
    provision.serve(1)
    np.testing.assert_array_equal(walker.provided["base_lin_vel"], np.array([0.5, 0.1, 0.0], np.float32))
    np.testing.assert_array_equal(walker.provided["contact"], [1, 1])
    provision.look(161 * MS)
    assert provision.old(1)
    assert not provision.old(0)


@pytest.mark.parametrize(
    ("term", "provider", "have", "said"),
    [
        (
            "base_lin_vel",
            SIMULATOR_TRUTH,
            [LEG_ODOMETRY],
            "term 'base_lin_vel' is to come from simulator_truth, which is not there; there is leg_odometry; "
            "give --set providers.base_lin_vel=leg_odometry",
        ),
        (
            "base_height",
            LEG_ODOMETRY,
            [LEG_ODOMETRY],
            "leg_odometry does not give term 'base_height'; nothing here gives it",
        ),
        (
            "base_height",
            EXTERNAL,
            [],
            "is to come from external, which is not there; nothing here gives it; "
            "feed it with --external-pose udp:HOST:PORT or dds",
        ),
        ("contact", EXTERNAL, [EXTERNAL], "external does not give term 'contact'; nothing here gives it"),
    ],
)
def test_what_nobody_provides_is_refused(
    walker: Policy, term: str, provider: str, have: list[str], said: str
) -> None:
    contract = with_providers(walker, **{term: provider}).bundle.contract
    with pytest.raises(PolicyError) as caught:
        check_providers(contract, have)
    assert said in str(caught.value)
