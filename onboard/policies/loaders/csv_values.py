"""Values in ONNX metadata as BeyondMimic and mjlab write them: comma lists, inner lists joined by `;`.

Numbers have three decimals. Builds between two releases wrote inner lists in brackets with commas of
their own, `[-inf, inf],[-inf, inf]`; those are read too.
"""

import re
from collections.abc import Mapping, Sequence

from onboard.configs.errors import PolicyError

Entry = float | list[float]

_ENTRY = re.compile(r"(\s*\[[^\]]*\]\s*|[^,\[\]]*)(?:,|$)")
_ROUNDED = re.compile(r"-?\d+\.\d{3}")
_WORDS = {"None": None, "True": 1.0, "False": 0.0}


class CsvMetadata:
    """The metadata of one file, by the names of its keys, newest name first.

    Attributes:
        where: names the file in messages.
    """

    def __init__(self, metadata: Mapping[str, str], where: str) -> None:
        self._metadata = metadata
        self.where = where

    def first(self, keys: Sequence[str]) -> str | None:
        """Which of several names of one key the file has; None for none."""
        return next((key for key in keys if self._metadata.get(key, "").strip()), None)

    def names(self, key: str) -> list[str]:
        """A list of names; empty where the key is absent."""
        text = self._metadata.get(key, "").strip()
        return [name.strip() for name in text.split(",")] if text else []

    def numbers(self, keys: Sequence[str]) -> list[float] | None:
        """A flat list of numbers; None where all the keys are absent.

        Raises:
            PolicyError: something in it is no number.
        """
        entries = self.entries(keys)
        if entries is None:
            return None
        if not all(isinstance(entry, float) for entry in entries):
            raise PolicyError(f"{self.where}: metadata '{self.first(keys)}': expected one number per entry")
        return [entry for entry in entries if isinstance(entry, float)]

    def entries(self, keys: Sequence[str]) -> list[Entry | None] | None:
        """A list of numbers or inner lists; None where all the keys are absent.

        Raises:
            PolicyError: something in it is no number.
        """
        key = self.first(keys)
        if key is None:
            return None
        text = self._metadata[key]
        try:
            return [_entry(part) for part in _split(text)]
        except ValueError as error:
            raise PolicyError(
                f"{self.where}: metadata '{key}' can't be read ({error}); expected numbers with commas "
                "between them, inner lists joined by ';'"
            ) from error

    def rounded(self, key: str) -> bool:
        """All numbers of a key have the three decimals to which the exporters round."""
        return all(_ROUNDED.fullmatch(part.strip()) for part in self._metadata.get(key, "").split(","))


def _split(text: str) -> list[str]:
    """Parts between the commas that stand outside brackets."""
    parts = []
    at = 0
    while at <= len(text):
        match = _ENTRY.match(text, at)
        if match is None:
            raise ValueError(f"unbalanced brackets at '{text[at : at + 20]}'")
        parts.append(match[1].strip())
        at = match.end()
        if not match[0].endswith(","):
            break
    return parts


def _entry(part: str) -> Entry | None:
    if part in _WORDS:
        return _WORDS[part]
    inner = part.strip("[]")
    if part.startswith("["):
        return [float(number) for number in inner.split(",")]
    if ";" in part:
        return [float(number) for number in part.split(";")]
    return float(part)
