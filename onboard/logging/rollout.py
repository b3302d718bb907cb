"""Reading rollouts.

```python
with Rollout("20260808T120000Z_g1_29dof_walk_none.h5") as rollout:
    q = rollout.column("q")                    # (rows, 29) rad
    walking = rollout.column("mode") == Mode.POLICY
    obs = rollout.policies[0].column("obs")    # rows where that policy was in charge
    before, after = rollout.transitions().pairs("q")
    for record in rollout:                     # RolloutRecord, one tick
        ...
```
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import h5py
import numpy as np

from onboard.configs import loader
from onboard.configs.errors import RolloutError
from onboard.configs.events import Arm, Mode, Tier
from onboard.configs.robot import RobotConfig, load_robot
from onboard.configs.untrusted import DAMAGED
from onboard.logging.convert import JOURNAL_SUFFIX, SCHEMA, convert
from onboard.logging.frames import MAGIC
from onboard.logging.hdf5 import check_seal
from onboard.logging.layout import DERIVED, JOINED, POLICY_FIELDS, ROW, SafetyFlag
from onboard.logging.record import RolloutRecord
from onboard.logging.rollout_checks import check_attributes, check_datasets
from onboard.logging.transitions import Transitions, find_transitions

Check = bool | Literal["size"]

BLOCK_ROWS = 256
"""Rows that are read at once while iterating."""

_ENUMS: dict[str, Callable[[int], Any]] = {"mode": Mode, "arm": Arm, "safety_flag": SafetyFlag, "tier": Tier}
_COLUMNS = tuple(field.name for field in (*ROW, *JOINED, *DERIVED))
_POLICY_COLUMNS = tuple(field.name for field in POLICY_FIELDS[:-1])


@dataclass(frozen=True)
class PolicyLog:
    """What one policy of the run saw and said.

    Attributes:
        name: the bundle's name.
        rows: indices of its rows in the rollout.
        extras: names of further outputs.
    """

    name: str
    rows: np.ndarray
    extras: tuple[str, ...]
    _group: h5py.Group
    _where: str

    def width(self, name: str) -> int:
        """Numbers in a row of one dataset, see `column`."""
        return int(self._group[self._path(name)].shape[1])

    def column(self, name: str, select: slice = slice(None)) -> np.ndarray:
        """One dataset, (len(rows), width).

        Args:
            name: `obs`, `action_policy`, `action_residual`, `action_combined`, or an extra's name.
            select: part of `rows`.
        """
        return _read(self._group, self._path(name), select, self._where)

    def _path(self, name: str) -> str:
        return f"extras/{name}" if name in self.extras else name


class Rollout:
    """One rollout file, read lazily; a context manager.

    A journal that no recorder converted can be opened too; it is recovered into a temporary file.

    Args:
        path: of the file.
        check: compare size and checksum first, which reads the whole file; `size` compares the size
            alone. Without it, changed files open too, and a damaged one may crash the HDF5 library.

    Attributes:
        path: as given.
        attributes: the root attributes, see `convert`.
        policies: the run's policies, by the index in the column `policy`.

    Raises:
        RolloutError: missing, unreadable, damaged, or not a rollout.
    """

    def __init__(self, path: str | Path, *, check: Check = True) -> None:
        self.path = Path(path)
        self._resources = contextlib.ExitStack()
        try:
            self._h5 = self._open(check)
            self.attributes: dict[str, Any] = dict(self._h5.attrs)
            self._check()
            self.policies = tuple(
                self._policy(name) for name in sorted(self._h5.get("policies", {}), key=int)
            )
        except BaseException as error:
            self._resources.close()
            if isinstance(error, (OSError, *DAMAGED)):
                raise RolloutError(f"{self.path}: damaged, can't be read ({error})") from error
            raise

    def __enter__(self) -> "Rollout":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._resources.close()

    def __len__(self) -> int:
        return int(self._h5["rollout/tick"].shape[0])

    def __getitem__(self, row: int) -> RolloutRecord:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of a rollout of {len(self)} rows")
        return next(self.records(row % len(self), row % len(self) + 1))

    def __iter__(self) -> Iterator[RolloutRecord]:
        return self.records(0, len(self))

    def config_text(self, name: str) -> str:
        """One of the run's resolved configurations (`run`, `robot`, `safety` ...); "" where there is none."""
        texts = json.loads(self.attributes.get("config", "{}"))
        text = texts.get(name) if isinstance(texts, dict) else None
        return text if isinstance(text, str) else ""

    @property
    def robot(self) -> RobotConfig:
        """The robot's description as the run used it; the shipped one of its name where the file has none.

        Raises:
            ConfigError: it is not one that this version reads.
        """
        text, where = self.config_text("robot"), f"{self.path}: its robot"
        if not text:
            return load_robot(self.attributes["robot"])
        return loader.convert(loader.parse_yaml(text, where), RobotConfig, where)

    @property
    def period_s(self) -> float:
        """Control period."""
        return float(self.attributes["period_s"])

    @property
    def joint_names(self) -> tuple[str, ...]:
        """(29,) in SDK motor order."""
        return tuple(self.attributes["joint_names"])

    @property
    def completeness(self) -> str:
        """`complete`, `recovered` or `truncated`; why stands in `attributes["completeness_why"]`."""
        return str(self.attributes["completeness"])

    @property
    def has_lowstate(self) -> bool:
        """Whether the full-rate stream was recorded."""
        return "lowstate" in self._h5

    @property
    def samples_lost(self) -> int:
        """Samples of the full-rate stream that the recorder had and could not write."""
        return int(self._h5["lowstate"].attrs.get("samples_lost", 0)) if self.has_lowstate else 0

    def column(self, name: str, select: slice = slice(None)) -> np.ndarray:
        """One dataset of the group `rollout`, (rows, ...).

        Raises:
            RolloutError: there is no such dataset, or its part of the file is damaged.
        """
        return _read(self._h5["rollout"], name, select, str(self.path))

    def lowstate(self, name: str, select: slice = slice(None)) -> np.ndarray:
        """One dataset of the full-rate stream.

        Raises:
            RolloutError: the run did not record it.
        """
        if not self.has_lowstate:
            raise RolloutError(f"{self.path}: has no full-rate stream; record with --lowstate")
        return _read(self._h5["lowstate"], name, select, str(self.path))

    def transitions(self) -> Transitions:
        """Neighbouring rows with their validity and true dt."""
        samples = self.lowstate("time_s") if self.has_lowstate else None
        return find_transitions(self.column, self.period_s, samples)

    def records(self, first: int, last: int) -> Iterator[RolloutRecord]:
        """Rows first..last-1, one typed object a tick."""
        for start in range(first, last, BLOCK_ROWS):
            block = slice(start, min(start + BLOCK_ROWS, last))
            columns = {name: self.column(name, block) for name in _COLUMNS}
            outputs = [self._outputs(policy, block) for policy in self.policies]
            for offset in range(block.stop - start):
                yield self._record(start + offset, {n: c[offset] for n, c in columns.items()}, outputs)

    def _record(
        self, row: int, values: dict[str, Any], outputs: list[dict[int, dict[str, Any]]]
    ) -> RolloutRecord:
        index = int(values["policy"])
        policy = outputs[index].get(row) if 0 <= index < len(outputs) else None
        policy = policy or {**dict.fromkeys(_POLICY_COLUMNS), "extras": {}}
        try:
            typed = {
                name: _ENUMS[name](value) if name in _ENUMS else _plain(value)
                for name, value in values.items()
            }
        except ValueError as error:
            raise RolloutError(f"{self.path}: row {row}: {error}; another version wrote it") from error
        return RolloutRecord(row=row, **typed, **policy)

    @staticmethod
    def _outputs(policy: PolicyLog, block: slice) -> dict[int, dict[str, Any]]:
        """A policy's columns by row of the rollout, for the rows of a block."""
        at = slice(*np.searchsorted(policy.rows, [block.start, block.stop]))
        columns = {name: policy.column(name, at) for name in _POLICY_COLUMNS}
        extras = {name: policy.column(name, at) for name in policy.extras}
        return {
            int(row): {
                **{name: column[k] for name, column in columns.items()},
                "extras": {name: column[k] for name, column in extras.items()},
            }
            for k, row in enumerate(policy.rows[at])
        }

    def _open(self, check: Check) -> h5py.File:
        path = self.path
        if not path.exists() and path.with_suffix(JOURNAL_SUFFIX).exists():
            raise RolloutError(
                f"{path}: missing, but its journal is there; onboard log recover makes the rollout"
            )
        try:
            with path.open("rb") as file:
                start = file.read(len(MAGIC))
        except OSError as error:
            raise RolloutError(f"{path}: can't be read ({error.strerror}); give a rollout file") from error
        if start[:7] == MAGIC[:7]:
            folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="onboard-"))
            path = convert(path, Path(folder))
        elif check:
            check_seal(path, contents=check != "size")
        return self._resources.enter_context(h5py.File(path, "r"))

    def _check(self) -> None:
        schema = self.attributes.get("schema")
        if schema is None or "rollout" not in self._h5:
            raise RolloutError(f"{self.path}: an HDF5 file, but not a rollout of onboard")
        if not np.array_equal(schema, SCHEMA):
            raise RolloutError(f"{self.path}: rollout schema {schema}, this onboard reads {SCHEMA}")
        check_attributes(self.attributes, str(self.path))
        check_datasets(self._h5, os.fstat(self._h5.id.get_vfd_handle()).st_size, str(self.path))

    def _policy(self, index: str) -> PolicyLog:
        group = self._h5["policies"][index]
        return PolicyLog(
            str(group.attrs["name"]),
            group["row"][:],
            tuple(group["extras"]),
            group,
            f"{self.path}: policies/{index}",
        )


def _read(group: h5py.Group, name: str, select: slice, where: str) -> np.ndarray:
    if name not in group:
        raise RolloutError(f"{where}: no dataset '{name}'; there are: {', '.join(sorted(group))}")
    try:
        values: np.ndarray = group[name][select]
    except (OSError, RuntimeError) as error:
        raise RolloutError(f"{where}: dataset '{name}' is damaged ({error})") from error
    return values


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever numpy scalar or array a column has
    return value.item() if isinstance(value, np.generic) else value
