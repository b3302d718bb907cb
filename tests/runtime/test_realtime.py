"""Rights are asked for step by step; a refusal is reported and never fatal."""

import os
from collections.abc import Callable

import pytest

from onboard.runtime import realtime


def test_a_system_that_refuses_everything_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    for name in ("sched_setscheduler", "sched_setaffinity"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(realtime, "_lock_memory", refuse)
    monkeypatch.setattr(realtime, "_sharpen_timer", refuse)
    report = realtime.setup_realtime(50, 0)
    assert not report.fifo
    assert report.text.count("refused (Operation not permitted)") == 4


def test_every_thread_gets_the_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    remember: Callable[..., None] = lambda thread, *_: seen.append(thread)  # noqa: E731 - one line is enough
    monkeypatch.setattr(os, "sched_setscheduler", remember)
    monkeypatch.setattr(realtime, "_lock_memory", lambda: None)
    assert realtime.setup_realtime(50, None).fifo
    assert sorted(seen) == sorted(int(thread) for thread in os.listdir("/proc/self/task"))


def test_probing_for_rights_changes_nothing_here() -> None:
    before = os.sched_getscheduler(0)
    realtime.may_use_fifo()
    assert os.sched_getscheduler(0) == before


@pytest.mark.parametrize("wanted", [True, False])
def test_the_parents_rights_end_with_the_run(wanted: bool) -> None:
    before = os.sched_getscheduler(0)
    with realtime.parent_rights(wanted):
        if wanted and realtime.may_use_fifo():
            assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
    assert os.sched_getscheduler(0) == before


def test_a_core_of_its_own_only_where_there_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert realtime.spare_cpu(1) is None
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 5})
    assert [realtime.spare_cpu(n) for n in range(3)] == [2, 5, 2]
