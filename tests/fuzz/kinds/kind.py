"""What one kind of input is to the fuzzer."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.mutate import Strategy


@dataclass(frozen=True)
class Kind:
    """One kind of input.

    Attributes:
        name: as on the command line.
        about: what is read, in words.
        cases: builds what makes the files of a case; once, before the memory is limited.
        read: reads what lies in a folder; refuses by raising an `OnboardError`.
        where: what a refusal must name, "" for anything; None where nothing has a name.
    """

    name: str
    about: str
    cases: Callable[[], Strategy]
    read: Callable[[Path], object]
    where: str | None = None
