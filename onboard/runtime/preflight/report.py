"""What a check says, and how checks are run one after the other."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from onboard.configs.errors import OnboardError


class Verdict(IntEnum):
    """How a check ended."""

    PASS = 0
    WARN = 1
    """The run will go on, with a drawback."""
    FAIL = 2
    """The run should not begin."""


NO_VALUES: Mapping[str, float] = MappingProxyType({})


class Finding(NamedTuple):
    """Result of one check.

    Attributes:
        measured: what was found, with units.
        advice: what to do; "" where nothing is to be done.
        values: the same as finite numbers, for programs and for the rollout; a name ends with its unit.
    """

    verdict: Verdict
    measured: str
    advice: str = ""
    values: Mapping[str, float] = NO_VALUES


class Check(NamedTuple):
    """One check: `group.name` is how it is waived."""

    group: str
    name: str
    look: Callable[[], Finding]


class Row(NamedTuple):
    """One check that was made."""

    name: str
    finding: Finding
    seconds: float


def passed(measured: str) -> Finding:
    """Nothing to do."""
    return Finding(Verdict.PASS, measured)


def judged(
    measured: str, *, warn: bool, fail: bool, advice: str, values: Mapping[str, float] = NO_VALUES
) -> Finding:
    """A finding by two conditions; the worse one counts. A value that is not finite has failed."""
    fail = fail or not all(math.isfinite(value) for value in values.values())
    verdict = Verdict.FAIL if fail else Verdict.WARN if warn else Verdict.PASS
    return Finding(verdict, measured, advice if verdict else "", values)


def run_checks(checks: Iterable[Check]) -> Iterator[Row]:
    """Make one check after the other; what a check can't even measure has failed."""
    for check in checks:
        begin = time.monotonic()
        try:
            finding = check.look()
        except OnboardError as error:
            finding = Finding(Verdict.FAIL, str(error), "mend this and check again")
        yield Row(f"{check.group}.{check.name}", finding, time.monotonic() - begin)
