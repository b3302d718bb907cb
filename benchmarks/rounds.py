"""Plays the sides one after the other, round by round, each with a robot of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onboard.runtime.free_domain import free_domain_id
from tests.interop.interpreters import OURS, SDK, EnvironmentBrokenError, EnvironmentMissingError, environment

ROOT = Path(__file__).resolve().parents[1]
START_S = 60.0
"""What a side may take besides its measuring: imports, the ramp, the end of the run."""

ATTEMPTS = 3

PEERS = {"0.10": ("3.10", "0.10.2"), "11": (f"{sys.version_info.major}.{sys.version_info.minor}", "11.0.1")}
"""Python and Cyclone of the vendor's objects: the robot's own version, and the newest one."""


class SideFailedError(Exception):
    """A side ended without a result; the message has its last words."""


@dataclass(frozen=True)
class Side:
    """One player.

    Attributes:
        name: in the results.
        python: interpreter.
        vendor_types: its robot publishes as the vendor's types.
    """

    name: str
    python: str
    vendor_types: bool = False


@dataclass
class Samples:
    """What one side gave, all rounds together; times in µs."""

    stages: dict[str, list[float]] = field(default_factory=dict)
    late_us: list[float] = field(default_factory=list)
    cpu_percent: dict[str, list[float]] = field(default_factory=dict)

    def add(self, result: dict[str, Any]) -> None:
        """Join one round's result."""
        for name, values in result["stages"].items():
            self.stages.setdefault(name, []).extend(values)
        self.late_us.extend(result["late_us"])
        for name, value in result["cpu_percent"].items():
            self.cpu_percent.setdefault(name, []).append(value)


@dataclass(frozen=True)
class Job:
    """What every side is told."""

    model: Path
    preset: str
    pose: tuple[float, ...]
    seconds: float
    realtime: bool


def find_peer(wanted: str) -> tuple[str, str]:
    """Interpreter with the vendor's objects, and what it is in words.

    Args:
        wanted: a key of `PEERS`, or "auto" for the first that can be had.

    Raises:
        EnvironmentMissingError: none can be had; the message says why.
    """
    reasons = []
    for key in PEERS if wanted == "auto" else (wanted,):
        python, cyclone = PEERS[key]
        packages = (f"cyclonedds=={cyclone}", *OURS, "onnxruntime")
        try:
            return environment(python, *packages, bare=(SDK,)), f"Python {python}, cyclonedds {cyclone}"
        except (EnvironmentMissingError, EnvironmentBrokenError) as error:
            reasons.append(str(error))
    raise EnvironmentMissingError("; ".join(reasons))


def play(
    sides: list[Side], job: Job, rounds: int, say: Callable[[str], None] = lambda line: None
) -> dict[str, Samples]:
    """All sides, A B C D A B C D ...

    Raises:
        SideFailedError: one of them gave no result, three times in a row.
    """
    samples = {side.name: Samples() for side in sides}
    for number in range(rounds):
        for side in sides:
            say(f"round {number + 1} of {rounds}: {side.name}")
            samples[side.name].add(_play_patiently(side, job, say))
    return samples


def _play_patiently(
    side: Side, job: Job, say: Callable[[str], None], attempts: int = ATTEMPTS
) -> dict[str, Any]:
    """A run ends by itself where a busy machine holds its processes up, so it gets several attempts."""
    try:
        return _play_once(side, job)
    except SideFailedError as error:
        if attempts == 1:
            raise
        say(f"{error}; once more")
    return _play_patiently(side, job, say, attempts - 1)


def _play_once(side: Side, job: Job) -> dict[str, Any]:
    arguments = ["--policy", str(job.model), "--preset", job.preset, "--seconds", str(job.seconds)]
    arguments += ["--realtime"] if job.realtime else []
    with free_domain_id() as domain, _robot(side, domain, job):
        command = [side.python, "-m", f"benchmarks.{side.name}_side", "--domain", str(domain), *arguments]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=START_S + job.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise SideFailedError(f"{side.name}: no result within {START_S + job.seconds:g} s") from None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]  # the SDK prints, too
    if done.returncode or not lines:
        words = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise SideFailedError(f"{side.name}: {words[-1]}")
    result: dict[str, Any] = json.loads(lines[-1])
    return result


@contextmanager
def _robot(side: Side, domain: int, job: Job) -> Iterator[None]:
    """The robot's process while the context lasts."""
    command = [side.python, "-m", "benchmarks.robot", "--domain", str(domain)]
    command += ["--pose=" + ",".join(f"{angle:.6f}" for angle in job.pose)]
    command += ["--vendor-types"] if side.vendor_types else []
    command += ["--realtime"] if job.realtime else []
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
