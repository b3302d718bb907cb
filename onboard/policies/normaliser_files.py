"""Observation statistics in an npz beside the model: found, read, and put into the contract's data.

A normaliser is never left out and never made up: one that lies beside the model is applied or the policy
is refused, and an epsilon that no file states must be given.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError
from onboard.configs.untrusted import read_npz
from onboard.policies.loaders.draft import Data, Draft
from onboard.policies.loaders.own import NAME as OWN

PATTERN = "*normali[sz]er*.npz"

_MEAN = ("mean", "running_mean", "obs_mean", "_mean")
_DEVIATION = ("std", "running_std", "obs_std", "_std", "deviation")
_VARIANCE = ("var", "running_var", "obs_var", "_var", "variance")
_EPSILON = ("eps", "epsilon")
"""Names in the wild: instinct_onboard and rsl_rl (mean, std, eps), rl_games (running_mean, running_var)."""


def find_normalisers(draft: Draft) -> None:
    """Name the normaliser that lies beside a model and that nothing mentions, in place.

    Raises:
        PolicyError: it can't be told which input it belongs to, or the contract is our own and silent.
    """
    graphs = _mappings(draft.data.get("graphs"))
    inputs = {
        f"graphs.{graph}.inputs.{name}": spec
        for graph, entry in graphs.items()
        for name, spec in _mappings(entry.get("inputs")).items()
        if spec.get("blocks")
    }
    folders = {(draft.folder / str(entry.get("model"))).parent for entry in graphs.values()}
    found = sorted(path for folder in folders if os.path.isdir(folder) for path in folder.glob(PATTERN))
    if not found or any("normaliser" in spec for spec in inputs.values()):
        return
    names = ", ".join(path.name for path in found)
    if draft.format == OWN:
        raise PolicyError(
            f"{draft.where}: {names} lies beside the model, but no input has a normaliser; name it as "
            "normaliser: {file: …, epsilon: …}, or take it away"
        )
    if len(found) > 1 or len(inputs) != 1:
        raise PolicyError(
            f"{draft.where}: whose statistics {names} holds can't be told, of {', '.join(inputs)}; write a "
            "contract.yaml"
        )
    (key, spec), file = next(iter(inputs.items())), found[0].relative_to(draft.folder)
    spec["normaliser"] = {"file": str(file)}
    draft.defaults.append(f"{key}.normaliser: {file} lies beside the model and is applied")


def read_normalisers(draft: Draft) -> None:
    """Replace every normaliser that names a file by its numbers, in place; the name stays with them.

    Raises:
        PolicyError: the file is missing, damaged or outside the folder, or nothing says an epsilon.
    """
    for graph, entry in _mappings(draft.data.get("graphs")).items():
        for name, spec in _mappings(entry.get("inputs")).items():
            described = spec.get("normaliser")
            if isinstance(described, dict) and described.get("file") is not None:
                key = f"graphs.{graph}.inputs.{name}.normaliser"
                path = draft.file(str(described["file"]), f"{key}.file")
                described |= _numbers(path, described, key)


def _mappings(node: Any) -> dict[str, Data]:  # noqa: ANN401 - data that nobody has checked yet
    """Entries of a mapping that are mappings; what else stands there is refused with the whole contract."""
    if not isinstance(node, dict):
        return {}
    return {name: entry for name, entry in node.items() if isinstance(entry, dict)}


def _numbers(path: Path, described: Data, key: str) -> Data:
    if {"mean", "deviation"} & described.keys():
        raise PolicyError(f"{key}: has both a file and numbers of its own; leave one of them out")
    arrays = {name: array for name, array in _load(path).items() if array.dtype.kind in "fiu"}
    mean = _first(arrays, _MEAN)
    epsilon = described.get("epsilon", arrays.get(next((n for n in _EPSILON if n in arrays), "")))
    if epsilon is None:
        raise PolicyError(
            f"{path}: holds no epsilon, which the training code adds to the deviation; give "
            f"--set {key}.epsilon=VALUE (rsl_rl: 0.01)"
        )
    if np.size(epsilon) != 1 or isinstance(epsilon, str):
        raise PolicyError(f"{path}: {key}.epsilon is {epsilon!r}, expected one number")
    epsilon = float(np.asarray(epsilon).item())
    deviation, variance = _first(arrays, _DEVIATION), _first(arrays, _VARIANCE)
    if deviation is None and variance is not None:
        # Who stores the variance divides by sqrt(variance + epsilon); this makes the sum the same.
        deviation = np.sqrt(variance + epsilon) - epsilon
    if mean is None or deviation is None:
        raise PolicyError(
            f"{path}: no mean and deviation in it; it has {', '.join(arrays)}, expected one of "
            f"{', '.join(_MEAN)} and one of {', '.join((*_DEVIATION, *_VARIANCE))}"
        )
    return {"mean": mean.tolist(), "deviation": deviation.tolist(), "epsilon": epsilon}


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_npz(path)
    except (OSError, ValueError) as error:
        raise PolicyError(f"{path}: can't be read as a normaliser ({error}); expected an .npz") from error


def _first(arrays: dict[str, NDArray[Any]], names: tuple[str, ...]) -> NDArray[np.float64] | None:
    found = next((arrays[name] for name in names if name in arrays), None)
    return None if found is None else found.astype(np.float64).reshape(-1)
