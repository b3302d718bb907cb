"""Mutants that no test can notice, each with the argument why (`survivors.yaml`)."""

from pathlib import Path

import msgspec
import yaml

FILE = Path(__file__).with_name("survivors.yaml")


class Argued(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One survivor."""

    path: str
    was: str
    """The changed lines, stripped and joined by spaces."""
    now: str
    why: str


def load_argued(path: Path = FILE) -> list[Argued]:
    """Read the list."""
    return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")) or [], list[Argued])
