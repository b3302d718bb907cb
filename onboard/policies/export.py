"""Any loaded policy as a folder of our own: contract.yaml, the models, and what lies beside them."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import yaml

from onboard.configs.errors import PolicyError
from onboard.policies.bundle import PolicyBundle, load_policy
from onboard.policies.contract import Constant, Contract, Graph
from onboard.policies.inputs import Block, Input, Normaliser, Term

_BRIEF: tuple[type[msgspec.Struct], ...] = (Term, Block, Input, Normaliser, Graph)
"""What is written without the fields that have their default value: they say nothing new."""

_NESTED = frozenset({"contract.yaml"})

Data = dict[str, Any]


def export_policy(bundle: PolicyBundle, folder: Path) -> Path:
    """Write the folder, and read it again: what comes back must be the same contract.

    A provider that was only lent to a privileged term stays unsaid, to be chosen where the policy runs.

    Args:
        bundle: any loaded policy.
        folder: new, or without a contract.yaml.

    Returns:
        Path of the contract.yaml.

    Raises:
        PolicyError: the folder has a contract already or can't be written, or what was read back differs.
    """
    path = folder / "contract.yaml"
    if path.exists():
        raise PolicyError(f"{path}: exists already; give another folder, or remove it")
    files = _places(bundle)
    contract = _relocated(bundle, files)
    try:
        for source, name in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / name)
        path.write_text(_header(bundle) + contract_text(contract), encoding="utf-8")
    except (OSError, shutil.SameFileError) as error:
        raise PolicyError(f"{folder}: can't be written ({error}); give a folder of your own") from error
    again = load_policy(folder, bundle.robot, provider="simulator_truth")
    if _without_lent(again) != contract:
        raise PolicyError(
            f"{path}: reads back as another contract; this is a fault of the program, report it"
        )
    return path


def contract_text(contract: Contract) -> str:
    """A contract as YAML: numbers to the last digit, short lists on one line, unsaid keys left out."""
    return str(
        yaml.dump(_plain(contract), sort_keys=False, default_flow_style=None, width=108, allow_unicode=True)
    )


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Structs, tuples and mappings as what YAML can hold."""
    if isinstance(value, msgspec.Struct):
        return _plain_struct(value)
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def _plain_struct(struct: msgspec.Struct) -> Data:
    kept: Data = {}
    from_file = isinstance(struct, Normaliser | Constant) and struct.file is not None
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if from_file and field.name in ("mean", "deviation", "values"):
            continue  # they are the file's, and are read from there again
        if field.name == "start_rad":
            kept[field.name] = _plain(value)  # null says: where the reference motion starts
            continue
        if value is None or (isinstance(struct, _BRIEF) and value == field.default):
            continue
        if value in ({}, "", ()) and not isinstance(value, bool):
            continue
        kept[field.name] = _plain(value)
    return kept


def _places(bundle: PolicyBundle) -> dict[Path, str]:
    """Every file of the bundle, and where it goes in the new folder: where it was, or beside the contract."""
    files = [path for model in bundle.models.values() for path in model.sha256]
    files += [bundle.folder / name for name in bundle.data_files]
    places: dict[Path, str] = {}
    for path in files:
        inside = path.resolve().is_relative_to(bundle.folder.resolve())
        name = str(path.resolve().relative_to(bundle.folder.resolve())) if inside else path.name
        if name in _NESTED or (name in places.values() and path not in places):
            raise PolicyError(f"{path}: another file of this policy would be written as '{name}'; rename it")
        places[path] = name
    return places


def _relocated(bundle: PolicyBundle, files: dict[Path, str]) -> Contract:
    """The contract with the new places of its files."""
    contract = _without_lent(bundle)
    graphs = {
        name: msgspec.structs.replace(
            graph,
            model=files[bundle.models[name].path],
            inputs={key: _relocated_input(bundle, spec, files) for key, spec in graph.inputs.items()},
        )
        for name, graph in contract.graphs.items()
    }
    motion = contract.motion
    if motion is not None and motion.file is not None:
        motion = msgspec.structs.replace(motion, file=files[bundle.folder / motion.file])
    constants = {
        name: msgspec.structs.replace(constant, file=files[bundle.folder / constant.file])
        if constant.file is not None
        else constant
        for name, constant in contract.constants.items()
    }
    return msgspec.structs.replace(contract, graphs=graphs, motion=motion, constants=constants)


def _relocated_input(bundle: PolicyBundle, spec: Input, files: dict[Path, str]) -> Input:
    normaliser = spec.normaliser
    if normaliser is None or normaliser.file is None:
        return spec
    moved = msgspec.structs.replace(normaliser, file=files[bundle.folder / normaliser.file])
    return msgspec.structs.replace(spec, normaliser=moved)


def _without_lent(bundle: PolicyBundle) -> Contract:
    stated = {name: who for name, who in bundle.contract.providers.items() if name not in bundle.lent}
    return msgspec.structs.replace(bundle.contract, providers=stated)


def _header(bundle: PolicyBundle) -> str:
    """Where the contract comes from, and what no file had said."""
    lines = [f"{bundle.name}, read as {bundle.format}"]
    lines[0] += f" with preset {bundle.preset}" if bundle.preset else ""
    lines += [f"with {override}" for override in bundle.overrides]
    lines += [f"filled in: {text}" for text in bundle.defaults if not text.startswith("providers.")]
    return "".join(f"# {' '.join(line.split())}\n" for line in lines)
