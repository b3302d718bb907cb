"""What a rollout says about its run: everything needed to tell it apart and to replay it."""

import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import msgspec
from msgspec import Struct

import onboard
from onboard.configs.errors import RolloutError
from onboard.configs.robot import RobotConfig
from onboard.logging.layout import PolicyShape
from onboard.runtime.clock import wall_clock_ns

_LIBRARIES = ("numpy", "onnxruntime", "cyclonedds", "h5py", "mujoco")


class PolicyInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """One policy of a run.

    Attributes:
        shape: name and widths.
        contract: its contract as text.
        residual: its residual slot as text, "" for none.
        models: sha256 by file name.
    """

    shape: PolicyShape
    contract: str
    residual: str = ""
    models: dict[str, str] = {}


class RunInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about a run that is known when it starts; becomes the rollout's root attributes.

    Attributes:
        robot: name of the description.
        joint_names: (29,) in SDK motor order.
        period_s: control period.
        policies: in the order of the column `policy`.
        config: resolved configuration, text by name (run, robot, safety ...).
        arm: `none`, `keep`, `drop`, `shadow`, or `ab` where it changes during the run.
        note: the operator's own words.
        wall_ns, monotonic_ns: CLOCK_REALTIME and CLOCK_MONOTONIC at one instant at the start.
        commit: of the software; "" where it does not run from a checkout, `+` where that was changed.
        software, machine: versions and facts by name.
        check: JSON of what the last `onboard check` found and what was waived; "" where none was asked for.
        memory: file of the run's shared memory; "" for a run in one process.
    """

    robot: str
    joint_names: tuple[str, ...]
    period_s: float
    policies: tuple[PolicyInfo, ...]
    config: dict[str, str]
    arm: str
    note: str
    wall_ns: int
    monotonic_ns: int
    version: str
    commit: str
    software: dict[str, str]
    machine: dict[str, str]
    check: str = ""
    memory: str = ""

    @property
    def started_utc(self) -> str:
        """`YYYYMMDDTHHMMSSZ`."""
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.wall_ns // 1_000_000_000))

    @property
    def stem(self) -> str:
        """Name of the run's files without the suffix."""
        policy = self.policies[0].shape.name if self.policies else "none"
        return "_".join(_plain(part) for part in (self.started_utc, self.robot, policy, self.arm))


def describe_run(
    robot: RobotConfig,
    policies: Sequence[PolicyInfo],
    period_s: float,
    config: Mapping[str, str],
    arm: str = "none",
    note: str = "",
    check: str = "",
) -> RunInfo:
    """Add versions, machine and the two clocks to what the caller knows of a run that starts now."""
    return RunInfo(
        robot=robot.name,
        joint_names=robot.joint_names,
        period_s=period_s,
        policies=tuple(policies),
        config=dict(config),
        arm=arm,
        note=note,
        wall_ns=wall_clock_ns(),
        monotonic_ns=time.monotonic_ns(),
        version=onboard.__version__,
        commit=_commit(),
        software={"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}},
        machine={
            "host": platform.node(),
            "system": platform.platform(),
            "machine": platform.machine(),
            "cpus": str(os.cpu_count()),
        },
        check=check,
    )


def from_meta(meta: object, where: str) -> RunInfo:
    """Read a journal's meta data back.

    Raises:
        RolloutError: it was not written by `describe_run`.
    """
    try:
        found = msgspec.convert(meta, RunInfo)
        found.started_utc  # noqa: B018 - a time that is none raises here
    except (msgspec.ValidationError, OverflowError, OSError, ValueError) as error:
        raise RolloutError(f"{where}: its header does not describe a run ({error})") from error
    return found


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    """Commit of the checkout that this package runs from."""
    root = Path(onboard.__file__).parents[1]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip()


def _plain(name: str) -> str:
    """A part of a file name: letters, digits and `_ . + -`."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", name).strip("-.") or "unnamed"
