"""Is this computer fast and free enough: loop, policy, rights, disk?"""

import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from onboard.configs.errors import RolloutError
from onboard.policies.policy import Policy
from onboard.runtime import realtime
from onboard.runtime.clock import GridClock
from onboard.runtime.link import State
from onboard.runtime.preflight.report import Check, Finding, judged, passed

BLOCK_BYTES = 64 * 1024
"""About what the recorder syncs at a time, every 0.2 s."""
SYNCS = 20
SUSTAINED_BYTES = 32 << 20
SUSTAINED_BLOCK = 1 << 20
DISK_BUDGET_S = 3.0
"""A slow disk is known to be slow after so long, for each of the two measurements."""
HUNG_MS = 800.0
"""With the 0.2 s between two syncs, a longer wait lets a cut of the power take more than 1 s."""
ROOM = 4.0
"""A disk should take so many times what the run writes: others write too."""
GOVERNORS = Path("/sys/devices/system/cpu")


class TimingChecks:
    """The checks of one computer.

    Args:
        policy: what runs in every tick of the dry loop.
        period_ns: control period.
        seconds: how long the dry loop lasts.
        out: folder of the rollouts.
        bytes_per_s: what the run will write.
        minutes: how long the planned run lasts.
    """

    def __init__(
        self, policy: Policy, period_ns: int, seconds: float, out: Path, bytes_per_s: float, minutes: float
    ) -> None:
        self._policy = policy
        self._period_ns = period_ns
        self._seconds = seconds
        self._out = out
        self._bytes_per_s = bytes_per_s
        self._minutes = minutes
        self._measured: tuple[np.ndarray, np.ndarray] | None = None

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        looks: Sequence[tuple[str, Callable[[], Finding]]] = (
            ("loop", lambda: judge_loop(self._dry_loop()[0], self._period_ns)),
            ("inference", lambda: judge_inference(self._dry_loop()[1], self._period_ns)),
            ("threads", lambda: judge_threads(added_threads(self._policy))),
            ("governor", look_at_governor),
            ("rights", look_at_rights),
            ("disk_speed", self._disk),
            ("disk_space", self._space),
        )
        return [Check("timing", name, look) for name, look in looks]

    def _dry_loop(self) -> tuple[np.ndarray, np.ndarray]:
        """Lateness and cost of the policy in ms, tick by tick, on the grid of the run."""
        if self._measured is None:
            self._measured = dry_loop(self._policy, self._period_ns, self._seconds)
        return self._measured

    def _disk(self) -> Finding:
        return judge_disk(sync_times_ms(self._out), sustained_times_ms(self._out), self._bytes_per_s)

    def _space(self) -> Finding:
        stats = os.statvfs(_existing(self._out))
        free = stats.f_bavail * stats.f_frsize
        need = 2 * self._minutes * 60 * self._bytes_per_s  # journal, and rollout beside it while it is made
        return judged(
            f"{free / 1e9:.1f} GB free, {need / 1e9:.2f} GB needed for {self._minutes:g} minutes",
            warn=free < 2 * need + 500e6,
            fail=free < need,
            advice="make room, or name another disk with --out",
            values={"free_bytes": free, "needed_bytes": need},
        )


def dry_loop(policy: Policy, period_ns: int, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Observe and infer on the grid with a run's rights, on a robot that stands in the start pose."""
    state, command, clock = State(), policy.neutral_command(), GridClock(period_ns)
    state.q[:] = policy.start_pose
    state.torso_quat_wxyz[:], state.torso_gyro[:] = (1, 0, 0, 0), 0
    policy.reset(state)
    policy.warm()
    ticks = max(2, round(seconds * 1e9 / period_ns))
    late_ms, cost_ms = np.zeros(ticks), np.zeros(ticks)
    with realtime.parent_rights(realtime.may_use_fifo()):
        clock.start()
        for tick in range(ticks):
            skipped = clock.wait()
            late_ms[tick] = (clock.late_ns + skipped * period_ns) / 1e6
            begin = time.monotonic_ns()
            policy.observe(state, command, tick)
            base = policy.infer()
            policy.target(base)
            cost_ms[tick] = (time.monotonic_ns() - begin) / 1e6
            policy.commit(base)
    policy.reset(state)
    return late_ms, cost_ms


def judge_loop(late_ms: np.ndarray, period_ns: int) -> Finding:
    """How late the grid's points are met."""
    tail, longest = (float(value) for value in np.percentile(late_ms, (99, 100)))
    return judged(
        f"late by p99 {tail:.2f} ms, at most {longest:.2f} ms in {late_ms.size} ticks",
        warn=tail > 2.0 or longest > 10.0,
        fail=tail > 10.0 or int((late_ms * 1e6 > period_ns).sum()) > 1,
        advice="stop other work on this computer; grant real-time rights (rtprio, memlock in limits.conf)",
        values={"late_p99_ms": tail, "late_max_ms": longest},
    )


def judge_inference(cost_ms: np.ndarray, period_ns: int) -> Finding:
    """What the policy costs of a period."""
    tail, longest, period = float(np.percentile(cost_ms, 99)), float(cost_ms.max()), period_ns / 1e6
    return judged(
        f"observation and inference p99 {tail:.2f} ms, at most {longest:.2f} ms of {period:g} ms",
        warn=tail > 0.25 * period or longest > 0.5 * period,
        fail=tail > 0.75 * period,
        advice="take a smaller network or a faster computer",
        values={"cost_p99_ms": tail, "cost_max_ms": longest},
    )


def added_threads(policy: Policy) -> int:
    """Threads that this process has more of after a policy was built anew and has inferred."""
    before = len(os.listdir("/proc/self/task"))
    fresh = Policy(policy.bundle, policy.bundle.robot)
    fresh.infer()
    return len(os.listdir("/proc/self/task")) - before


def judge_threads(added: int) -> Finding:
    """Inference on the caller's own thread: more of them fight over cores, and wake up late."""
    return judged(
        f"inference adds {max(0, added)} threads; {os.cpu_count()} cores",
        warn=added > 0,
        fail=False,
        advice="ONNX Runtime was to run on one thread; is another version installed, or OMP_NUM_THREADS set?",
        values={"added_threads": max(0, added)},
    )


def look_at_governor(folder: Path = GOVERNORS) -> Finding:
    """Whether the cores may clock down between two ticks."""
    found = sorted({path.read_text().strip() for path in folder.glob("cpu[0-9]*/cpufreq/scaling_governor")})
    if not found:
        return passed("not shown by this system")
    return judged(
        ", ".join(found),
        warn=found != ["performance"],
        fail=False,
        advice="sudo cpupower frequency-set -g performance (Jetson: sudo jetson_clocks)",
    )


def look_at_rights() -> Finding:
    """Which real-time rights a run would get."""
    fifo, limit = realtime.may_use_fifo(), resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    unlimited = limit == resource.RLIM_INFINITY or os.geteuid() == 0
    memory = "unlimited" if unlimited else f"{limit >> 20} MiB"
    return judged(
        f"SCHED_FIFO {'granted' if fifo else 'refused'}, locked memory {memory}",
        warn=not fifo or not unlimited,
        fail=False,
        advice="rtprio 99 and memlock unlimited in limits.conf; without, targets expire after 100 ms, not 50",
    )


def sync_times_ms(folder: Path) -> np.ndarray:
    """Times that blocks take to reach the disk for certain; at least one, for at most 3 s.

    Raises:
        RolloutError: nothing can be written there.
    """
    times = _timed_writes(folder, BLOCK_BYTES, SYNCS)
    return np.array(times) * 1e3


def sustained_times_ms(folder: Path) -> np.ndarray:
    """The same for blocks of 1 MiB, one after the other.

    Raises:
        RolloutError: nothing can be written there.
    """
    times = _timed_writes(folder, SUSTAINED_BLOCK, SUSTAINED_BYTES // SUSTAINED_BLOCK)
    return np.array(times) * 1e3


def _timed_writes(folder: Path, size: int, count: int) -> list[float]:
    """Seconds that each block took; ends early once it lasts too long."""
    block: bytes = os.urandom(size)
    times: list[float] = []
    try:
        with tempfile.TemporaryFile(dir=_existing(folder), buffering=0) as file:
            until = time.monotonic() + DISK_BUDGET_S
            while len(times) < count and time.monotonic() < until:
                begin = time.monotonic()
                file.write(block)
                os.fdatasync(file.fileno())
                times.append(time.monotonic() - begin)
    except OSError as error:
        raise RolloutError(
            f"--out {folder}: can't be written ({error.strerror}); name another folder"
        ) from error
    return times


def judge_disk(times_ms: np.ndarray, sustained_ms: np.ndarray, need_per_s: float) -> Finding:
    """The recorder syncs every 0.2 s, and what it can't write must not pile up."""
    median, longest = float(np.median(times_ms)), float(max(times_ms.max(), sustained_ms.max()))
    bytes_per_s = SUSTAINED_BLOCK / (float(sustained_ms.mean()) / 1e3)
    return judged(
        f"{BLOCK_BYTES >> 10} KiB on disk in {median:.1f} ms, at most {longest:.1f} ms; sustained "
        f"{bytes_per_s / 1e6:.2f} MB/s, the run writes {need_per_s / 1e6:.2f}",
        warn=longest > 100.0 or bytes_per_s < ROOM * need_per_s,
        fail=median > 100.0 or longest > HUNG_MS or bytes_per_s < need_per_s,
        advice="a cut of the power would lose more than 1 s; name a faster disk with --out",
        values={"sync_ms": median, "sync_max_ms": longest, "sustained_mb_s": bytes_per_s / 1e6},
    )


def _existing(folder: Path) -> Path:
    """The folder, or the first above it that is there already."""
    return next(
        (path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()), Path("/")
    )
