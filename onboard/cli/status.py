"""`onboard status`: what the run on this computer does now."""

import time
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live

from onboard.cli.options import parse, say, write_json
from onboard.cli.status_table import status_table
from onboard.runtime.snapshot import RunView, find_run, is_alive

EPILOG = """It reads the run's shared memory and nothing else; it may be slow or die without effect.

examples:
  onboard status                          follow the newest run until it ends, Ctrl-C leaves
  ssh robot onboard status                from another computer
  onboard status --once --json -          one look, for a program"""


@dataclass(frozen=True)
class Args:
    """Follow a run: mode, events, timing, link, joints, health of every process."""

    pid: int | None = None
    """Process id of the `onboard run`, where there are several."""
    period: float = 0.5
    """Seconds between two looks."""
    once: bool = False
    """Look once and end."""
    json: str = ""
    """Write the last look to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when a run was found."""
    args = parse(Args, "status", f"{Args.__doc__}\n\n{EPILOG}", argv)
    view = RunView(find_run(args.pid))
    try:
        look = view.look()
        if args.once:
            time.sleep(args.period)  # rates need two looks
            look = view.look()
            if args.json != "-":
                Console().print(status_table(look))
        else:
            look = _follow(view, args.period)
    finally:
        view.close()
    if args.json:
        write_json(args.json, look)
    return 0


def _follow(view: RunView, period_s: float) -> dict[str, object]:
    look = view.look()
    try:
        with Live(status_table(look), auto_refresh=False) as live:
            while is_alive(view.path):
                time.sleep(period_s)
                look = view.look()
                live.update(status_table(look), refresh=True)
    except KeyboardInterrupt:
        return look  # only the view ends
    say("the run has ended")
    return look
