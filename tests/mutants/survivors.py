"""Mutants that no test can notice, each with the argument why (`survivors.yaml`).

`python -m tests.mutants.survivors docs/mutation.md` brings the page's table up to date.
"""

import sys
from pathlib import Path

import msgspec
import yaml

from onboard.safety.table import with_table

FILE = Path(__file__).with_name("survivors.yaml")
BEGIN = "<!-- survivors: written by `python -m tests.mutants.survivors docs/mutation.md` -->"
END = "<!-- end of survivors -->"


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


def survivor_table(argued: list[Argued]) -> str:
    """One Markdown row a survivor."""
    lines = ["| file | line | mutant | why it changes nothing |", "|---|---|---|---|"]
    for one in argued:
        code = [f"`{text}`".replace("|", "\\|") for text in (one.was, one.now)]
        lines.append(f"| {Path(one.path).name} | {code[0]} | {code[1]} | {one.why} |")
    return "\n".join(lines)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    text = page.read_text(encoding="utf-8")
    page.write_text(with_table(text, survivor_table(load_argued()), BEGIN, END), encoding="utf-8")
