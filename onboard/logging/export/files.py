"""Output files: they appear whole or not at all."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from onboard.configs.errors import RolloutError


def write_file(path: Path, fill: Callable[[BinaryIO], None]) -> None:
    """Write aside, then put in place.

    Raises:
        RolloutError: the disk refuses.
    """
    aside = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise RolloutError(
            f"{path}: can't be written ({error.strerror or error}); name another --out"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """An npz of plain numbers and text, which opens without pickle.

    Raises:
        RolloutError: the disk refuses.
    """
    write_file(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type] # takes any name
