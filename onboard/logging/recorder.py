"""The recorder process: owns the files of a run, so that nothing on a disk can disturb the loop.

    python -m onboard.runtime.recording --shm FILE --journal FILE --robot NAME
        [--domain N --interface NAME] [--external-pose SOURCE] [--lowstate] [--prompt]

That module hands the estimator of contact and base velocity in; this one runs by itself too, without it.

The parent makes the journal (its header describes the run) before it starts the first recorder. One
that takes over from a killed recorder starts in the same way and goes on behind the last good
record, with what control's ring still holds.

It ends when the parent's port says `recorder_stop`, or when the parent is gone and control has fallen
silent or SIGTERM comes; then it closes the journal and converts it. SIGTERM to everybody at once, as
when a computer is shut down, so costs no row. Exit code 0: the rollout file is there. 3: the journal is
whole but could not be converted; the last line of standard error says why.

What waits for the disk is a thread of its own (`disk.py`); this one only listens and reports.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from onboard.configs.errors import ConfigError, OnboardError, RolloutError
from onboard.configs.external_pose import DDS, pose_address
from onboard.logging.convert import convert, lowstate_journal, remove_journals, rollout_path
from onboard.logging.disk import Backlog, Disk
from onboard.logging.drain import Drain
from onboard.logging.estimation import Estimator, EstimatorFeed
from onboard.logging.journal import Journal, claimed, create_journal
from onboard.logging.layout import lowstate_dtype
from onboard.logging.lowstate import LowStateListener
from onboard.logging.pose_feed import PoseFeed
from onboard.runtime import realtime
from onboard.runtime.dds import DdsDomain, RawReader
from onboard.runtime.external_pose import DdsPoses, UdpPoses
from onboard.runtime.idl import BATTERY_TOPIC, LOW_STATE_TOPIC, BmsState, LowState, state_of_charge
from onboard.runtime.ports import CONTROL, GATEWAY, OPERATOR, RECORDER, open_shared
from onboard.runtime.shm import Shared

PERIOD_S = 0.02
LISTEN_S = 0.004
"""Between two looks at LowState or the external pose where somebody waits for it: two samples."""
NICE = 10
READER_DEPTH = 512
"""LowState samples kept between two polls, one second."""

PARENT_SILENT_NS = 5_000_000_000
CONTROL_SILENT_NS = 2_000_000_000
EXIT_NOT_CONVERTED = 3
_RANKED = (("control", CONTROL), ("gateway", GATEWAY))


class Recorder:
    """Everything that the process does in one cycle.

    Args:
        shared: the run's mapping.
        journal: of the rows.
        backlog: of the full-rate stream, where the run keeps it.
        listener: to LowState; None where there is no robot to listen to.
        feed: of the estimator that the listener passes samples to, where there is one.
        poses: from outside, where the run has them.
        battery: reader of its messages, where there is a robot to listen to.
    """

    def __init__(
        self,
        shared: Shared,
        journal: Journal,
        backlog: Backlog | None,
        listener: LowStateListener | None,
        feed: EstimatorFeed | None = None,
        poses: PoseFeed | None = None,
        battery: RawReader | None = None,
    ) -> None:
        self._shared = shared
        self._journal = journal
        self._listener = listener
        self._feed = feed
        self._poses = poses
        self._battery = battery
        self._drain = Drain(shared["record"], shared["sent"], journal)
        self.disk = Disk(self._drain, journal, backlog)
        self._operator = np.zeros((), OPERATOR)
        self._status = np.zeros((), RECORDER)
        for name in ("contact_force", "base_velocity", "external_pose", "external_velocity"):
            self._status[name] = np.nan
        self._status["contact"] = self._status["battery"] = -1
        self._parent = os.getppid()
        self._last_row_ns = time.monotonic_ns()
        self._last_row = 0
        self.terminated = False

    @property
    def parent_lost(self) -> bool:
        """Whether the parent ended, or has not given a sign of life for 5 s."""
        silent = time.monotonic_ns() - int(self._operator["heartbeat_ns"]) > PARENT_SILENT_NS
        return os.getppid() != self._parent or (silent and int(self._operator["heartbeat_ns"]) > 0)

    @property
    def finished(self) -> bool:
        """Whether the run is over for the recorder."""
        if self._operator["recorder_stop"] or self.disk.error is not None:
            return True
        control_silent = time.monotonic_ns() - self._last_row_ns > CONTROL_SILENT_NS
        if self.terminated and not int(self._operator["heartbeat_ns"]):
            return True
        return self.parent_lost and (control_silent or self.terminated)

    def cycle(self) -> None:
        """Look at the parent and at control, hear what has arrived, report."""
        now = time.monotonic_ns()
        self._shared["operator"].latest(self._operator)
        head = self._shared["record"].head
        if head != self._last_row:
            self._last_row, self._last_row_ns = head, now
        self._listen()
        self._look_at_battery()
        self._report(now)

    def rest(self) -> None:
        """Wait for the next cycle; samples for an estimator and poses age, so they are heard meanwhile."""
        end = time.monotonic() + PERIOD_S
        aging = [feed for feed in (self._feed, self._poses) if feed is not None]
        if not aging:
            time.sleep(PERIOD_S)
            return
        while (left := end - time.monotonic()) > 0.0:
            time.sleep(min(left, LISTEN_S))
            self._listen()
            if any(feed.fresh for feed in aging):
                self._report(time.monotonic_ns())

    def _listen(self) -> None:
        """Take what has arrived, stamped when it is taken and not when the cycle began."""
        if self._listener is not None:
            self._listener.poll()
        if self._poses is not None:
            self._poses.poll(time.monotonic_ns())

    def _look_at_battery(self) -> None:
        sample = self._battery.take() if self._battery is not None else None
        charge = state_of_charge(sample.raw) if sample is not None else None
        if charge is not None:
            self._status["battery"] = min(charge, 100)

    def facts(self) -> dict[str, object]:
        """What is known at the end of the run, for the journal's last frame."""
        names = ("received", "gaps", "reordered", "duplicates", "crc_errors")
        counts: dict[str, object] = {}
        if self._listener is not None:
            counts |= {f"lowstate_{name}": int(self._status[name]) for name in names}
        if self._poses is not None:
            counts |= {
                "external_pose_received": self._poses.received,
                "external_pose_dropped": self._poses.dropped,
            }
        if self._status["battery"] >= 0:
            counts["battery_percent"] = int(self._status["battery"])
        rights = {f"realtime_{name}": self._rights(name, dtype) for name, dtype in _RANKED}
        return {
            "end_reason": self._end_reason(),
            "sync_errors": self._journal.sync_errors,
            **counts,
            **rights,
        }

    def _rights(self, ring: str, dtype: np.dtype) -> str:
        """Real-time rights of a process, as it reported them."""
        status = np.zeros((), dtype)
        self._shared[ring].latest(status)
        return _text(status["rights"])

    def beat(self) -> None:
        """Give a sign of life."""
        self._report(time.monotonic_ns())

    def closed(self) -> None:
        """Tell the others that nothing is left to do."""
        self._status["closed"] = 1
        self._report(time.monotonic_ns())

    def _end_reason(self) -> str:
        reason = _text(self._operator["end_reason"])
        if reason:
            return reason
        control = np.zeros((), CONTROL)
        self._shared["control"].latest(control)
        last = _text(control["reason"]) or "nothing"
        if self.parent_lost:
            return f"the parent process was lost; control's last word: {last}"
        return f"control's last word: {last}"

    def _report(self, now_ns: int) -> None:
        status, journal = self._status, self._journal
        if self._feed is not None:
            self._feed.report(status, now_ns)
        if self._poses is not None:
            self._poses.report(status)
        status["heartbeat_ns"], status["ready"] = now_ns, 1
        status["rows"], status["lost"] = journal.rows, journal.lost
        status["behind"], status["full"] = self._drain.behind, journal.losing
        status["disk_free"] = self.disk.free_bytes
        listener = self._listener
        if listener is not None:
            ticks = listener.ticks
            status["received"], status["crc_errors"] = listener.received, listener.crc_errors
            status["gaps"], status["reordered"], status["duplicates"] = (
                ticks.gaps,
                ticks.reordered,
                ticks.duplicates,
            )
            status["crc_rate"] = listener.crc_rate
        self._shared["recorder"].push(status)


def main(
    argv: list[str] | None = None, make_estimator: Callable[[str], Estimator | None] = lambda robot: None
) -> int:
    """Entry of the process.

    Args:
        argv: of the command line.
        make_estimator: gives the estimator of a robot, by the name of its description; None for none.
    """
    parser = argparse.ArgumentParser(prog="onboard.logging.recorder", description=__doc__)
    parser.add_argument("--shm", type=Path, required=True)
    parser.add_argument(
        "--journal", type=Path, required=True, help="made by the parent, with the run's description"
    )
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--interface", default="", help="listen to rt/lowstate there; without it, to nothing")
    parser.add_argument("--external-pose", default="", help="udp:HOST:PORT to listen on, or dds")
    parser.add_argument("--robot", default="", help="description of the robot, for the estimator")
    parser.add_argument("--prompt", action="store_true", help="a policy waits for the estimates")
    parser.add_argument("--lowstate", action="store_true", help="keep every LowState sample too")
    options = parser.parse_args(argv)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # the parent decides
    if not options.prompt:
        realtime.yield_to_others(NICE)
    try:
        return _serve(options, make_estimator(options.robot) if options.robot else None)
    except OnboardError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def _serve(options: argparse.Namespace, estimator: Estimator | None) -> int:
    shared = open_shared(options.shm)
    with contextlib.ExitStack() as stack:
        stack.callback(shared.close)
        if not options.journal.exists() and rollout_path(options.journal).exists():
            return _tidy(shared, options.journal)
        stack.enter_context(claimed(options.journal))
        journal = Journal(options.journal)
        backlog = Backlog(_open_stream(options.journal)) if options.lowstate else None
        listener = None
        feed = None if estimator is None else EstimatorFeed(estimator)
        dds = battery = None
        if options.interface:
            dds = stack.enter_context(DdsDomain(options.domain, options.interface))
            reader = dds.reader(LOW_STATE_TOPIC, LowState, depth=READER_DEPTH)
            listener = LowStateListener(reader, backlog.keep if backlog else None, feed)
            battery = dds.reader(BATTERY_TOPIC, BmsState)
        poses = _open_poses(options.external_pose, dds, stack)
        recorder = Recorder(shared, journal, backlog, listener, feed, poses, battery)
        signal.signal(signal.SIGTERM, lambda *_: setattr(recorder, "terminated", True))
        if not journal.ended:
            _record(recorder, prompt=options.prompt)
        if backlog is not None:
            backlog.journal.finish({})
        whole = journal.finish(recorder.facts())
        realtime.yield_no_longer()
        code = _convert(options.journal, recorder.beat)
        recorder.closed()
        if recorder.parent_lost and whole:
            shared.unlink()  # nobody is left who would clean up, and nothing in it is still needed
        return code


def _record(recorder: Recorder, *, prompt: bool) -> None:
    """Until the run is over."""
    recorder.cycle()
    recorder.disk.start()
    if prompt:
        realtime.prefer(realtime.PRIORITY_RECORDER)
    while not recorder.finished:
        recorder.cycle()
        recorder.rest()
    recorder.disk.finish()
    recorder.cycle()
    if prompt:
        realtime.yield_to_others(NICE)


def _tidy(shared: Shared, journal: Path) -> int:
    """The recorder before this one had converted everything and was killed while it cleaned up."""
    lowstate_journal(journal).unlink(missing_ok=True)
    status = np.zeros((), RECORDER)
    shared["recorder"].latest(status)
    status["closed"] = 1
    shared["recorder"].push(status)
    return 0


def _open_poses(source: str, dds: DdsDomain | None, stack: contextlib.ExitStack) -> PoseFeed | None:
    """Listen to a source as a run's configuration names it; closed with the stack."""
    if not source:
        return None
    if source == DDS:
        if dds is None:
            raise ConfigError("--external-pose dds: no domain is joined; give --interface, and --domain")
        return PoseFeed(DdsPoses(dds))
    return PoseFeed(stack.enter_context(contextlib.closing(UdpPoses(pose_address(source)))))


def _open_stream(journal: Path) -> Journal:
    path = lowstate_journal(journal)
    if not path.exists():
        create_journal(path, lowstate_dtype(), {})
    return Journal(path)


def _convert(journal: Path, beat: Callable[[], None]) -> int:
    """Make the rollout file, with a sign of life at every step; the journal goes once it is there."""
    try:
        convert(journal, tell=beat)
    except RolloutError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_NOT_CONVERTED
    remove_journals(journal)
    return 0


def _text(value: np.ndarray) -> str:
    return bytes(value).rstrip(b"\0").decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
