"""Raw readers and writers on a loopback domain of their own."""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from onboard.configs.errors import LinkError
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain, bind, configuration
from onboard.runtime.interfaces import Interface, find_interface, interfaces
from onboard.runtime.wire import LowStateEncoder
from tests.dds_domain import domain_id

__all__ = ["domain_id"]

TOPIC = idl.LOW_STATE_TOPIC


@pytest.fixture
def domain(domain_id: int) -> Iterator[DdsDomain]:
    with DdsDomain(domain_id, "lo") as opened:
        yield opened


def message(tick: int) -> bytes:
    return bytes(LowStateEncoder(mode_machine=5).seal(tick))


def test_take_gives_the_newest_and_only_once(domain: DdsDomain) -> None:
    reader, writer = domain.reader(TOPIC, idl.LowState), domain.writer(TOPIC, idl.LowState)
    assert reader.take() is None
    for tick in range(5):
        writer.write(message(tick))
    assert reader.wait(2.0)
    sample = reader.take()
    assert sample is not None
    assert sample.raw == message(4)
    assert sample.source_time_ns > 0
    assert reader.take() is None
    assert not reader.wait(0.0)


def test_a_deep_reader_keeps_every_sample_in_order(domain: DdsDomain) -> None:
    reader = domain.reader(TOPIC, idl.LowState, depth=16)
    writer = domain.writer(TOPIC, idl.LowState)
    for tick in range(10):
        writer.write(message(tick))
    assert [sample.raw for sample in reader.take_all()] == [message(tick) for tick in range(10)]
    assert reader.take_all() == []


def test_samples_tell_their_writers_apart(domain: DdsDomain) -> None:
    reader = domain.reader(TOPIC, idl.LowState, depth=4)
    one, two = domain.writer(TOPIC, idl.LowState), domain.writer(TOPIC, idl.LowState)
    for writer in (one, two, one):
        writer.write(message(1))
    handles = [sample.writer for sample in reader.take_all()]
    assert handles[0] == handles[2] != handles[1]


def test_a_bytearray_can_be_reused_after_write(domain: DdsDomain) -> None:
    reader = domain.reader(TOPIC, idl.LowState, depth=4)
    writer = domain.writer(TOPIC, idl.LowState)
    encoder = LowStateEncoder(mode_machine=5)
    for tick in (1, 2):
        writer.write(encoder.seal(tick))
    assert [sample.raw for sample in reader.take_all()] == [message(1), message(2)]


def resident_kib() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize() // 1024


def test_memory_does_not_grow_with_the_samples(domain: DdsDomain) -> None:
    reader, writer = domain.reader(TOPIC, idl.LowState), domain.writer(TOPIC, idl.LowState)
    raw, before = message(1), 0
    for sample in range(30000):
        if sample == 5000:
            before = resident_kib()
        writer.write(raw)
        assert reader.take() is not None
        assert reader.take() is None
    assert resident_kib() - before < 1024  # one sample in ten kept would be 5 MiB


def test_own_samples_can_be_left_out(domain: DdsDomain) -> None:
    deaf = domain.reader(TOPIC, idl.LowState, ignore_own=True)
    writer = domain.writer(TOPIC, idl.LowState)
    assert writer.matched() == 0
    hearing = domain.reader(TOPIC, idl.LowState)
    assert (writer.matched(), hearing.matched(), deaf.matched()) == (1, 1, 0)
    writer.write(message(1))
    assert hearing.take() is not None
    assert deaf.take() is None


def test_the_end_of_a_writer_is_no_sample(domain: DdsDomain) -> None:
    reader, writer = domain.reader(TOPIC, idl.LowState), domain.writer(TOPIC, idl.LowState)
    writer.write(message(1))
    writer.close()
    sample = reader.take()
    assert sample is not None
    assert sample.raw == message(1)
    assert reader.take() is None
    assert reader.matched() == 0


def test_what_is_closed_stays_closed(domain: DdsDomain) -> None:
    reader, writer = domain.reader(TOPIC, idl.LowState), domain.writer(TOPIC, idl.LowState)
    for _ in range(2):
        reader.close()
        writer.close()
        domain.close()
    assert reader.take() is None
    assert writer.matched() == 0
    assert domain.publications() == []
    with pytest.raises(LinkError, match="DDS write failed"):
        writer.write(message(1))
    for make in (domain.reader, domain.writer):
        with pytest.raises(LinkError, match="is closed"):
            make(TOPIC, idl.LowState)


def test_a_closed_domain_can_be_opened_again(domain_id: int) -> None:
    for _ in range(3):
        with DdsDomain(domain_id, "lo") as opened:
            opened.writer(TOPIC, idl.LowState).write(message(1))


def test_one_domain_object_per_process(domain: DdsDomain) -> None:
    with pytest.raises(LinkError, match="open already in this process"):
        DdsDomain(domain.id, "lo")


@pytest.mark.parametrize("wrong", [-1, 231])
def test_domain_ids_without_ports_are_refused(wrong: int) -> None:
    with pytest.raises(LinkError, match=f"domain id {wrong} is not from 0 to 230"):
        DdsDomain(wrong, "lo")


OTHER_PROCESS = """
import sys
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.wire import LowStateEncoder
with DdsDomain(int(sys.argv[1]), "lo") as domain:
    reader = domain.reader(idl.LOW_CMD_TOPIC, idl.LowCmd)
    writer = domain.writer(idl.LOW_STATE_TOPIC, idl.LowState)
    for tick in range(2000):
        writer.write(LowStateEncoder(mode_machine=5).seal(tick))
        if reader.wait(0.002):
            sys.exit(0 if len(reader.take().raw) == 1004 else 4)
sys.exit(3)
"""


def test_two_processes_find_each_other_without_multicast(domain: DdsDomain) -> None:
    reader, writer = domain.reader(TOPIC, idl.LowState), domain.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
    peer = subprocess.Popen([sys.executable, "-c", OTHER_PROCESS, str(domain.id)])
    try:
        assert reader.wait(20.0)
        sample = reader.take()
        assert sample is not None
        assert len(sample.raw) == 2092
        assert [found[:3] for found in domain.publications()] == [
            (TOPIC, "unitree_hg::msg::dds_::LowState_", sample.writer)
        ]
        while peer.poll() is None:
            writer.write(idl.LowCmd().serialize())
            reader.wait(0.01)
            reader.take()
        assert peer.returncode == 0
        until = time.monotonic() + 5.0
        while domain.publications():  # those that left are no longer listed
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        peer.kill()
        peer.wait()


def test_own_writers_are_no_publications_of_others(domain: DdsDomain) -> None:
    domain.writer(TOPIC, idl.LowState)
    assert domain.publications() == []


def calls() -> SimpleNamespace:
    log: list[tuple[int, ...]] = []
    return SimpleNamespace(log=log, ddspy_take=lambda *a: log.append(a), ddspy_write=lambda *a: 0)


def test_take_has_a_mask_from_version_11_on() -> None:
    old, new = calls(), calls()
    bind("0.10.5", old)[0](7, 1)
    bind("11.0.1", new)[0](7, 1)
    assert old.log == [(7, 1)]
    assert len(new.log[0]) == 3
    assert (new.log[0][0], new.log[0][2]) == (7, 1)


@pytest.mark.parametrize("version", ["0.9.1", "0.11.0", "1.0.0", "12.0", "0"])
def test_a_version_never_tried_is_refused(version: str) -> None:
    with pytest.raises(LinkError, match=r"cyclonedds .* can't be used; install 0\.10\.x .* and 11\.x"):
        bind(version, calls())


def test_a_package_without_the_calls_is_refused() -> None:
    with pytest.raises(LinkError, match="can't be used"):
        bind("11.0.1", SimpleNamespace(ddspy_take=None))


def test_interfaces_list_loopback() -> None:
    lo = [found for found in interfaces() if found.name == "lo"]
    assert lo == [Interface("lo", "127.0.0.1", up=True, loopback=True)]
    assert find_interface("lo") == lo[0]


def test_an_unknown_interface_is_answered_with_those_that_exist() -> None:
    with pytest.raises(LinkError, match=r"no network interface 'eth77'; .* lo \(127\.0\.0\.1\)"):
        DdsDomain(5, "eth77")


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (Interface("can0", "", up=True, loopback=False), "has no IPv4 address"),
        (Interface("can0", "10.0.0.1", up=False, loopback=False), "is down"),
    ],
)
def test_an_unusable_interface_is_refused(
    found: Interface, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.runtime.interfaces.interfaces", lambda: [found])
    with pytest.raises(LinkError, match=f"'can0' {fault}"):
        find_interface("can0")


def test_only_loopback_goes_without_multicast() -> None:
    wired = configuration(Interface("eth0", "192.168.123.164", up=True, loopback=False))
    loopback = configuration(Interface("lo", "127.0.0.1", up=True, loopback=True))
    assert 'name="eth0"' in wired
    assert "Peer" not in wired
    assert '<Peer address="127.0.0.1"/>' in loopback
    assert "<AllowMulticast>false" in loopback
