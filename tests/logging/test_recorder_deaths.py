"""Recorders killed where it hurts: while they convert, while they clean up, together with their parent."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from onboard.cli.log import run as log
from onboard.logging.convert import lowstate_journal
from onboard.logging.journal import create_journal
from onboard.logging.layout import lowstate_dtype
from onboard.logging.recovery import scan
from onboard.runtime.ports import RECORDER
from tests.logging.recorder_run import TIMEOUT_S, Run, until

STUCK = (
    sys.executable,
    "-c",
    """
import sys, time
from onboard.logging import convert, recorder

whole = convert.write_whole

def half(target, size, fill, retry, tell):
    def then_hang(h5):
        fill(h5)
        h5.flush()
        time.sleep(600)
    whole(target, size, then_hang, retry, tell)

convert.write_whole = half
sys.exit(recorder.main(sys.argv[1:]))
""",
)
"""A recorder that gets no further than into the midst of its conversion."""


def ticks(path: Path) -> list[int]:
    with h5py.File(path, "r") as h5:
        return [int(tick) for tick in h5["rollout/tick"][:]]


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(TIMEOUT_S)


def test_killed_in_the_conversion_twice_in_a_row(run: Run) -> None:
    run.ticks(1, 100)
    for _ in range(2):
        process = run.start(program=STUCK)
        run.beat(recorder_stop=1, end_reason=b"over")
        half_made = run.rollout.with_name(f".{run.rollout.name}.part")
        until(half_made.exists)
        kill(process)
        assert scan(run.journal).end is not None
        assert not run.rollout.exists()
    process = run.start()
    assert process.wait(TIMEOUT_S) == 0
    assert ticks(run.rollout) == list(range(1, 101))
    assert [path.name for path in run.rollout.parent.iterdir()] == [run.rollout.name], "nothing is left over"


def test_killed_while_it_cleaned_up(run: Run) -> None:
    run.ticks(1, 10)
    create_journal(lowstate_journal(run.journal), lowstate_dtype(), {})
    process = run.started()
    assert run.stop(process) == 0
    create_journal(lowstate_journal(run.journal), lowstate_dtype(), {})  # the last thing to be removed
    before = run.rollout.read_bytes()
    process = run.start()
    assert process.wait(TIMEOUT_S) == 0
    assert run.rollout.read_bytes() == before
    assert not lowstate_journal(run.journal).exists()


def test_killed_together_with_its_parent_while_control_goes_on(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run.ticks(1, 50)
    run.beat()
    shell = run.start(wrap=("sh", "-c", '"$@" & echo $! >&2; wait', "sh"))
    assert shell.stderr is not None
    recorder = int(shell.stderr.readline())
    until(lambda: run.recorded(50))
    kill(shell)
    subprocess.run(["kill", "-9", str(recorder)], check=True)
    run.ticks(51, 90)
    until(lambda: not Path("/proc", str(recorder)).exists() or _is_zombie(recorder))
    assert log(["recover", str(run.journal), "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["rows"], result["rows_lost"]) == (90, 0)
    assert ticks(run.rollout) == list(range(1, 91))
    assert run.shared.path.exists(), "what may be needed again is left alone"


def _is_zombie(pid: int) -> bool:
    return Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_sigterm_to_everybody_costs_no_row(run: Run) -> None:
    """As when a computer is shut down: the parent still needs a moment to stop the robot in order."""
    run.ticks(1, 10)
    run.beat()
    process = run.started()
    process.terminate()
    until(lambda: run.recorded(10))
    run.beat()
    run.ticks(11, 60)
    until(lambda: run.recorded(60))
    assert process.poll() is None
    assert run.stop(process) == 0
    assert ticks(run.rollout) == list(range(1, 61))


def test_the_first_word_of_a_successor_raises_no_alarm(run: Run) -> None:
    process = run.started()
    first = np.zeros((), RECORDER)
    assert run.shared["recorder"].read(1, first)
    assert first["disk_free"] > 0
    assert not first["full"]
    assert run.stop(process) == 0


def test_two_recorders_never_write_one_journal(run: Run) -> None:
    run.ticks(1, 10)
    first = run.started()
    until(lambda: run.recorded(10))
    second = run.start()
    assert second.wait(TIMEOUT_S) == 2
    assert second.stderr is not None
    complaint = second.stderr.read()
    assert "a recorder is still at work on it" in complaint
    assert complaint.count("\n") == 1
    assert run.stop(first) == 0
    assert ticks(run.rollout) == list(range(1, 11))
