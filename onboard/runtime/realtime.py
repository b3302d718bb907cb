"""Real-time rights for one process: asked for step by step, each granted or refused, never fatal."""

import contextlib
import ctypes
import gc
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

PRIORITY_GATEWAY = 60
PRIORITY_CONTROL = 50
PRIORITY_PARENT = 40
PRIORITY_RECORDER = 30
"""Only where a policy waits for what the recorder process estimates."""
PRIORITY_ROBOT = 70
"""Of a simulated robot: the real one does not wait for this machine either."""

_MCL_CURRENT_AND_FUTURE = 1 | 2
_PR_SET_TIMERSLACK = 29


class RealtimeReport(NamedTuple):
    """What was asked and what the system said."""

    fifo: bool
    text: str  # every step and its answer, for the log


NOT_ASKED = RealtimeReport(False, "not asked for")


def setup_realtime(priority: int, cpu: int | None) -> RealtimeReport:
    """Ask for locked memory, a sharp timer, a CPU and SCHED_FIFO for this process, all its threads included.

    Call it last, when everything is loaded and every thread exists: what a process does while it starts
    would hold up others of its priority, and the threads that receive from DDS must be as prompt as the
    one that waits for them.

    Args:
        priority: of SCHED_FIFO.
        cpu: the core to stay on; None leaves that to the scheduler.
    """
    steps: list[tuple[str, Callable[[], None]]] = [
        ("locked memory", _lock_memory),
        ("timer slack 1 ns", _sharpen_timer),
    ]
    if cpu is not None:
        steps.append((f"CPU {cpu}", lambda: _each_thread(lambda thread: os.sched_setaffinity(thread, {cpu}))))
    parameters = os.sched_param(priority)
    steps.append(
        ("SCHED_FIFO", lambda: _each_thread(lambda t: os.sched_setscheduler(t, os.SCHED_FIFO, parameters)))
    )
    answers = {name: _refusal(action) or "granted" for name, action in steps}
    text = ", ".join(f"{name} {answer}" for name, answer in answers.items())
    return RealtimeReport(answers["SCHED_FIFO"] == "granted", text)


def prefer(priority: int) -> bool:
    """SCHED_FIFO for every thread of this process and nothing else; whether it was granted."""
    parameters = os.sched_param(priority)
    return not _refusal(lambda: _each_thread(lambda t: os.sched_setscheduler(t, os.SCHED_FIFO, parameters)))


def yield_to_others(nice: int) -> None:
    """An ordinary process again, and a patient one."""
    ordinary = os.sched_param(0)
    _refusal(lambda: _each_thread(lambda t: os.sched_setscheduler(t, os.SCHED_OTHER, ordinary)))
    with contextlib.suppress(OSError):
        os.nice(nice)


def yield_no_longer() -> None:
    """As patient as any other process again, where the system allows that (to root, or by RLIMIT_NICE)."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)


@contextlib.contextmanager
def parent_rights(wanted: bool) -> Iterator[None]:
    """SCHED_FIFO for this process while the context lasts; its children and new threads start without it."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    if wanted:
        with contextlib.suppress(OSError):
            fifo = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, fifo, os.sched_param(PRIORITY_PARENT))
    try:
        yield
    finally:
        # Without privileges the reset flag can't be taken back, the priority can.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, parameters)
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, policy, parameters)


def freeze_heap() -> None:
    """Collect once and keep what is alive out of every later collection (a full one costs 75 ms)."""
    gc.collect()
    gc.freeze()
    gc.disable()


def may_use_fifo() -> bool:
    """Whether this process could run under SCHED_FIFO, found out by trying in a child."""
    child = os.fork()
    if child == 0:
        refused = 1
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY_CONTROL))
            refused = 0
        os._exit(refused)
    return os.waitpid(child, 0)[1] == 0


def spare_cpu(wanted: int) -> int | None:
    """A core for one process: the `wanted`-th of those allowed, None on a single-core machine."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[wanted % len(allowed)] if len(allowed) > 1 else None


def _refusal(action: Callable[[], None]) -> str:
    """Run one step; why it was refused, or ""."""
    try:
        action()
    except OSError as error:
        return f"refused ({error.strerror})"
    return ""


def _each_thread(action: Callable[[int], None]) -> None:
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            action(int(thread))


def _lock_memory() -> None:
    _checked(_libc().mlockall(_MCL_CURRENT_AND_FUTURE))


def _sharpen_timer() -> None:
    _checked(_libc().prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
