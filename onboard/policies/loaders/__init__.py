"""Loaders, one module a format; each turns what lies at a path into contract data.

The format is told by what the bundle contains, the most explicit first: our own contract, a
deploy.yaml, ONNX metadata, and at last a preset asked for by name.
"""

from pathlib import Path

from onboard.configs.errors import PolicyError
from onboard.configs.robot import RobotConfig
from onboard.policies.loaders import deploy_yaml, holosoma, own
from onboard.policies.loaders.draft import Draft
from onboard.policies.loaders.files import find_files
from onboard.policies.loaders.presets import (
    apply_preset,
    fitting_presets,
    preset_names,
    shipped_model,
    shipped_names,
)


def read_draft(path_or_name: str | Path, robot: RobotConfig, preset: str | None = None) -> Draft:
    """Find out what a path or shipped name stands for and read it.

    Args:
        path_or_name: folder, ONNX file, or a shipped name.
        robot: that the policy is to run on; some formats number joints by its motor slots.
        preset: asked for by name.

    Raises:
        PolicyError: nothing usable is there.
        ConfigError: a file is not readable, or there is no such preset.
    """
    path = Path(path_or_name)
    name = str(path_or_name)
    if not path.exists() and name in preset_names():
        model = shipped_model(name)
        if model is not None:
            draft = read_draft(model, robot, preset or name)
            draft.data["name"] = name
            return draft
    if not path.exists() and path.suffix == "" and "/" not in name:
        raise PolicyError(
            f"'{name}' is neither a path nor a shipped policy; there are: {', '.join(shipped_names())}"
        )
    files = find_files(path)
    if own.recognise(files):
        _refuse_preset(preset, "contract.yaml")
        return own.read(files)
    if deploy_yaml.recognise(files):
        _refuse_preset(preset, "deploy.yaml")
        return deploy_yaml.read(files, robot)
    if holosoma.recognise(files):
        return holosoma.read(files, preset)
    if preset is None:
        fitting = ", ".join(fitting_presets(files.model.info)) or "none"
        raise PolicyError(
            f"{files.model.path}: the file does not say what its inputs are, and nothing is guessed; give "
            f"--preset NAME (presets whose widths fit: {fitting}) or put a contract.yaml beside it"
        )
    return apply_preset(preset, files, "preset")


def _refuse_preset(preset: str | None, holder: str) -> None:
    if preset is not None:
        raise PolicyError(
            f"--preset {preset}: this policy has a {holder}, which says everything; leave it out"
        )
