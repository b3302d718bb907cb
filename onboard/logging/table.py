"""The datasets of a rollout as text for the documentation, made from the layout that writes them."""

import sys
from collections.abc import Iterable
from pathlib import Path

from onboard.logging.layout import DERIVED, JOINED, LOWSTATE, POLICY_FIELDS, ROW, ROW_INDEX, Field

BEGIN = "<!-- {group}: written by `python -m onboard.logging.table docs/rollouts.md` -->"
END = "<!-- end of {group} -->"

GROUPS: dict[str, tuple[Field, ...]] = {
    "rollout": (*DERIVED, *ROW, *JOINED),
    "policies": (ROW_INDEX, *POLICY_FIELDS[:-1]),
    "lowstate": (*DERIVED, *LOWSTATE),
}
"""Datasets by group of the file."""

_WIDE = {"obs": "N", "action_policy": "A", "action_residual": "A", "action_combined": "A"}


def dataset_table(fields: Iterable[Field]) -> str:
    """One Markdown row a dataset: name, shape of one row, type, unit, meaning."""
    lines = ["| dataset | row | type | unit | what |", "|---|---|---|---|---|"]
    for field in sorted(fields, key=lambda field: field.name):
        shape = _WIDE.get(field.name) or ", ".join(map(str, field.shape)) or "1"
        kind = {"f": "float", "i": "int", "u": "uint"}[field.code.strip("<")[0]]
        bits = 8 * int(field.code.strip("<")[1:])
        lines.append(f"| `{field.name}` | {shape} | {kind}{bits} | {field.unit} | {field.about} |")
    return "\n".join(lines)


def with_tables(text: str) -> str:
    """`text` with what stands between each pair of marks replaced by that group's table.

    Raises:
        ValueError: a mark is missing.
    """
    for group, fields in GROUPS.items():
        begin, end = BEGIN.format(group=group), END.format(group=group)
        head, found, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"expected the lines {begin!r} and {end!r} around the table")
        text = f"{head}{begin}\n\n{dataset_table(fields)}\n\n{end}{tail}"
    return text


def main(page: Path) -> None:
    """Bring the tables in a Markdown file up to date."""
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
