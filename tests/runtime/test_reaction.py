"""How fast a dead control process ends in damping, on real DDS; a long suite (`make test-all`)."""

import signal
import time
from pathlib import Path

import pytest

from onboard.configs.events import Mode
from onboard.logging.rollout import Rollout
from tests.runtime.real_run import WALK, real_run
from tests.runtime.test_run_real import CONTROL

BOUND_MS = 110.0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("attempt", range(3))
def test_control_dead_while_walking_is_damped_in_time(
    tmp_path: Path, number: signal.Signals, attempt: int
) -> None:
    with real_run(tmp_path, WALK) as run:
        run.until_mode(Mode.POLICY)
        until = time.monotonic() + 0.5 + 0.007 * attempt
        run.until(lambda: time.monotonic() > until)
        run.signal(number, CONTROL)
        run.end()
        frames = run.tap.frames
        last = max(index for index, frame in enumerate(frames) if not frame.damping)
        wall_minus_monotonic_ns = time.time_ns() - time.monotonic_ns()
        (path,) = (tmp_path / "out").glob("*.h5")
        with Rollout(path) as rollout:
            last_target_ns = int(rollout.column("send_ns")[-1]) + wall_minus_monotonic_ns
        reaction_ms = (frames[last + 1].time_ns - last_target_ns) / 1e6
        assert 0 < reaction_ms < BOUND_MS
        assert all(frame.damping for frame in frames[last + 1 :])
