"""Who knows what the robot can't measure, and how it reaches control, the record and the policies.

A source is asked once a tick. On a robot it is the recorder process, through shared memory; in
lock-step it is the same estimator in this process, or the simulator's truth.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError
from onboard.policies.actor import Actor
from onboard.policies.contract import Contract
from onboard.policies.terms import CATALOGUE
from onboard.runtime.ports import RECORDER
from onboard.runtime.shm import Ring

Float32Array = NDArray[np.float32]

LEG_ODOMETRY = "leg_odometry"
SIMULATOR_TRUTH = "simulator_truth"
EXTERNAL = "external"

GIVES = {
    LEG_ODOMETRY: frozenset({"base_lin_vel", "contact"}),
    SIMULATOR_TRUTH: frozenset({"base_lin_vel", "base_height", "foot_force", "contact"}),
    EXTERNAL: frozenset({"base_lin_vel", "base_height"}),
}
"""Provider to the signals that it can give."""

_READ_AS = {"base_lin_vel_imu": "base_lin_vel"}
"""Signals that follow from another one and the state."""


class Known:
    """What a source knows now; overwritten in place.

    Attributes:
        contact: (2,) left and right foot: 1, 0, or -1 unknown.
        contact_force: (2,) N, vertical; NaN unknown.
        base_velocity: (3,) m/s, of the pelvis in its own frame; NaN unknown.
        base_height: (1,) m, of the pelvis; NaN unknown.
        foot_force: (6,) N, left and right, x y z; NaN unknown.
        pose: (7,) m and quaternion w, x, y, z, world from pelvis; NaN unknown.
        pose_ns: when by the clock of who sent the pose; 0 never.
        made_ns: when, on the control loop's clock; 0 never.
    """

    def __init__(self) -> None:
        self.contact: NDArray[np.int8] = np.full(2, -1, np.int8)
        self.contact_force: Float32Array = np.full(2, np.nan, np.float32)
        self.base_velocity: Float32Array = np.full(3, np.nan, np.float32)
        self.base_height: Float32Array = np.full(1, np.nan, np.float32)
        self.foot_force: Float32Array = np.full(6, np.nan, np.float32)
        self.pose: NDArray[np.float64] = np.full(7, np.nan)
        self.pose_ns = 0
        self.made_ns = 0

    def signal(self, name: str) -> Float32Array | NDArray[np.int8]:
        """The array behind a signal that policies read."""
        if name == "contact":
            return self.contact
        return {
            "base_lin_vel": self.base_velocity,
            "base_height": self.base_height,
            "foot_force": self.foot_force,
        }[name]


class Source(Protocol):
    """Somebody who knows."""

    @property
    def name(self) -> str:
        """As contracts name it."""

    @property
    def known(self) -> Known:
        """What it knew at the last `look`; the same object every time."""

    def look(self) -> None:
        """Bring `known` up to date; never blocks."""


class PortSource:
    """Leg odometry from the recorder process, through its ring of `ports.RECORDER`."""

    name = LEG_ODOMETRY

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._row = np.zeros((), RECORDER)
        self._made_ns: NDArray[np.int64] = self._row["contact_ns"]
        self._contact: NDArray[np.int8] = self._row["contact"]
        self._force: Float32Array = self._row["contact_force"]
        self._velocity: Float32Array = self._row["base_velocity"]
        self.known = Known()

    def look(self) -> None:
        """Read the newest record."""
        known = self.known
        if self._ring.latest(self._row) and (made_ns := int(self._made_ns)) != known.made_ns:
            known.contact[:], known.contact_force[:] = self._contact, self._force
            known.base_velocity[:] = self._velocity
            known.made_ns = made_ns


class ExternalSource:
    """The external pose, which the recorder process hears, through its ring of `ports.RECORDER`."""

    name = EXTERNAL

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._row = np.zeros((), RECORDER)
        self._made_ns: NDArray[np.int64] = self._row["external_recv_ns"]
        self._pose_ns: NDArray[np.int64] = self._row["external_pose_ns"]
        self._pose: NDArray[np.float64] = self._row["external_pose"]
        self._velocity: Float32Array = self._row["external_velocity"]
        self.known = Known()

    def look(self) -> None:
        """Read the newest record."""
        known = self.known
        if self._ring.latest(self._row) and (made_ns := int(self._made_ns)) != known.made_ns:
            known.pose[:], known.pose_ns = self._pose, int(self._pose_ns)
            known.base_velocity[:], known.base_height[0] = self._velocity, self._pose[2]
            known.made_ns = made_ns


FROM_RECORDER: Mapping[str, Callable[[Ring], Source]] = {
    LEG_ODOMETRY: PortSource,
    EXTERNAL: ExternalSource,
}
"""Sources that a robot has, by name."""


class Provision:
    """Everything that control gets from sources.

    The first source's contact, force and velocity go into the record, and contact into the residual
    and the gate: the same numbers, or unknown once they are too old. The external pose stays as it came;
    the record tells its age.

    Args:
        sources: at most one of a name.
        policies: of the run; each privileged term's provider must be among the sources.
        limit_s: older is too old.

    Attributes:
        contact: (2,) 1, 0, or -1 unknown.
        contact_force: (2,) N; NaN unknown.
        base_velocity: (3,) m/s, pelvis frame; NaN unknown.
        airborne: a foot is known to be off the ground.
        external: what came from outside; nothing known where there is no such source.
        external_age_s: of the external pose; NaN without one.

    Raises:
        PolicyError: a term's provider is missing, or does not give what the term needs.
    """

    def __init__(self, sources: Sequence[Source], policies: Sequence[Actor], limit_s: float) -> None:
        by_name = {source.name: source for source in sources}
        self._sources = tuple(sources)
        self._first = sources[0].known if sources else Known()
        self._limit_ns = round(limit_s * 1e9)
        self._unknown = Known()
        self.external = by_name[EXTERNAL].known if EXTERNAL in by_name else self._unknown
        self.external_age_s = np.nan
        self._now_ns = 0
        for policy in policies:
            check_providers(policy.bundle.contract, by_name)
        self._used = [_used(policy, by_name) for policy in policies]
        self._copies = [_copies(policy, by_name) for policy in policies]
        self.contact = self._unknown.contact.copy()
        self.contact_force = self._unknown.contact_force.copy()
        self.base_velocity = self._unknown.base_velocity.copy()
        self.airborne = False

    def look(self, now_ns: int) -> None:
        """Once a tick, before anything is decided; `now_ns` on the sources' clock."""
        self._now_ns = now_ns
        for source in self._sources:
            source.look()
        if self.external.made_ns:
            self.external_age_s = (now_ns - self.external.made_ns) * 1e-9
        known = self._unknown if self._is_old(self._first) else self._first
        np.copyto(self.contact, known.contact)
        np.copyto(self.contact_force, known.contact_force)
        np.copyto(self.base_velocity, known.base_velocity)
        self.airborne = 0 in self.contact.tolist()

    def old(self, index: int) -> bool:
        """Whether something that a policy reads is too old, or not known."""
        return any(self._is_old(known) for known in self._used[index]) or any(
            np.isnan(value).any() for _, value in self._copies[index]
        )

    def serve(self, index: int) -> None:
        """Hand a policy what it reads, before it observes."""
        for signal, known in self._copies[index]:
            signal[:] = known

    def _is_old(self, known: Known) -> bool:
        return not known.made_ns or self._now_ns - known.made_ns > self._limit_ns


def check_providers(contract: Contract, have: Collection[str]) -> None:
    """Refuse a contract whose privileged terms nobody here provides.

    Args:
        contract: checked by itself already.
        have: names of the sources at hand.

    Raises:
        PolicyError: names term, provider and what there is.
    """
    for term, provider in contract.providers.items():
        signal = _signal(term)
        able = sorted(name for name in have if signal in GIVES[name])
        there = f"there is {', '.join(able)}" if able else "nothing here gives it"
        how = f"; give --set providers.{term}={able[0]}" if able else ""
        if provider == EXTERNAL and not how:
            how = "; feed it with --external-pose udp:HOST:PORT or dds"
        if provider not in have:
            raise PolicyError(
                f"{contract.name}: term '{term}' is to come from {provider}, which is not there; {there}{how}"
            )
        if signal not in GIVES[provider]:
            raise PolicyError(f"{contract.name}: {provider} does not give term '{term}'; {there}{how}")


def signals_from(contract: Contract, provider: str) -> set[str]:
    """Signals that a contract takes from a provider."""
    return {_signal(term) for term, name in contract.providers.items() if name == provider}


def _signal(term: str) -> str:
    signal = CATALOGUE[term].signal
    return _READ_AS.get(signal, signal)


def _used(policy: Actor, sources: dict[str, Source]) -> list[Known]:
    names = set(policy.bundle.contract.providers.values())
    return [sources[name].known for name in sorted(names)]


def _copies(
    policy: Actor, sources: dict[str, Source]
) -> list[tuple[Float32Array, Float32Array | NDArray[np.int8]]]:
    """Where each privileged signal of a policy stands, and where its value does."""
    wanted = {_signal(term): name for term, name in policy.bundle.contract.providers.items()}
    return [(policy.provided[signal], sources[name].known.signal(signal)) for signal, name in wanted.items()]
