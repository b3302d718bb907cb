"""Our own `contract.yaml` beside a model: the contract as it is, nothing to translate."""

from onboard.configs.errors import PolicyError
from onboard.configs.loader import read_yaml
from onboard.configs.robot import RobotConfig
from onboard.policies.loaders.draft import Draft, refuse_preset
from onboard.policies.loaders.files import BundleFiles

NAME = "contract.yaml"


def recognise(files: BundleFiles) -> bool:
    """The folder has a contract.yaml."""
    return files.contract_yaml is not None


def read(files: BundleFiles, _robot: RobotConfig, preset: str | None) -> Draft:
    """Read it.

    Raises:
        ConfigError: not readable as YAML.
        PolicyError: not a mapping.
    """
    refuse_preset(preset, NAME)
    path = files.contract_yaml or files.folder / "contract.yaml"
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise PolicyError(f"{path}: expected keys and values, found {type(data).__name__}")
    for key in ("providers", "safety", "commands"):
        data.setdefault(key, {})
    return Draft(data, files.folder, str(path), NAME)
