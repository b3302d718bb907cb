"""Durations of stages, at the ends of what the record can hold."""

import time

import pytest

from onboard.logging.layout import STAGES
from onboard.runtime.stages import LONGEST_NS, Stages


def test_a_process_that_was_stopped_for_long_goes_on_with_the_longest_duration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1_000_000]
    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    stages = Stages()
    stages.begin()
    now[0] += 250
    stages.mark()
    now[0] += 3 * LONGEST_NS
    stages.mark_until(STAGES[-1])
    assert stages.durations.tolist() == [250, LONGEST_NS, *[0] * (len(STAGES) - 2)]
    assert stages.tick_us > LONGEST_NS / 1000
