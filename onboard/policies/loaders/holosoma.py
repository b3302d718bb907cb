"""holosoma's ONNX files: joints, gains and command ranges in the metadata, each value JSON.

The terms, their scales, the default pose and the rate are in an `experiment_config` beside them, which
most published files lack; a preset holds them then.
"""

import json
from typing import Any

from onboard.configs.errors import PolicyError
from onboard.configs.robot import RobotConfig
from onboard.policies.loaders.draft import Data, Draft, has, merge
from onboard.policies.loaders.files import BundleFiles
from onboard.policies.loaders.holosoma_experiment import experiment_data, gait_terms, gait_without_period
from onboard.policies.loaders.presets import apply_preset, automatic_preset, bare_draft, fitting_presets
from onboard.policies.session import ModelInfo

NAME = "holosoma"

_RANGES = {"lin_vel_x": "lin_vel_x", "lin_vel_y": "lin_vel_y", "ang_vel_yaw": "ang_vel_z"}
"""holosoma's names of the command ranges to ours; its heading range is for training only."""


def recognise(files: BundleFiles) -> bool:
    """One ONNX file whose metadata has `dof_names` as a JSON list."""
    return len(files.models) == 1 and files.model.info.metadata.get("dof_names", "").startswith("[")


def read(files: BundleFiles, robot: RobotConfig, preset: str | None) -> Draft:
    """Lay the metadata over a preset: the one asked for, or the only one that fits by itself.

    A full `experiment_config` says the rest and needs no preset; one that was asked for still wins over it.

    Raises:
        PolicyError: no preset fits, or the metadata is damaged or incomplete.
    """
    model = files.model
    where = str(model.path)
    name = preset or automatic_preset(model.info)
    full = preset is None and "experiment_config" in model.info.metadata
    if name is None and not full:
        names = ", ".join(fitting_presets(model.info))
        raise PolicyError(
            f"{where}: holosoma's metadata has gains, but no terms, scales or action scale; "
            + (f"presets that fit: {names}; choose with --preset" if names else "no preset fits its inputs")
        )
    draft = apply_preset(name, files, NAME, robot) if name is not None else bare_draft(files, NAME)
    if preset is None and name is not None:
        draft.defaults.append(f"preset {name}: taken because input, output and metadata are that family's")
    if full:
        _add_experiment(draft, model.info, where)
    draft.data = merge(draft.data, _contract_data(model.info, where, draft.data))
    return draft


def _add_experiment(draft: Draft, info: ModelInfo, where: str) -> None:
    joints, kp = _json(info, "dof_names", where), _json(info, "kp", where)
    if len(joints) != len(kp):
        raise PolicyError(f"{where}: metadata 'kp' has {len(kp)} numbers for {len(joints)} dof_names")
    config = _json(info, "experiment_config", where)
    data = experiment_data(config, dict(zip(joints, kp, strict=True)), info, where)
    stated = ("start_rad", "hold_rad", "observed_joints")
    kept = {key: value for key, value in draft.data.items() if key not in stated}
    draft.data = merge(kept, data)
    draft.defaults.append(
        "experiment_config: terms, scales, history, default pose, action scale, clips and rate are the "
        "training configuration's, from the metadata"
    )
    if gait_terms(data) and not has(draft.data, "gait"):
        draft.data["gait"] = gait_without_period()
        draft.needs["gait.period_s"] = "the phase terms read a gait clock; its period, s per stride"


def _contract_data(info: ModelInfo, where: str, preset: Data) -> Data:
    """What the metadata says, in the shape of a contract."""
    joints = _json(info, "dof_names", where)
    data: Data = {"joints": joints, "kp": _json(info, "kp", where), "kd": _json(info, "kd", where)}
    if preset.get("joints") not in (None, joints):
        raise PolicyError(f"{where}: its dof_names are not the preset's joints; the preset does not fit")
    ranges = _json(info, "command_ranges", where) if "command_ranges" in info.metadata else None
    if isinstance(ranges, dict):
        data["commands"] = {ours: ranges[theirs] for theirs, ours in _RANGES.items() if theirs in ranges}
    if "action_scale" in info.metadata:
        data["graphs"] = {"policy": {"action": {"scale": _json(info, "action_scale", where)}}}
    return data


def _json(info: ModelInfo, key: str, where: str) -> Any:  # noqa: ANN401 - checked with the contract
    if key not in info.metadata:
        raise PolicyError(
            f"{where}: the metadata has no '{key}'; export it again, or give it in a contract.yaml"
        )
    try:
        return json.loads(info.metadata[key])
    except ValueError as error:
        raise PolicyError(f"{where}: metadata '{key}' is not JSON ({error}); export it again") from error
