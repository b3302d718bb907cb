"""What each fault on real DDS needs around it: disks, files, clocks, a faulty program, and its injection."""

import contextlib
import os
import pty
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.faulty_control import LEAK, SLOW_POLICY, SLOW_RESIDUAL, STUCK_POLICY
from benchmarks.gateway import CONTROL, FAULTY, FAULTY_RUN, GATEWAY
from onboard.configs.errors import LinkError
from onboard.configs.loader import shipped
from onboard.logging.convert import convert
from onboard.logging.rollout import Rollout
from onboard.runtime import idl
from onboard.runtime.claim import sole_run
from onboard.runtime.dds import RawWriter
from onboard.runtime.wire import LowCmdWriter
from tests.disks import ext4, mounted, read_only_tmpfs, small_tmpfs
from tests.faults.lock_step import RESIDUAL
from tests.faults.wall_clock import WallClock
from tests.runtime.real_run import RealRun

RECORDER = "onboard.runtime.recording"
BETWEEN_INTERRUPTS_S = 0.05
HELD_UP_S = 0.8
STUTTER_S = (0.3, 0.05)
"""A slow recorder is held up for so long, then goes on for so long."""
DISK_STUTTER_S = 0.4
SMALL_DISK_KIB = 1200
CLOCK_STEP_S = 3600.0
Injection = Callable[[RealRun], None]


def nothing(_run: RealRun) -> None:
    """Nothing to do."""


@dataclass
class Stage:
    """One fault and its surroundings.

    Attributes:
        inject: causes it in a walking robot; where the run is to be refused, before it starts.
        options: further options of the run.
        program: the module that takes the command line of `onboard`.
        run_environment, sim_environment: variables of the run's processes and of the simulator's.
        stdin: descriptor of the run's standard input; None for none.
        since_fault: targets go on after the fault, so the time is counted from it, not from the last target.
        foreign: somebody else commands too; only the run's own commands are looked at.
        ease: takes the fault away, before the run is ended.
        measured_ms: what to show instead of a reaction time, once the run has ended.
    """

    inject: Injection
    options: Sequence[str] = ()
    program: str = "onboard"
    run_environment: Mapping[str, str] = field(default_factory=dict)
    sim_environment: Mapping[str, str] = field(default_factory=dict)
    stdin: int | None = None
    since_fault: bool = False
    foreign: bool = False
    ease: Injection = nothing
    measured_ms: Callable[[], float] | None = None


Staging = Callable[[Path], AbstractContextManager[Stage]]


def at_once(inject: Injection, **more: object) -> Staging:
    """A fault that needs no surroundings."""
    return lambda _folder: nullcontext(Stage(inject, **more))  # type: ignore[arg-type]


def to(module: str, number: int) -> Injection:
    """An injection that sends one signal; "" is the parent."""
    return lambda run: run.signal(number, module)


def interrupt_twice(run: RealRun) -> None:
    """SIGINT, a little later the next."""
    run.signal(signal.SIGINT)
    time.sleep(BETWEEN_INTERRUPTS_S)
    run.signal(signal.SIGINT)


def stop_by_remote_alone(run: RealRun) -> None:
    """Control can't hear the button."""
    os.kill(run.child(CONTROL), signal.SIGSTOP)
    run.sim.tell("press damp 0.2")


def hold_up_the_parent(run: RealRun) -> None:
    """The parent is stopped, and goes on when all is over."""
    run.signal(signal.SIGSTOP)
    threading.Timer(HELD_UP_S, run.signal, [signal.SIGCONT]).start()


def faulty(number: int) -> Staging:
    """A signal to the control process with the faults built in."""
    return at_once(to(FAULTY, number), program=FAULTY_RUN)


@contextmanager
def residual_slow(folder: Path) -> Iterator[Stage]:
    """Every correction takes longer than a tick."""
    path = folder / "residual.yaml"
    path.write_text(RESIDUAL, encoding="utf-8")
    options = ["--residual", str(path), "--arm", "keep"]
    yield Stage(to(FAULTY, SLOW_RESIDUAL), options, FAULTY_RUN)


@contextmanager
def recorder_slow(_folder: Path) -> Iterator[Stage]:
    """The recorder is held up again and again."""
    done = threading.Event()
    held: list[threading.Thread] = []

    def stutter(pid: int) -> None:
        stop_s, go_s = STUTTER_S
        while not done.is_set():
            os.kill(pid, signal.SIGSTOP)
            done.wait(stop_s)
            os.kill(pid, signal.SIGCONT)
            done.wait(go_s)

    def inject(run: RealRun) -> None:
        held.append(threading.Thread(target=stutter, args=[run.child(RECORDER)], daemon=True))
        held[0].start()

    def ease(_run: RealRun) -> None:
        done.set()
        for thread in held:
            thread.join()

    try:
        yield Stage(inject, ease=ease)
    finally:
        done.set()


def fill(folder: Path) -> None:
    """Take what room a disk has left."""
    with (folder / "of somebody else").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


@contextmanager
def disk_full(folder: Path) -> Iterator[Stage]:
    """Somebody else fills the disk."""
    with small_tmpfs(folder / "disk", SMALL_DISK_KIB) as disk:
        yield Stage(lambda _run: fill(disk), ["--out", str(disk)])


@contextmanager
def disk_full_before(folder: Path) -> Iterator[Stage]:
    """There is no room from the start."""
    with small_tmpfs(folder / "disk", 64) as disk:
        fill(disk)
        yield Stage(nothing, ["--out", str(disk)])


@contextmanager
def disk_read_only(folder: Path) -> Iterator[Stage]:
    """The kernel finds an error and lets nobody write any more."""
    with ext4(folder / "disk", folder / "disk.img", 64) as disk:
        yield Stage(lambda _run: disk.turn_read_only(), ["--out", str(disk.folder)])


@contextmanager
def disk_read_only_before(folder: Path) -> Iterator[Stage]:
    """Nothing can be written from the start."""
    with read_only_tmpfs(folder / "disk") as disk:
        yield Stage(nothing, ["--out", str(disk)])


@contextmanager
def disk_slow(folder: Path) -> Iterator[Stage]:
    """Whoever writes or waits for the disk hangs most of the time."""
    with ext4(folder / "disk", folder / "disk.img", 64) as disk, contextlib.ExitStack() as stuttering:
        yield Stage(
            lambda _run: stuttering.enter_context(disk.slow(DISK_STUTTER_S)),
            ["--out", str(disk.folder)],
            ease=lambda _run: stuttering.close(),
        )


@contextmanager
def disk_hung(folder: Path) -> Iterator[Stage]:
    """The disk gives no answer until it is thawed."""
    with ext4(folder / "disk", folder / "disk.img", 64) as disk:
        yield Stage(lambda _run: disk.freeze(), ["--out", str(disk.folder)], ease=lambda _run: disk.thaw())


@contextmanager
def power_loss(folder: Path) -> Iterator[Stage]:
    """Nothing more reaches the disk; what it holds then, the computer would find again."""
    cut_ns: list[int] = []
    memory: list[Path] = []
    with ext4(folder / "disk", folder / "disk.img") as disk:

        def inject(run: RealRun) -> None:
            memory.append(run.mapping)
            cut_ns.append(time.monotonic_ns())
            disk.cut_power()

        def lost_ms() -> float:
            memory[0].unlink(missing_ok=True)  # which a power cut takes too
            with mounted(folder / "after", disk.copy(folder / "cut.img")) as after:
                (journal,) = after.folder.glob("*.journal")
                with Rollout(convert(journal, folder)) as rollout:
                    return float(cut_ns[0] - int(rollout.column("recv_ns")[-1])) / 1e6

        yield Stage(inject, ["--out", str(disk.folder)], measured_ms=lost_ms)


def wall_clock(step_s: float, *, of_robot: bool = False) -> Staging:
    """The wall clock is set, here or on the robot."""

    @contextmanager
    def stage(folder: Path) -> Iterator[Stage]:
        clock = WallClock(folder)
        whose = "sim_environment" if of_robot else "run_environment"
        yield Stage(lambda _run: clock.shift(step_s), **{whose: clock.environment})  # type: ignore[arg-type]

    return stage


@contextmanager
def config_changed(folder: Path) -> Iterator[Stage]:
    """Every file that the run has read is overwritten; then the recorder dies, and a new one takes over."""
    files = {
        "--robot": (folder / "robot.yaml", shipped("robots", "g1_29dof").read_text(encoding="utf-8")),
        "--safety": (folder / "safety.yaml", shipped("safety", "g1").read_text(encoding="utf-8")),
        "--residual": (folder / "residual.yaml", RESIDUAL),
    }
    for path, text in files.values():
        path.write_text(text, encoding="utf-8")

    def inject(run: RealRun) -> None:
        for path, _ in files.values():
            path.write_text("{ no: [longer, a configuration", encoding="utf-8")
        run.signal(signal.SIGKILL, RECORDER)

    options = [word for name, (path, _) in files.items() for word in (name, str(path))]
    yield Stage(inject, [*options, "--arm", "keep"])


def foreign_frame() -> bytearray:
    """A command as somebody else would send it: it holds all joints, so that it is no damping one."""
    zeros = np.zeros(29, np.float32)
    return LowCmdWriter(np.ones(29, bool)).fill(zeros, zeros + 1, zeros, 5)


def keep_sending(writer: RawWriter, done: threading.Event) -> None:
    """Send commands until told to stop, or until the domain is left."""
    with contextlib.suppress(LinkError):
        writer.write(foreign_frame())
        while not done.wait(0.005):
            writer.write(foreign_frame())


@contextmanager
def second_commander(_folder: Path) -> Iterator[Stage]:
    """Somebody else sends commands too, from now on and for good."""
    done = threading.Event()

    def inject(run: RealRun) -> None:
        writer = run.tap.dds.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
        until = time.monotonic() + 5.0
        while writer.matched() < 3 and time.monotonic() < until:  # simulator, gateway, and this program
            time.sleep(0.005)

        threading.Thread(target=keep_sending, args=[writer, done], daemon=True).start()

    try:
        yield Stage(inject, foreign=True, since_fault=True, ease=lambda _run: done.set())
    finally:
        done.set()


@contextmanager
def terminal_lost(_folder: Path) -> Iterator[Stage]:
    """The terminal of a run with --keyboard is closed, as when an SSH link breaks."""
    ours, theirs = pty.openpty()
    try:
        yield Stage(lambda _run: os.close(ours), ["--keyboard"], stdin=theirs, since_fault=True)
    finally:
        os.close(theirs)


STAGES: dict[str, Staging] = {
    "control_kill": at_once(to(CONTROL, signal.SIGKILL)),
    "control_stop": at_once(to(CONTROL, signal.SIGSTOP)),
    "control_segfault": at_once(to(CONTROL, signal.SIGSEGV)),
    "control_memory": faulty(LEAK),
    "control_loop": faulty(signal.SIGUSR1),
    "control_gil": faulty(signal.SIGUSR2),
    "policy_slow": faulty(SLOW_POLICY),
    "policy_stuck": faulty(STUCK_POLICY),
    "residual_slow": residual_slow,
    "gateway_kill": at_once(to(GATEWAY, signal.SIGKILL)),
    "gateway_stop": at_once(to(GATEWAY, signal.SIGSTOP)),
    "parent_kill": at_once(to("", signal.SIGKILL), since_fault=True),
    "parent_stop": at_once(hold_up_the_parent, since_fault=True),
    "recorder_kill": at_once(to(RECORDER, signal.SIGKILL)),
    "recorder_stop": at_once(to(RECORDER, signal.SIGSTOP), ease=to(RECORDER, signal.SIGCONT)),
    "recorder_slow": recorder_slow,
    "shared_memory_unlinked": at_once(lambda run: run.mapping.unlink()),
    "remote_stop": at_once(stop_by_remote_alone),
    "sigint": at_once(to("", signal.SIGINT)),
    "sigint_twice": at_once(interrupt_twice, since_fault=True),
    "sigterm": at_once(to("", signal.SIGTERM)),
    "sigtstp": at_once(to("", signal.SIGTSTP)),
    "sighup": at_once(to("", signal.SIGHUP), since_fault=True),
    "terminal_lost": terminal_lost,
    "second_commander": second_commander,
    "disk_full": disk_full,
    "disk_read_only": disk_read_only,
    "disk_slow": disk_slow,
    "disk_hung": disk_hung,
    "power_loss": power_loss,
    "clock_forward": wall_clock(CLOCK_STEP_S),
    "clock_back": wall_clock(-CLOCK_STEP_S),
    "robot_clock_forward": wall_clock(CLOCK_STEP_S, of_robot=True),
    "robot_clock_back": wall_clock(-CLOCK_STEP_S, of_robot=True),
    "config_changed": config_changed,
}
"""Faults of a walking robot's run."""


@contextmanager
def commander_before(_folder: Path) -> Iterator[Stage]:
    """Somebody else sends commands already."""
    done = threading.Event()

    def inject(run: RealRun) -> None:
        writer = run.tap.dds.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
        threading.Thread(target=keep_sending, args=[writer, done], daemon=True).start()

    try:
        yield Stage(inject, foreign=True)
    finally:
        done.set()


@contextmanager
def run_before(_folder: Path) -> Iterator[Stage]:
    """Another run has the robot."""
    with contextlib.ExitStack() as claim:
        yield Stage(lambda run: claim.enter_context(sole_run(run.tap.dds.id, "lo")))


REFUSED: dict[str, Staging] = {
    "mode_machine_before": at_once(lambda run: run.sim.tell("fault mode_machine 6")),
    "commander_before": commander_before,
    "run_before": run_before,
    "disk_full_before": disk_full_before,
    "disk_read_only_before": disk_read_only_before,
}
"""Faults that are there before a run starts."""
