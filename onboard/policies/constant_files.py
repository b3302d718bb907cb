"""Constants of a contract that lie in a file beside it: a task's latent, for example."""

from pathlib import Path

import numpy as np

from onboard.configs.errors import PolicyError
from onboard.policies.loaders.draft import Draft


def read_constants(draft: Draft) -> None:
    """Replace every constant that names an .npy file by its numbers, in place; the name stays with them.

    Raises:
        PolicyError: the file is missing, damaged, holds no numbers, or the contract has numbers as well.
    """
    for name, described in (draft.data.get("constants") or {}).items():
        if not isinstance(described, dict) or described.get("file") is None:
            continue
        if "values" in described:
            raise PolicyError(f"constants.{name}: has both a file and values; leave one of them out")
        described["values"] = _numbers(draft.folder / str(described["file"]), name)


def _numbers(path: Path, name: str) -> list[float]:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise PolicyError(f"{path}: can't be read ({error}); constants.{name} expects an .npy") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.size == 0:
        raise PolicyError(f"{path}: constants.{name} expects an .npy of numbers")
    return [float(number) for number in array.reshape(-1)]
