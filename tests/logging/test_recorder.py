"""The recorder as a real process: ended in order, killed, orphaned, out of disk."""

import os
import signal
import socket
import subprocess
import time
from functools import partial
from pathlib import Path

import h5py
import numpy as np

from onboard.configs.external_pose import UdpAddress
from onboard.logging.convert import lowstate_journal
from onboard.logging.recovery import scan
from onboard.runtime.dds import DdsDomain
from onboard.runtime.external_pose import PoseSender
from onboard.runtime.idl import (
    BATTERY_TOPIC,
    EXTERNAL_POSE_TOPIC,
    LOW_STATE_TOPIC,
    BmsState,
    ExternalPose,
    LowState,
)
from onboard.runtime.wire import LowStateEncoder
from tests.dds_domain import domain_id
from tests.logging.recorder_run import START, TIMEOUT_S, Run, until

__all__ = ["domain_id"]


def recorded_ticks(path: Path) -> list[int]:
    with h5py.File(path, "r") as h5:
        ticks = h5["rollout/tick"][:]
        np.testing.assert_array_equal(h5["rollout/q"][:], np.repeat(ticks[:, None], 29, 1))
        np.testing.assert_array_equal(h5["rollout/send_ns"][:], 7_000 + ticks)
        return [int(tick) for tick in ticks]


def test_ordered_end_leaves_the_rollout_and_nothing_else(run: Run) -> None:
    run.ticks(1, 100)
    process = run.started()
    run.ticks(101, 200)
    assert run.stop(process) == 0
    assert recorded_ticks(run.rollout) == list(range(1, 201))
    with h5py.File(run.rollout, "r") as h5:
        assert h5.attrs["completeness"] == "complete"
        assert h5.attrs["end_reason"] == "script finished"
    assert os.listdir(run.rollout.parent) == [run.rollout.name]
    run.shared["recorder"].latest(run.status)
    assert [int(run.status[name]) for name in ("rows", "lost", "behind", "closed")] == [200, 0, 0, 1]
    assert run.status["disk_free"] > 0


def test_successor_of_a_killed_recorder_loses_nothing(run: Run) -> None:
    for first in (1, 201, 401):
        process = run.started()
        run.ticks(first, first + 149)
        until(partial(run.recorded, first + 50))
        process.kill()
        process.wait(TIMEOUT_S)
        run.ticks(first + 150, first + 199)
    assert run.stop(run.started()) == 0
    assert recorded_ticks(run.rollout) == list(range(1, 601))
    with h5py.File(run.rollout, "r") as h5:
        assert h5.attrs["completeness"] == "complete"


def test_signals_of_a_terminal_do_not_end_it_and_sigterm_ends_it_in_order(run: Run) -> None:
    process = run.started()
    run.ticks(1, 10)
    for number in (signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
    run.ticks(11, 20)
    until(lambda: run.recorded(20))
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0
    assert recorded_ticks(run.rollout) == list(range(1, 21))


def test_orphan_closes_and_converts_once_control_is_silent(run: Run) -> None:
    """Its parent here is a shell that is killed; the recorder then belongs to somebody else."""
    run.ticks(1, 50)
    run.beat()
    shell = run.start(wrap=("sh", "-c", '"$@" & wait', "sh"))
    until(lambda: run.recorded(50))
    shell.kill()
    run.ticks(51, 60)
    until(run.rollout.exists)
    until(lambda: not run.journal.exists())
    assert recorded_ticks(run.rollout) == list(range(1, 61))
    with h5py.File(run.rollout, "r") as h5:
        assert h5.attrs["end_reason"].startswith("the parent process was lost")
    until(lambda: not run.shared.path.exists())


def test_recorder_far_behind_counts_what_the_ring_overwrote(run: Run) -> None:
    run.ticks(1, 2_000)
    process = run.started()
    assert run.stop(process) == 0
    ticks = recorded_ticks(run.rollout)
    assert ticks == list(range(2_001 - len(ticks), 2_001))
    with h5py.File(run.rollout, "r") as h5:
        assert h5.attrs["rows_lost"] == 2_000 - len(ticks) == 501
        assert h5.attrs["completeness"] == "truncated"


def test_full_disk_costs_rows_and_leaves_a_whole_journal(tiny_disk: Path, tmp_path: Path) -> None:
    run = Run(tiny_disk, tmp_path)
    try:
        process = run.started()
        run.ticks(1, 600)
        until(lambda: run.recorded(1) and int(run.status["lost"]) > 0)
        assert run.status["full"]
        assert run.stop(process) == 3
        assert process.stderr is not None
        complaint = process.stderr.read()
        assert "make room, then: onboard log recover" in complaint
        assert complaint.count("\n") == 1
        run.shared["recorder"].latest(run.status)
        assert run.status["rows"] + run.status["lost"] == 600
        found = scan(run.journal)
        assert (found.row_count, found.lost) == (run.status["rows"], run.status["lost"])
        assert found.end is not None
    finally:
        run.close()


def test_missing_journal_and_missing_mapping_are_one_line_each(run: Run, tmp_path: Path) -> None:
    run.journal.unlink()
    process = run.start()
    assert process.wait(TIMEOUT_S) == 2
    assert process.stderr is not None
    assert process.stderr.read().count("\n") == 1
    command = [*START, "--shm", str(tmp_path / "none"), "--journal", str(run.journal)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "no shared memory of a run" in result.stderr
    assert "Traceback" not in result.stderr


def test_full_rate_stream_over_dds_is_counted_and_kept(run: Run, domain_id: int) -> None:
    with DdsDomain(domain_id, "lo") as dds:
        writer = dds.writer(LOW_STATE_TOPIC, LowState)
        encoder = LowStateEncoder(5)
        process = run.started("--domain", str(domain_id), "--interface", "lo", "--lowstate")
        until(lambda: writer.matched() > 0)
        lost, damaged = range(150, 153), {160, 170}
        for k in (k for k in range(400) if k not in lost):
            encoder.q[...] = k
            raw = bytearray(encoder.seal(10_000 + 2 * k))
            raw[300] ^= k in damaged
            writer.write(raw)
            time.sleep(0.001)
        until(lambda: run.recorded(0) and int(run.status["received"]) == 397)
        run.ticks(1, 30)
        assert run.stop(process) == 0
    assert (run.status["crc_errors"], run.status["gaps"]) == (2, 5)
    with h5py.File(run.rollout, "r") as h5:
        kept = [k for k in range(400) if k not in lost and k not in damaged]
        np.testing.assert_array_equal(h5["lowstate/q"][:, 3], kept)
        assert '"lowstate_crc_errors": 2' in h5.attrs["facts"]
    assert not lowstate_journal(run.journal).exists()


def heard_pose(run: Run) -> bool:
    run.shared["recorder"].latest(run.status)
    return bool(run.status["external_pose_ns"] == 4_000)


def end_with_facts(run: Run, process: subprocess.Popen[str]) -> str:
    run.ticks(1, 30)
    assert run.stop(process) == 0
    with h5py.File(run.rollout, "r") as h5:
        return str(h5.attrs["facts"])


def test_poses_by_udp_are_published_and_bad_ones_counted(run: Run) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = UdpAddress(*free.getsockname())
    process = run.started("--external-pose", f"udp:{address.port}")
    before = time.monotonic_ns()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"what is this", address)
    sender = PoseSender(address)
    sender.send(4_000, (1.0, 2.0, 0.8), (0.0, 0.0, 0.0, 1.0), (0.5, 0.0, np.nan))
    sender.close()
    until(lambda: heard_pose(run))
    assert run.status["external_pose"].tolist() == [1.0, 2.0, 0.8, 0.0, 0.0, 0.0, 1.0]
    assert np.isnan(run.status["external_velocity"]).all()
    assert before < run.status["external_recv_ns"] <= time.monotonic_ns()
    facts = end_with_facts(run, process)
    assert '"external_pose_received": 2' in facts
    assert '"external_pose_dropped": 1' in facts


def test_poses_by_dds_are_published(run: Run, domain_id: int) -> None:
    with DdsDomain(domain_id, "lo") as dds:
        writer = dds.writer(EXTERNAL_POSE_TOPIC, ExternalPose)
        arguments = ("--domain", str(domain_id), "--interface", "lo", "--external-pose", "dds")
        process = run.started(*arguments)
        until(lambda: writer.matched() > 0)
        writer.write(ExternalPose(4_000, [1.0, 2.0, 0.8], [1.0, 0, 0, 0], [0.5, 0, 0]).serialize())
        until(lambda: heard_pose(run))
        assert run.status["external_velocity"].tolist() == [0.5, 0.0, 0.0]
        assert '"external_pose_dropped": 0' in end_with_facts(run, process)


def test_a_pose_source_that_can_not_be_heard_is_one_line(run: Run) -> None:
    for source, said in (
        ("udp:192.0.2.1:9870", "can't listen on udp 192.0.2.1:9870"),
        ("dds", "--interface"),
    ):
        process = run.start("--external-pose", source)
        assert process.wait(TIMEOUT_S) == 2
        assert process.stderr is not None
        complaint = process.stderr.read()
        assert said in complaint
        assert complaint.count("\n") == 1


def test_the_battery_is_reported_where_it_is_published(run: Run, domain_id: int) -> None:
    with DdsDomain(domain_id, "lo") as dds:
        writer = dds.writer(BATTERY_TOPIC, BmsState)
        run.started("--domain", str(domain_id), "--interface", "lo")
        run.shared["recorder"].latest(run.status)
        assert run.status["battery"] == -1

        def reported() -> bool:
            writer.write(BmsState(soc=64).serialize())
            run.shared["recorder"].latest(run.status)
            return bool(run.status["battery"] == 64)

        until(reported)
