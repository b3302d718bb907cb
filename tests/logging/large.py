"""Long rollouts: a made-up walk of any length, written without the detour over a journal of its own."""

import tempfile
from pathlib import Path

from onboard.configs.events import Mode
from onboard.logging.convert import Rows, write_rollout
from onboard.logging.recovery import scan
from tests.logging.synthetic import info, journal, rows


def long_rollout(path: Path, count: int, seed: int = 0) -> Path:
    """A rollout of `count` rows under a policy; the last 50 are an emergency stop."""
    data = rows(seed, ((count, Mode.POLICY),))
    with tempfile.TemporaryDirectory() as folder:
        found = scan(journal(Path(folder), data[:1]))
    write_rollout(path, info(), found, Rows(data), None, "make room")
    return path
