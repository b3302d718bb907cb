"""How much a power cut costs: `python -m benchmarks.power_cut`.

A recorder writes rows of 50 a second to an ext4 disk in a file. At a random moment that file system is
shut down where it stands: nothing that was not written yet ever is, as when the power goes. A copy of
the disk is mounted, its file system's own journal replayed, and `onboard log recover` run on what is there.
Whatever the disk's device had taken counts as durable: a drive that lies about that loses more.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
from rich.console import Console
from rich.table import Table

from onboard.logging.convert import JOURNAL_SUFFIX
from tests.disks import Ext4, UnavailableError, ext4, mounted
from tests.logging.recorder_run import Run

PERIOD_S = 0.02
MOST_LOST_S = 1.0
MOMENTS = {"start": (0.0, 0.3), "run": (1.0, 8.0), "close": (0.0, 0.4)}
"""When the power goes: after the journal was made, in the midst, or after the recorder was told to close."""


class Cut(NamedTuple):
    """One power cut.

    Attributes:
        moment: which part of the run it met.
        handed_over: rows until then.
        rows: in the rollout that was recovered.
        lost_s: from the last row that is there to the last that was handed over.
        wrong: what is not as it should be, "" for nothing.
    """

    moment: str
    handed_over: int
    rows: int
    lost_s: float
    wrong: str


def cut(folder: Path, moment: str, seconds: float) -> Cut:
    """Record for a while, cut, mount what is left, recover.

    Args:
        folder: for the disk; must be empty.
        moment: of `MOMENTS`.
        seconds: after the moment's begin.

    Raises:
        UnavailableError: no ext4 disk can be mounted here.
    """
    with ext4(folder / "disk", folder / "disk.img") as disk:
        run = Run(disk.folder, folder)
        try:
            made = _record(run, disk, moment, seconds)
        finally:
            run.close()
        copy = disk.copy(folder / "copy.img")
    with mounted(folder / "after", copy) as after:
        return _recover(after.folder, moment, made)


def _record(run: Run, disk: Ext4, moment: str, seconds: float) -> list[int]:
    """Rows at 50 a second until the power goes; when each was made, ns."""
    process = run.started()
    made: list[int] = []
    begin = time.monotonic()

    def hand_over(for_s: float) -> None:
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            run.ticks(len(made) + 1, len(made) + 1)
            made.append(int(run.row["made_ns"]))
            run.beat()
            time.sleep(max(0.0, begin + len(made) * PERIOD_S - time.monotonic()))

    if moment == "close":
        hand_over(1.0)
        run.beat(recorder_stop=1, end_reason=b"over")
        time.sleep(seconds)
    else:
        hand_over(seconds)
    if moment != "close" and process.poll() is not None:
        raise RuntimeError("the recorder ended before the power did")
    disk.cut_power()
    run.shared.unlink()  # memory does not outlive the power
    return made


def _recover(folder: Path, moment: str, made: list[int]) -> Cut:
    for journal in folder.glob(f"*{JOURNAL_SUFFIX}"):
        command = [sys.executable, "-m", "onboard", "log", "recover", str(journal)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode not in (0, 3):
            return Cut(moment, len(made), 0, float("inf"), result.stderr.strip())
    rollouts = list(folder.glob("*.h5"))
    if len(rollouts) != 1:
        return Cut(moment, len(made), 0, float("inf"), f"{len(rollouts)} rollouts")
    with h5py.File(rollouts[0], "r") as h5:
        ticks = h5["rollout/tick"][:].tolist()
        kept = h5["rollout/made_ns"][:].tolist()
    lost_s = (made[-1] - (kept[-1] if kept else made[0] - PERIOD_S * 1e9)) / 1e9 if made else 0.0
    wrong = ""
    if ticks != list(range(1, len(ticks) + 1)) or kept != made[: len(kept)]:
        wrong = "what is there is not the exact beginning of what was handed over"
    elif lost_s > MOST_LOST_S:
        wrong = f"more than {MOST_LOST_S:g} s lost"
    return Cut(moment, len(made), len(ticks), round(lost_s, 3), wrong)


def measure(n: int, seed: int, say: Callable[[str], None]) -> list[Cut]:
    """`n` cuts, half of them in the midst of a run. Raises UnavailableError."""
    choose = random.Random(seed)
    found = []
    order = ("run", "close", "run", "start")
    for number in range(n):
        moment = order[number % len(order)]
        with tempfile.TemporaryDirectory() as folder:
            found.append(cut(Path(folder), moment, choose.uniform(*MOMENTS[moment])))
        last = found[-1]
        say(
            f"{number + 1}/{n} {moment}: {last.rows} of {last.handed_over} rows, "
            f"{last.lost_s:.2f} s lost{': ' + last.wrong if last.wrong else ''}"
        )
    return found


def figures(found: list[Cut]) -> dict[str, dict[str, Any]]:
    """By moment."""
    rows = {}
    for moment in MOMENTS:
        mine = [each for each in found if each.moment == moment]
        if mine:
            lost = sorted(each.lost_s for each in mine)
            rows[moment] = {
                "n": len(mine),
                "ok": sum(not each.wrong for each in mine),
                "lost_s_p50": lost[len(lost) // 2],
                "lost_s_max": lost[-1],
            }
    return rows


def main() -> int:
    """Entry of the program; 0 when no cut cost more than a second."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.power_cut", description=__doc__)
    parser.add_argument("--n", type=int, default=20, help="power cuts")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args()
    terminal = Console()
    try:
        found = measure(options.n, options.seed, terminal.print)
    except UnavailableError as reason:
        terminal.print(f"power_cut: {reason}")
        return 2
    rows = figures(found)
    table = Table("power cut", "n", "ok", "lost s, p50", "lost s, max")
    for moment, row in rows.items():
        table.add_row(moment, *(str(row[key]) for key in ("n", "ok", "lost_s_p50", "lost_s_max")))
    terminal.print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0 if not any(each.wrong for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
