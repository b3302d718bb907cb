"""Constants of a contract that lie in a file beside it: a task's latent, for example."""

from pathlib import Path

from onboard.configs.errors import PolicyError
from onboard.configs.untrusted import read_npy
from onboard.policies.loaders.draft import Draft


def read_constants(draft: Draft) -> None:
    """Replace every constant that names an .npy file by its numbers, in place; the name stays with them.

    Raises:
        PolicyError: the file is missing, damaged, outside the folder, holds no numbers, or the contract has
            numbers as well.
    """
    constants = draft.data.get("constants")
    for name, described in constants.items() if isinstance(constants, dict) else ():
        if not isinstance(described, dict) or described.get("file") is None:
            continue
        if "values" in described:
            raise PolicyError(f"constants.{name}: has both a file and values; leave one of them out")
        path = draft.file(str(described["file"]), f"constants.{name}.file")
        described["values"] = _numbers(path, name)


def _numbers(path: Path, name: str) -> list[float]:
    try:
        array = read_npy(path)
    except (OSError, ValueError) as error:
        raise PolicyError(f"{path}: can't be read ({error}); constants.{name} expects an .npy") from error
    if array.dtype.kind not in "fiu" or array.size == 0:
        raise PolicyError(f"{path}: constants.{name} expects an .npy of numbers")
    return [float(number) for number in array.reshape(-1)]
