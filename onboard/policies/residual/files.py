"""Residual files: reading, checking against robot and policy, writing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from onboard.configs.errors import ConfigError, PolicyError
from onboard.configs.loader import apply_override, convert, read_yaml
from onboard.configs.robot import RobotConfig
from onboard.configs.untrusted import inside
from onboard.policies.contract import Contract
from onboard.policies.model import Model, read_model
from onboard.policies.residual.contract import Network, Residual

RANGE_SHARE = 0.3
"""A correction beyond this share of the action's range means that the simulator is too far off."""


@dataclass(frozen=True)
class ResidualBundle:
    """A residual as it lies on disk, read and checked.

    Attributes:
        config: what the file says.
        path: of the file.
        text: of the file with the overrides in it, for the record.
        models: by path as the file names it.
        notes: what the operator should know, one sentence each.
    """

    config: Residual
    path: Path
    text: str
    models: dict[str, Model]
    notes: tuple[str, ...]

    @property
    def sha256(self) -> dict[str, str]:
        """sha256 by file name, of every model file."""
        return {file.name: digest for model in self.models.values() for file, digest in model.sha256.items()}


def load_residual(
    path: str | Path, robot: RobotConfig, contract: Contract | None, overrides: Sequence[str] = ()
) -> ResidualBundle:
    """Read a residual and check it against the robot and, where given, the policy that it corrects.

    Args:
        path: of the file.
        robot: whose joints it names.
        contract: of the policy that it corrects, None where there is none yet.
        overrides: `key=value` with dotted keys below `residual`.

    Raises:
        ConfigError: not a residual file, or a value in it is wrong.
        PolicyError: it does not fit the robot or the policy, or a model can't be read.
    """
    path = Path(path)
    data = read_yaml(path)
    if not isinstance(data, dict) or set(data) != {"residual"}:
        raise ConfigError(f"{path}: expected one key 'residual' at the top, as onboard fit writes it")
    for override in overrides:
        apply_override(data["residual"], override)
    where = str(path) + "".join(f" with {override}" for override in overrides)
    config = convert(data["residual"], Residual, where)
    for joint in config.joints:
        _check_joint(joint, robot, contract, str(path))
    names = dict.fromkeys(part.network.model for part in config.parts.values() if part.network is not None)
    models = {name: read_model(inside(path.parent, name, f"{path.name}: network.model")) for name in names}
    for part in config.parts.values():
        if part.network is not None:
            _check_network(part.network, config, models[part.network.model], str(path))
    return ResidualBundle(config, path, _text(config), models, tuple(_notes(config)))


def write_residual(residual: Residual, path: str | Path) -> Path:
    """Write a residual file; models are the caller's to put beside it. Returns the path.

    Raises:
        ConfigError: the file can't be written, or would not be read back.
    """
    path = Path(path)
    plain: dict[str, Any] = msgspec.to_builtins(residual)
    if convert(plain, Residual, str(path)) != residual:
        raise ConfigError(f"{path}: the residual does not survive being written; give plain numbers")
    try:
        path.write_text(_text(residual), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: can't be written ({error.strerror}); name another place") from error
    return path


def _text(residual: Residual) -> str:
    plain = {"residual": msgspec.to_builtins(residual)}
    return str(yaml.safe_dump(plain, sort_keys=False, width=110))


def driven_scales(contract: Contract) -> dict[str, float]:
    """Rad per unit of raw action, by joint that the policy drives."""
    scales: dict[str, float] = {}
    for graph in contract.graphs.values():
        if graph.action is not None:
            action = graph.action
            every = action.scale if isinstance(action.scale, tuple) else [action.scale] * len(action.joints)
            scales |= dict(zip(action.joints, every, strict=True))
    return scales


def _check_joint(joint: str, robot: RobotConfig, contract: Contract | None, where: str) -> None:
    try:
        robot.slot(joint)
    except ConfigError as error:
        raise PolicyError(f"{where}: joints: {error}") from error
    if contract is None:
        return
    scales: Mapping[str, float] = driven_scales(contract)
    if joint not in scales:
        raise PolicyError(f"{where}: joints: policy {contract.name} does not drive {joint}; leave it out")
    if scales[joint] == 0:
        raise PolicyError(f"{where}: joints: policy {contract.name} scales {joint} by 0; leave it out")


def _check_network(network: Network, config: Residual, model: Model, where: str) -> None:
    outputs = model.info.outputs
    if network.output not in outputs:
        raise PolicyError(
            f"{where}: {network.model} has no output '{network.output}'; there are: {', '.join(outputs)}"
        )
    found = outputs[network.output].size
    if found != len(config.joints):
        raise PolicyError(
            f"{where}: output '{network.output}' of {network.model} is {found} wide, expected one number "
            f"for each of the {len(config.joints)} joints"
        )


def _notes(config: Residual) -> list[str]:
    """The inverse's gain where it is capped, and bounds beyond the 30 % rule."""
    notes = []
    for phase, part in config.parts.items():
        for joint, c in part.coefficients.items():
            if config.mode == "invert" and 1 / (1 + c.a) > config.gain_cap:
                notes.append(
                    f"residual {config.name}: {phase + ' ' if phase else ''}{joint}: inverse gain "
                    f"{1 / (1 + c.a):.2f} capped at {config.gain_cap:g}"
                )
    for joint, width in config.action_range_rad.items():
        if config.bound_rad is not None and config.bound_rad > RANGE_SHARE * width:
            notes.append(
                f"residual {config.name}: {joint}: bound {config.bound_rad:g} rad is "
                f"{100 * config.bound_rad / width:.0f} % of the action's range ({width:.2f} rad); beyond "
                f"{100 * RANGE_SHARE:.0f} % the simulator is too far off, fix the model first"
            )
    return notes
