"""Presets: what families that ship no metadata, or too little, leave unsaid; YAML files of the package."""

import importlib.util
from pathlib import Path
from typing import Any

from msgspec import Struct

from onboard.configs.errors import ConfigError, PolicyError
from onboard.configs.loader import CONFIG_ROOT, load, shipped
from onboard.configs.robot import RobotConfig
from onboard.configs.untrusted import inside
from onboard.policies.loaders.draft import Data, Draft, has, merge
from onboard.policies.loaders.files import BundleFiles
from onboard.policies.session import ModelInfo

NAME = "preset"
FOLDER = "policies"
WILDCARD = "*"


class Match(Struct, frozen=True, forbid_unknown_fields=True):
    """What an ONNX file must look like for a preset to fit: widths by name, metadata keys.

    The name `*` stands for whatever the only input (or output) is called; a width of 0 for any.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    metadata: tuple[str, ...] = ()

    def fits(self, info: ModelInfo) -> bool:
        """Inputs are these and no others; outputs and metadata keys are there."""
        inputs = _under_wildcard({name: port.size for name, port in info.inputs.items()}, self.inputs)
        outputs = _under_wildcard({name: port.size for name, port in info.outputs.items()}, self.outputs)
        return (
            inputs.keys() == self.inputs.keys()
            and all(_width_fits(inputs.get(name), width) for name, width in self.inputs.items())
            and all(_width_fits(outputs.get(name), width) for name, width in self.outputs.items())
            and set(self.metadata) <= info.metadata.keys()
        )


class Shipped(Struct, frozen=True, forbid_unknown_fields=True):
    """A published model that the preset's name stands for."""

    package: str
    path: str
    install: str


class Known(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known about one published file, told by its sha256."""

    about: str
    contract: dict[str, Any]

    def __post_init__(self) -> None:
        _check_graphs(self.contract)


class Preset(Struct, frozen=True, forbid_unknown_fields=True):
    """One preset.

    Attributes:
        about: the family and where the numbers come from.
        match: the files it fits; None where the family's files differ in their widths.
        contract: contract data.
        extends: name of a preset that this one is laid over.
        automatic: taken without `--preset` where metadata and `match` fit.
        needs: dotted keys that differ from file to file of the family, with what they mean.
        known: values for published files, by sha256 of the ONNX file.
        shipped: the model that this preset's name also stands for.
        files: for families of several graphs: graph to the name of its ONNX file in the bundle's folder.
        robots: beginnings of the names of the robots that the family is for; empty for any.
    """

    about: str
    match: Match | None = None
    contract: dict[str, Any] = {}
    extends: str | None = None
    automatic: bool = False
    needs: dict[str, str] = {}
    known: dict[str, Known] = {}
    shipped: Shipped | None = None
    files: dict[str, str] = {}
    robots: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_graphs(self.contract)


def _check_graphs(contract: Data) -> None:
    graphs = contract.get("graphs", {})
    if not (isinstance(graphs, dict) and all(isinstance(graph, dict | None) for graph in graphs.values())):
        raise ValueError(
            "contract.graphs must be a mapping of names to mappings, or to null to leave one out"
        )


def load_preset(name: str, extended_by: tuple[str, ...] = ()) -> Preset:
    """Read one preset with what it extends.

    Args:
        name: of a shipped one, or the path of a YAML file.
        extended_by: the presets that led here.

    Raises:
        ConfigError: no such preset, its file does not fit, or it extends itself.
    """
    path = shipped(FOLDER, name)
    if name in extended_by:
        raise ConfigError(f"{path}: extends itself, by way of {', '.join(extended_by)}")
    preset = load(path, Preset)
    if preset.extends is None:
        return preset
    base = load_preset(preset.extends, (*extended_by, name))
    return Preset(
        about=preset.about,
        match=preset.match or base.match,
        contract=merge(base.contract, preset.contract),
        automatic=preset.automatic,
        needs={key: why for key, why in base.needs.items() if not has(preset.contract, key)} | preset.needs,
        known=base.known | preset.known,
        shipped=preset.shipped,
        files=base.files | preset.files,
        robots=preset.robots or base.robots,
    )


def preset_names() -> list[str]:
    """All shipped presets; files that begin with an underscore are only there to be extended."""
    return sorted(path.stem for path in (CONFIG_ROOT / FOLDER).glob("[!_]*.yaml"))


def fitting_presets(info: ModelInfo) -> list[str]:
    """Presets whose `match` a file fits."""
    presets = {name: load_preset(name) for name in preset_names()}
    return [name for name, preset in presets.items() if preset.match and preset.match.fits(info)]


def automatic_preset(info: ModelInfo) -> str | None:
    """The one preset that may be taken without being asked for, or None."""
    names = [name for name in fitting_presets(info) if load_preset(name).automatic]
    return names[0] if len(names) == 1 else None


def bare_draft(files: BundleFiles, format_name: str) -> Draft:
    """Contract data of the one ONNX file of a bundle before anything is known about it."""
    path = files.model.path
    data: Data = {"schema": 1, "name": files.name, "providers": {}, "safety": {}, "commands": {}}
    data["graphs"] = {"policy": {"model": str(path.relative_to(files.folder))}}
    return Draft(data, files.folder, str(path), format_name)


def apply_preset(name: str, files: BundleFiles, format_name: str, robot: RobotConfig) -> Draft:
    """Contract data of a preset for the ONNX file of a bundle, or for its files by name.

    Raises:
        PolicyError: the file does not look like the preset's family, or the family is for another robot.
        ConfigError: no such preset.
    """
    preset = load_preset(name)
    if preset.robots and not robot.name.startswith(preset.robots):
        raise PolicyError(
            f"preset '{name}': {preset.about}; the robot here is {robot.name}, with other joints, gains and "
            "masses, so it can't run"
        )
    if preset.files:
        return _apply_to_several(name, preset, files, format_name)
    model = files.model
    if preset.match is not None and not preset.match.fits(model.info):
        found = {port: spec.size for port, spec in (model.info.inputs | model.info.outputs).items()}
        wanted = preset.match.inputs | preset.match.outputs
        raise PolicyError(
            f"{model.path}: preset '{name}' does not fit: it expects {wanted}, found {found}; "
            f"presets that fit: {', '.join(fitting_presets(model.info)) or 'none'}"
        )
    draft = bare_draft(files, format_name)
    draft.where, draft.preset = f"{model.path} with preset {name}", name
    draft.data = data = merge(draft.data, preset.contract)
    known = preset.known.get(model.digest)
    keys = [key for key in preset.contract if key != "graphs"]
    keys += [f"graphs.{n}.{key}" for n, graph in preset.contract.get("graphs", {}).items() for key in graph]
    text = f"from preset {name} ({preset.about}), where the file says nothing: {', '.join(keys)}"
    draft.defaults.append(text)
    if known is not None:
        draft.data = merge(data, known.contract)
        draft.defaults.append(f"recognised by its sha256: {known.about}")
    _name_ports(draft.data["graphs"]["policy"], model.info)
    draft.needs = {key: why for key, why in preset.needs.items() if not has(draft.data, key)}
    return draft


def read(files: BundleFiles, robot: RobotConfig, preset: str | None) -> Draft:
    """A file that says nothing about its inputs, with the preset that was asked for.

    Raises:
        PolicyError: none was asked for, or it does not fit.
    """
    if preset is None:
        fitting = ", ".join(fitting_presets(files.model.info)) or "none"
        raise PolicyError(
            f"{files.model.path}: the file does not say what its inputs are, and nothing is guessed; give "
            f"--preset NAME (presets whose widths fit: {fitting}) or put a contract.yaml beside it"
        )
    return apply_preset(preset, files, NAME, robot)


def _apply_to_several(name: str, preset: Preset, files: BundleFiles, format_name: str) -> Draft:
    """Every graph of the preset finds its file by name."""
    places = [inside(files.folder, file, f"preset '{name}'") for file in preset.files.values()]
    missing = [place.name for place in places if not place.exists()]
    if missing:
        raise PolicyError(
            f"{files.folder}: preset '{name}' expects the files {', '.join(preset.files.values())}; missing: "
            f"{', '.join(missing)}"
        )
    always: Data = {"schema": 1, "name": files.name, "providers": {}, "safety": {}, "commands": {}}
    models = {"graphs": {graph: {"model": file} for graph, file in preset.files.items()}}
    data = merge(merge(always, models), preset.contract)
    draft = Draft(data, files.folder, f"{files.folder} with preset {name}", format_name, name)
    draft.defaults.append(f"from preset {name} ({preset.about}): {', '.join(preset.contract)}")
    draft.needs = {key: why for key, why in preset.needs.items() if not has(data, key)}
    return draft


def shipped_model(name: str) -> Path | None:
    """Path of the published model that a name stands for; None where the name stands for none.

    Raises:
        PolicyError: the package that holds it is not installed.
    """
    if name not in preset_names():
        return None
    entry = load_preset(name).shipped
    if entry is None:
        raise PolicyError(
            f"'{name}' is a preset without a model: give the path of your model and --preset {name}"
        )
    spec = importlib.util.find_spec(entry.package)
    roots = list(spec.submodule_search_locations or ()) if spec else []
    path = next((Path(root) / entry.path for root in roots if (Path(root) / entry.path).exists()), None)
    if path is None:
        raise PolicyError(
            f"'{name}' is published in the package {entry.package}, which is not installed: {entry.install}"
        )
    return path


def shipped_names() -> list[str]:
    """Names that stand for a published model."""
    return [name for name in preset_names() if load_preset(name).shipped is not None]


def _width_fits(found: int | None, wanted: int) -> bool:
    return found is not None and wanted in (0, found)


def _under_wildcard(found: dict[str, int], wanted: dict[str, int]) -> dict[str, int]:
    return {WILDCARD: next(iter(found.values()))} if WILDCARD in wanted and len(found) == 1 else found


def _name_ports(graph: Data, info: ModelInfo) -> None:
    """Put the ONNX names where the preset says `*`, which its `match` allows for an only port."""
    inputs, action = graph.get("inputs"), graph.get("action")
    if isinstance(inputs, dict) and WILDCARD in inputs:
        graph["inputs"] = {next(iter(info.inputs)): inputs[WILDCARD]}
    if isinstance(action, dict) and action.get("output") == WILDCARD:
        graph["action"] = action | {"output": next(iter(info.outputs))}
