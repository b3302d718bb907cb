"""DDS as raw bytes: the one place that touches Cyclone's Python package and its private names.

A message object costs 0.4 to 1.5 ms to build or to serialise, its bytes cost tens of microseconds.
So readers hand out bytes, taken on demand and without a listener (incoming traffic then never
competes for the interpreter lock), and writers take bytes. `take` and `write` are private calls of
the package whose form differs between versions; `bind` checks them and says which versions work.

Writers are best effort by default: a reliable one can block for 100 ms when a reader falls behind.
"""

import ctypes
import importlib.metadata
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from cyclonedds import _clayer
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import (
    DDSException,
    InstanceState,
    Policy,
    Qos,
    ReadCondition,
    SampleState,
    ViewState,
    WaitSet,
)
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.internal import DDS
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from onboard.configs.errors import LinkError
from onboard.runtime.interfaces import Interface, find_interface

SUPPORTED = "0.10.x (Python 3.10) and 11.x (Python 3.10 and later)"
_ANY = int(SampleState.Any | ViewState.Any | InstanceState.Any)
_SIZING = "<Sizing><ReceiveBufferSize>256 KiB</ReceiveBufferSize></Sizing>"
"""Each receiving thread goes through such a buffer bit by bit, then gets a new one. With the default of 1 MiB
the thread for discovery takes half an hour for that, and its process seems to grow all the while."""
_MAX_DOMAIN_ID = 230  # above, the ports of 40 participants no longer fit into 16 bits

Take = Callable[[int, int], Any]
Write = Callable[[int, Any], int]


def cyclonedds_version() -> str:
    """Version of the installed package, "0" when it has no metadata."""
    try:
        return importlib.metadata.version("cyclonedds")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def bind(version: str, module: Any = _clayer) -> tuple[Take, Write]:  # noqa: ANN401 - a C module without types
    """The private calls in the form that this version has.

    Raises:
        LinkError: a version that was never tried, or one without the calls.
    """
    take, write = getattr(module, "ddspy_take", None), getattr(module, "ddspy_write", None)
    fits = version.split(".")[:2] == ["0", "10"] or version.split(".")[0] == "11"
    if not (fits and take and write):
        raise LinkError(f"cyclonedds {version} can't be used; install {SUPPORTED}")
    if version.startswith("0."):
        return take, write
    return (lambda reader, count: take(reader, _ANY, count)), write


class Sample(NamedTuple):
    """One received message."""

    raw: bytes
    source_time_ns: int
    """The sender's CLOCK_REALTIME when it wrote."""
    writer: int
    """Handle that tells one publisher from another."""


class Publication(NamedTuple):
    """A publisher that discovery knows of."""

    topic: str
    type_name: str
    writer: int
    participant: str


class DdsDomain:
    """One DDS domain on one network interface, and this process's participant in it.

    A process can hold one object per domain id; readers and writers hang on it and close with it.
    On a loopback interface it needs no multicast: participants find each other through the ports of
    127.0.0.1. The environment's CYCLONEDDS_URI is not read: what is used is what was asked for.

    Args:
        domain_id: 0 on the robot.
        interface: name as the system lists it, "eth0" on the robot's own computer, "lo" for a
            simulator on this machine.

    Raises:
        LinkError: unknown or unusable interface, unsupported cyclonedds, or the domain can't be opened.
    """

    def __init__(self, domain_id: int, interface: str) -> None:
        self.id = domain_id
        self.interface = find_interface(interface)
        self._take, self._write = bind(cyclonedds_version())
        self._open: list[RawReader | RawWriter] = []
        self._topics: dict[str, Topic[Any]] = {}
        self._discovery: BuiltinDataReader | None = None
        if not 0 <= domain_id <= _MAX_DOMAIN_ID:
            raise LinkError(f"DDS domain id {domain_id} is not from 0 to {_MAX_DOMAIN_ID}; the robot's is 0")
        try:
            self._domain: Domain | None = Domain(domain_id, configuration(self.interface))
            self._participant: DomainParticipant | None = DomainParticipant(domain_id)
        except DDSException as error:
            raise LinkError(
                f"can't open DDS domain {domain_id} on {self.interface}: {error.msg}; "
                "is it open already in this process, or are all its ports taken?"
            ) from error

    def reader(self, topic: str, kind: type, *, depth: int = 1, ignore_own: bool = False) -> "RawReader":
        """A best-effort reader of the newest `depth` samples.

        Args:
            topic: name, like "rt/lowstate".
            kind: message class of `idl`.
            depth: samples kept until taken.
            ignore_own: leave out what this participant itself publishes.
        """
        policies = [Policy.Reliability.BestEffort, Policy.History.KeepLast(depth), Policy.Durability.Volatile]
        if ignore_own:
            policies.append(Policy.IgnoreLocal.Participant)
        described = self._topic(topic, kind)
        entity = DataReader(self._participant, described, Qos(*policies))
        reader = RawReader(entity, self._participant, self._take, depth)
        self._open.append(reader)
        return reader

    def writer(self, topic: str, kind: type, *, reliable: bool = False) -> "RawWriter":
        """A writer; `reliable` for calls that must arrive, never for commands."""
        certain = Policy.Reliability.Reliable(duration(milliseconds=100))
        reliability = certain if reliable else Policy.Reliability.BestEffort
        qos = Qos(reliability, Policy.History.KeepLast(1), Policy.Durability.Volatile)
        described = self._topic(topic, kind)
        writer = RawWriter(DataWriter(self._participant, described, qos), self._write)
        self._open.append(writer)
        return writer

    def publications(self) -> list[Publication]:
        """Publishers of other participants that discovery has found and that have not left."""
        if self._participant is None:
            return []
        if self._discovery is None:
            self._discovery = BuiltinDataReader(self._participant, BuiltinTopicDcpsPublication)
        own = self._participant.guid
        found = []
        for seen in self._discovery.read(1024):
            info, participant = seen.sample_info, seen.participant_key
            if info.valid_data and info.instance_state == InstanceState.Alive and participant != own:
                found.append(
                    Publication(seen.topic_name, seen.type_name, info.instance_handle, str(participant))
                )
        return found

    def close(self) -> None:
        """Close every reader and writer, then leave the domain; safe to call twice."""
        for entity in self._open:
            entity.close()
        self._open.clear()
        for entity in (self._discovery, *self._topics.values(), self._participant, self._domain):
            delete(entity)
        self._topics.clear()
        self._discovery = self._participant = self._domain = None

    def __enter__(self) -> "DdsDomain":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _topic(self, name: str, kind: type) -> "Topic[Any]":
        if self._participant is None:
            raise LinkError(f"DDS domain {self.id} is closed")
        if name not in self._topics:
            self._topics[name] = Topic(self._participant, name, kind)
        return self._topics[name]


class RawReader:
    """Bytes of one topic, on demand."""

    def __init__(self, entity: DataReader, participant: DomainParticipant, take: Take, depth: int) -> None:
        self._entity: DataReader | None = entity
        self._participant = participant
        self._reference = entity._ref
        self._take = take
        self._depth = depth
        self._waiting: tuple[WaitSet, ReadCondition] | None = None

    def take(self) -> Sample | None:
        """The newest sample that was not taken before; older ones are thrown away. Never blocks."""
        for raw, info in reversed(self._taken()):
            if info.valid_data:
                return _sample(raw, info)
        return None

    def take_all(self) -> list[Sample]:
        """Everything that was kept, oldest first. Never blocks."""
        return [_sample(raw, info) for raw, info in self._taken() if info.valid_data]

    def wait(self, timeout_s: float) -> bool:
        """Sleep until there is something to take; False when there was nothing in time."""
        if self._waiting is None:
            condition = ReadCondition(self._entity, SampleState.Any | ViewState.Any | InstanceState.Any)
            waiting = WaitSet(self._participant)
            waiting.attach(condition)
            self._waiting = waiting, condition
        return bool(self._waiting[0].wait(duration(seconds=timeout_s)) > 0)

    def matched(self) -> int:
        """Publishers that this reader is connected to."""
        return _count(_LIBRARY.dds_get_matched_publications, self._reference)

    def close(self) -> None:
        """Stop reading; safe to call twice."""
        for entity in self._waiting or ():
            delete(entity)
        delete(self._entity)
        self._entity = self._waiting = None

    def _taken(self) -> list[tuple[bytes, Any]]:
        if self._entity is None:
            return []
        taken = self._take(self._reference, self._depth + 1)  # one more: a writer's end is a sample too
        if isinstance(taken, int):
            raise LinkError(f"DDS take failed with code {taken}")
        return list(taken)


class RawWriter:
    """Writes bytes to one topic."""

    def __init__(self, entity: DataWriter, write: Write) -> None:
        self._entity: DataWriter | None = entity
        self._reference = entity._ref
        self._write = write

    def write(self, raw: bytes | bytearray) -> None:
        """Publish one message: header and CDR bytes, a multiple of 4 long.

        Raises:
            LinkError: DDS refused it, or the writer is closed.
        """
        code = self._write(self._reference, raw) if self._entity else -1
        if code < 0:
            raise LinkError(f"DDS write failed with code {code}")

    def matched(self) -> int:
        """Readers that this writer is connected to."""
        return _count(_LIBRARY.dds_get_matched_subscriptions, self._reference)

    def close(self) -> None:
        """Stop publishing; safe to call twice."""
        delete(self._entity)
        self._entity = None


_LIBRARY = DDS._dll_handle
for _function in (_LIBRARY.dds_get_matched_publications, _LIBRARY.dds_get_matched_subscriptions):
    _function.argtypes = ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t
    _function.restype = ctypes.c_int32


def _count(function: Callable[..., int], reference: int) -> int:
    return max(0, function(reference, None, 0))  # negative: the entity is gone


def _sample(raw: bytes, info: Any) -> Sample:  # noqa: ANN401 - the package's untyped SampleInfo
    return Sample(raw, info.source_timestamp, info.publication_handle)


def delete(entity: Any) -> None:  # noqa: ANN401 - any of the package's untyped entities, or None
    """Delete a DDS entity at once; the package itself does so only when the object is collected."""
    if entity is not None:
        entity.__del__()


def configuration(interface: Interface) -> str:
    """Cyclone's configuration for one explicit interface."""
    name = interface.name
    if not interface.loopback:
        return (
            '<CycloneDDS><Domain Id="any"><General><Interfaces>'
            f'<NetworkInterface name="{name}" priority="default" multicast="default"/>'
            f"</Interfaces></General>{_SIZING}</Domain></CycloneDDS>"
        )
    return (
        '<CycloneDDS><Domain Id="any"><General><Interfaces>'
        f'<NetworkInterface name="{name}" priority="default" multicast="false"/>'
        "</Interfaces><AllowMulticast>false</AllowMulticast></General>"
        "<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>40</MaxAutoParticipantIndex>"
        f'<Peers><Peer address="{interface.address}"/></Peers></Discovery>{_SIZING}</Domain></CycloneDDS>'
    )
