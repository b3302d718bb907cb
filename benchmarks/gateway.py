"""How fast a walking robot is damped when a process dies or hangs: `python -m benchmarks.gateway`.

A simulated robot walks on real DDS under a whole run; at a random moment one thing goes wrong, and the
time to the first damping command is read off the wire (source stamps of rt/lowcmd). One simulator
serves all repetitions; every repetition has a run of its own, as each of these faults ends it.

Reaction times are counted from the first publication of the last target. Where targets go on after the
fault it is the fault itself (the parent's death) or the first LowState that shows the pressed button.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Column, Table

from benchmarks.reactions import Reaction, react, summarise
from benchmarks.stillness import in_words, watched_cores
from onboard.cli.sim_process import SimProcess
from onboard.configs.errors import ConfigError
from onboard.configs.events import Mode
from onboard.runtime import idl
from onboard.runtime.clock import wall_clock_ns
from onboard.runtime.dds import DdsDomain, RawReader
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.link import State
from onboard.runtime.realtime import may_use_fifo
from onboard.runtime.remote import DAMP, keys
from onboard.runtime.wire import LowStateDecoder
from tests.runtime.real_run import WALK, RealRun, Tap

CONTROL, GATEWAY, PARENT = "onboard.runtime.control", "onboard.runtime.gateway", ""
FAULTY, FAULTY_RUN = "benchmarks.faulty_control", "benchmarks.faulty_run"
MAX_MS = 150.0


class Kind(NamedTuple):
    """One kind of fault: which process gets which signal, and the bound on the 99th percentile."""

    module: str
    number: signal.Signals
    p99_ms: float
    program: str = "onboard"
    since: str = "command"


KINDS = {
    "control_kill": Kind(CONTROL, signal.SIGKILL, 70.0),
    "control_stop": Kind(CONTROL, signal.SIGSTOP, 70.0),
    "control_loop": Kind(FAULTY, signal.SIGUSR1, 70.0, FAULTY_RUN),
    "control_gil": Kind(FAULTY, signal.SIGUSR2, 70.0, FAULTY_RUN),
    "gateway_kill": Kind(GATEWAY, signal.SIGKILL, 110.0),
    "gateway_stop": Kind(GATEWAY, signal.SIGSTOP, 110.0),
    "parent_kill": Kind(PARENT, signal.SIGKILL, 110.0, since="fault"),
    "remote_stop": Kind(CONTROL, signal.SIGSTOP, 20.0, since="button"),
}
ATTEMPTS = 4
"""Repetitions that did not come about (the robot was not walking, the target expired first) are repeated."""
WALK_S = (0.5, 1.5)
REACTION_S = 0.35
AFTERMATH_S = 0.4


class Range:
    """Robot, ears and a folder for all repetitions.

    Attributes:
        discarded: attempts that did not come to the fault, or to the reaction that was meant.
    """

    def __init__(self, folder: Path, dds: DdsDomain, sim: SimProcess, seed: int) -> None:
        self._folder = folder
        self._sim = sim
        self._tap = Tap(dds)
        self._states = dds.reader(idl.LOW_STATE_TOPIC, idl.LowState, depth=1024)
        self._random = random.Random(seed)
        self.discarded = 0

    def repeat(self, kind: Kind) -> Reaction | None:
        """One repetition that came about; None when none did in several attempts."""
        for _ in range(ATTEMPTS):
            reaction = self._attempt(kind)
            if reaction is not None:
                return reaction
            self.discarded += 1
        return None

    def _attempt(self, kind: Kind) -> Reaction | None:
        self._sim.tell("reset")
        self._tap.frames.clear()
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            run = RealRun(Path(folder), WALK, self._sim, self._tap, program=kind.program)
            try:
                with contextlib.suppress(AssertionError):  # the run ended: on a busy machine targets expire
                    run.until_mode(Mode.POLICY)
                    self._sim.tell("gantry release")
                    _listen(run, self._random.uniform(*WALK_S))
                if not run.running or run.mode is not Mode.POLICY:
                    return None
                return self._fault(run, kind)
            finally:
                run.close()

    def _fault(self, run: RealRun, kind: Kind) -> Reaction | None:
        self._states.take_all()
        pid = run.child(kind.module) if kind.module else run.pid
        fault_ns = wall_clock_ns()
        os.kill(pid, kind.number)
        if kind.since == "button":
            self._sim.tell("press damp 0.2")
        time.sleep(REACTION_S)
        if kind.number is signal.SIGSTOP and kind.module == CONTROL:
            os.kill(pid, signal.SIGCONT)  # what it says now comes too late and must not be heard
        if kind.module:
            run.signal(signal.SIGINT)
        _listen(run, AFTERMATH_S)
        since = {"command": None, "fault": fault_ns, "button": first_press_ns(self._states)}[kind.since]
        reaction = react(run.tap.frames, fault_ns, since)
        late = reaction is not None and reaction.ms < 0  # the target expired before the button was seen
        return None if late or (kind.since == "button" and since is None) else reaction


def _listen(run: RealRun, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        run.tap.listen()
        time.sleep(0.01)


def first_press_ns(states: RawReader) -> int | None:
    """When the first LowState went out that shows the damp button."""
    decoder, state = LowStateDecoder(), State()
    for sample in states.take_all():
        if decoder.decode(sample.raw, state) and keys(state.remote.data) & DAMP == DAMP:
            return sample.source_time_ns
    return None


@contextmanager
def walking_range(seed: int) -> Iterator[Range]:
    """A simulated robot that stands on the floor in its gantry, released, and everything to fault a run."""
    with tempfile.TemporaryDirectory() as name, free_domain_id() as domain, DdsDomain(domain, "lo") as dds:
        arguments = ["--domain", str(domain), "--gantry", "--released", "--start-pose", "crouch"]
        arguments += ["--set", "gantry.height_m=0"]
        with SimProcess(arguments, Path(name) / "sim.json") as sim:
            yield Range(Path(name), dds, sim, seed)


def judge(name: str, row: dict[str, Any]) -> bool:
    """Whether one kind's figures lie within the bounds."""
    return bool(row["p99_ms"] <= KINDS[name].p99_ms and row["max_ms"] <= MAX_MS and not row["sent_after"])


def table(rows: dict[str, dict[str, Any]]) -> Table:
    """The figures for people."""
    names = ("fault", "n", "p50 ms", "p99 ms", "max ms", "sent after", "ok")
    shown = Table(*(Column(name, no_wrap=True) for name in names))
    for name, row in rows.items():
        tail, longest = f"{row['p99_ms']} of {KINDS[name].p99_ms:g}", f"{row['max_ms']} of {MAX_MS:g}"
        verdict = "yes" if judge(name, row) else "NO"
        shown.add_row(name, str(row["n"]), str(row["p50_ms"]), tail, longest, str(row["sent_after"]), verdict)
    return shown


def measure(
    found: dict[str, list[Reaction]],
    n: int,
    seed: int,
    say: Callable[[str], None],
    keep: Callable[[int], None],
) -> None:
    """Every kind `n` times, in turn, so that a busy minute does not fall on one kind alone.

    Args:
        found: by kind, what there is already; the rest is added.
        n: of each kind.
        seed: of the random moments.
        say: takes a line for every repetition.
        keep: called after every round with how many attempts were discarded so far.
    """
    with walking_range(seed) as place:
        for count in range(min(map(len, found.values())), n):
            for name in [name for name, reactions in found.items() if len(reactions) <= count]:
                reaction = place.repeat(KINDS[name])
                if reaction is None:
                    say(f"{count + 1}/{n} {name}: did not come about in {ATTEMPTS} attempts")
                    continue
                found[name].append(reaction)
                say(f"{count + 1}/{n} {name}: {reaction.ms:.1f} ms, sent after {reaction.sent_after}")
            keep(place.discarded)


def read(path: Path | None, kinds: Sequence[str]) -> tuple[dict[str, list[Reaction]], list[dict[str, Any]]]:
    """The repetitions of earlier sittings by kind, and what is known of these; nothing without a file.

    Raises:
        ConfigError: the file is none of this program's.
    """
    found: dict[str, list[Reaction]] = {name: [] for name in kinds}
    if path is None or not path.exists():
        return found, []
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        for name in found.keys() & data.keys():
            found[name] = [Reaction(float(ms), int(after)) for ms, after in data[name]["each"]]
        return found, list(data["sittings"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: not what --json of this program wrote ({error})") from error


def main() -> int:
    """Entry of the program; 0 when every bound held."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument("--n", type=int, default=5, help="repetitions per kind, about 12 s each")
    parser.add_argument("--json", type=Path, help="write the figures there too, after every round")
    parser.add_argument("--resume", action="store_true", help="go on with what the file of --json has")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    terminal = Console()
    try:
        found, sittings = read(options.json if options.resume else None, options.kinds)
    except ConfigError as error:
        parser.error(str(error))
    began_load = os.getloadavg()[0]
    sitting: dict[str, Any] = {"fifo": may_use_fifo(), "cores": os.cpu_count(), "discarded": 0}
    sittings.append(sitting)

    def rows() -> dict[str, dict[str, Any]]:
        return {name: summarise(reactions) for name, reactions in found.items() if reactions}

    def keep(discarded: int) -> None:
        sitting["load"] = [began_load, os.getloadavg()[0]]
        sitting["discarded"] = discarded
        if options.json:
            each = {name: {**row, "each": found[name]} for name, row in rows().items()}
            options.json.write_text(json.dumps({**each, "sittings": sittings}, indent=1) + "\n")

    seed = options.seed + sum(map(len, found.values()))
    with watched_cores() as still:
        measure(found, options.n, seed, terminal.print, keep)
        sitting["stood_still"] = still.account()
    keep(sitting["discarded"])
    terminal.print(table(rows()))
    terminal.print(in_words(sitting["stood_still"]))
    loads = [load for each in sittings for load in each["load"]]
    terminal.print(
        f"SCHED_FIFO {'granted' if all(each['fifo'] for each in sittings) else 'refused'}, load "
        f"{min(loads):.1f} to {max(loads):.1f}, {sum(each['discarded'] for each in sittings)} attempts "
        f"discarded, {len(sittings)} sittings"
    )
    whole = all(len(reactions) >= options.n for reactions in found.values())
    return 0 if whole and all(judge(name, row) for name, row in rows().items()) else 1


if __name__ == "__main__":
    sys.exit(main())
