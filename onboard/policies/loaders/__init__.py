"""Loaders, one module a format; each turns what lies at a path into contract data.

The format is told by what the bundle contains, the most explicit first: our own contract, a
deploy.yaml, ONNX metadata, and at last a preset asked for by name.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from onboard.configs.errors import PolicyError
from onboard.configs.robot import RobotConfig
from onboard.policies.loaders import deploy_yaml, holosoma, metadata, own, presets
from onboard.policies.loaders.draft import Draft
from onboard.policies.loaders.files import BundleFiles, find_files
from onboard.policies.loaders.presets import preset_names, shipped_model, shipped_names


class Loader(NamedTuple):
    """One format: whether a bundle is in it, and what it says."""

    recognise: Callable[[BundleFiles], bool]
    read: Callable[[BundleFiles, RobotConfig, str | None], Draft]


LOADERS: dict[str, Loader] = {
    own.NAME: Loader(own.recognise, own.read),
    deploy_yaml.NAME: Loader(deploy_yaml.recognise, deploy_yaml.read),
    metadata.NAME: Loader(metadata.recognise, metadata.read),
    holosoma.NAME: Loader(holosoma.recognise, holosoma.read),
    presets.NAME: Loader(lambda _files: True, presets.read),
}
"""By the format's name, as `--format` takes it; the first that recognises a bundle reads it."""


def read_draft(
    path_or_name: str | Path, robot: RobotConfig, preset: str | None = None, format_name: str | None = None
) -> Draft:
    """Find out what a path or shipped name stands for and read it.

    Args:
        path_or_name: folder, ONNX file, or a shipped name.
        robot: that the policy is to run on; some formats number joints by its motor slots.
        preset: asked for by name.
        format_name: read it as this format, whatever else the bundle holds; None: what it contains decides.

    Raises:
        PolicyError: nothing usable is there.
        ConfigError: a file is not readable, or there is no such preset.
    """
    path = Path(path_or_name)
    name = str(path_or_name)
    if not os.path.exists(path) and name in preset_names():
        model = shipped_model(name)
        if model is not None:
            draft = read_draft(model, robot, preset or name, format_name)
            draft.data["name"] = name
            return draft
    if not os.path.exists(path) and path.suffix == "" and "/" not in name:
        raise PolicyError(
            f"'{name}' is neither a path nor a shipped policy; there are: {', '.join(shipped_names())}"
        )
    files = find_files(path)
    chosen = format_name or next(name for name, loader in LOADERS.items() if loader.recognise(files))
    if chosen not in LOADERS:
        raise PolicyError(f"--format {chosen}: unknown format; there are: {', '.join(LOADERS)}")
    if not LOADERS[chosen].recognise(files):
        raise PolicyError(f"{path}: --format {chosen}: nothing of that format is there")
    return LOADERS[chosen].read(files, robot, preset)
