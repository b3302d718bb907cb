"""unitree_rl_lab's `params/deploy.yaml` (and what unitree_rl_mjlab and others write in its shape).

Orders differ inside one file: `stiffness` and `damping` are in SDK motor order, everything else in
policy order, and `joint_ids_map` leads from the one to the other.
"""

import re
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from onboard.configs.errors import PolicyError
from onboard.configs.loader import Tags, convert, read_yaml
from onboard.configs.robot import RobotConfig
from onboard.policies.loaders.deploy_terms import SWITCHES, GroupReader
from onboard.policies.loaders.draft import Data, Draft, refuse_preset
from onboard.policies.loaders.files import BundleFiles
from onboard.policies.model import Model

NAME = "deploy.yaml"

CSV_RATE_HZ = 30.0
"""Frame rate of the CSV motions that these projects ship; no file states it."""

LONGEST_PATTERN, MOST_REPEATS = 500, 3
"""Of a pattern of joint names: characters, and repeats such as `.*`; more of them can take for ever."""

UNBOUNDED_RAD = 1e6
"""Stands for no bound in a list of bounds."""

_TAGS: Tags = {
    "tag:yaml.org,2002:python/tuple": list,
    "tag:yaml.org,2002:python/object/apply:builtins.slice": lambda _arguments: None,
}
"""Python's tuple, and its slice (always "all joints"), as the training code's exporter leaves them."""


class ActionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`actions.<Name>`, in policy order."""

    scale: tuple[float, ...] | float
    offset: tuple[float, ...] | float | None = None
    clip: tuple[tuple[float, float], ...] | None = None
    joint_names: tuple[str, ...] = (".*",)
    joint_ids: tuple[int, ...] | None = None


class DeployConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The file's keys."""

    joint_ids_map: tuple[int, ...]
    step_dt: Annotated[float, Meta(gt=0)]
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    default_joint_pos: tuple[float, ...]
    actions: Annotated[dict[str, ActionConfig], Meta(min_length=1, max_length=1)]
    observations: dict[str, Any]
    commands: dict[str, Any] | None = None
    use_gym_history: bool = False


def recognise(files: BundleFiles) -> bool:
    """The folder has params/deploy.yaml or param/deploy.yaml."""
    return files.deploy_yaml is not None


def read(files: BundleFiles, robot: RobotConfig, preset: str | None) -> Draft:
    """Translate the file.

    Raises:
        ConfigError: an unknown key, or a value of the wrong type.
        PolicyError: contents that contradict each other or can't be told apart.
    """
    refuse_preset(preset, NAME)
    path = files.deploy_yaml or files.folder
    config = convert(read_yaml(path, _TAGS), DeployConfig, str(path))
    order = _policy_order(config, robot, path)
    joints = [name for name in robot.joint_names if name in order]
    default = dict(zip(order, config.default_joint_pos, strict=True))
    reader = GroupReader(str(path))
    inputs = _inputs(config, files.model, reader, path)
    draft = Draft({}, files.folder, str(path), NAME)
    draft.data = {
        "schema": 1,
        "name": files.name,
        "rate_hz": round(1.0 / config.step_dt, 9),
        "imu": "pelvis",
        "joints": joints,
        "kp": _gains("stiffness", config.stiffness, joints, order, robot, path),
        "kd": _gains("damping", config.damping, joints, order, robot, path),
        "default_rad": [default[name] for name in joints],
        "observed_joints": order,
        "commands": _commands(config.commands, path),
        "providers": {},
        "safety": {},
        "graphs": {
            "policy": {
                "model": str(files.model.path.relative_to(files.folder)),
                "inputs": inputs,
                "action": _action(config, order, files.model, path),
            }
        },
    }
    draft.defaults.append("imu: not stated, pelvis taken, the IMU of LowState")
    if reader.gait_period_s is not None:
        draft.data["gait"] = {"period_s": reader.gait_period_s, "offsets_rad": [0.0]}
    if reader.follows_motion:
        _add_motion(draft, path, robot)
    _add_target_clip(draft.data, next(iter(config.actions.values())), path)
    return draft


def _policy_order(config: DeployConfig, robot: RobotConfig, path: Path) -> list[str]:
    slots = config.joint_ids_map
    bad = [slot for slot in slots if not 0 <= slot < len(robot.joint_names)]
    if bad or len(set(slots)) != len(slots):
        raise PolicyError(
            f"{path}: joint_ids_map {list(slots)} is not a list of different motor slots, 0 to 28"
        )
    if len(config.default_joint_pos) != len(slots):
        raise PolicyError(
            f"{path}: default_joint_pos has {len(config.default_joint_pos)} numbers, joint_ids_map has "
            f"{len(slots)}"
        )
    return [robot.joint_names[slot] for slot in slots]


def _gains(
    key: str, values: tuple[float, ...], joints: list[str], order: list[str], robot: RobotConfig, path: Path
) -> list[float]:
    """Gains in the order of `joints`, which is that of the slots."""
    if len(values) == len(robot.joint_names):
        return [values[robot.joint_names.index(name)] for name in joints]
    if len(values) == len(joints) and order == joints:
        return list(values)
    raise PolicyError(
        f"{path}: {key} has {len(values)} numbers for {len(joints)} joints out of motor order: whose they "
        f"are can't be told; give all {len(robot.joint_names)} motor slots"
    )


def _inputs(config: DeployConfig, model: Model, reader: GroupReader, path: Path) -> Data:
    """Blocks per ONNX input. The older form has one nameless group; switches may stand around groups."""
    outer: Data = {"use_gym_history": config.use_gym_history}
    outer |= {key: config.observations[key] for key in SWITCHES if key in config.observations}
    entries = {key: entry for key, entry in config.observations.items() if key not in SWITCHES}
    if all(isinstance(entry, dict) and "scale" in entry for entry in entries.values()):
        if len(model.info.inputs) != 1:
            raise PolicyError(
                f"{path}: one list of observations, but the model has the inputs "
                f"{', '.join(model.info.inputs)}"
            )
        entries = {next(iter(model.info.inputs)): entries}
    for name, group in entries.items():
        if not isinstance(group, dict):
            raise PolicyError(f"{path}: observations.{name}: expected keys and values, found {group!r}")
    return {name: {"blocks": reader.blocks(group, outer)} for name, group in entries.items()}


def _action(config: DeployConfig, order: list[str], model: Model, path: Path) -> Data:
    (name, action), outputs = next(iter(config.actions.items())), list(model.info.outputs)
    joints = _driven(action, order, f"{path}: actions.{name}")
    offset = action.offset if action.offset is not None else config.default_joint_pos
    default = dict(zip(order, config.default_joint_pos, strict=True))
    numbers = [offset] * len(joints) if isinstance(offset, float) else list(offset)
    scale = action.scale
    same = numbers == [default[joint] for joint in joints]
    return {
        "output": "actions" if "actions" in outputs else outputs[0],
        "joints": joints,
        "base": "default" if same else numbers,
        "scale": scale if isinstance(scale, float) else list(scale),
    }


def _driven(action: ActionConfig, order: list[str], where: str) -> list[str]:
    if action.joint_ids is not None:
        if any(not 0 <= index < len(order) for index in action.joint_ids):
            raise PolicyError(f"{where}.joint_ids: {list(action.joint_ids)} leaves 0 to {len(order) - 1}")
        return [order[index] for index in action.joint_ids]
    patterns = [_pattern(pattern, where) for pattern in action.joint_names]
    joints = [joint for joint in order if any(pattern.fullmatch(joint) for pattern in patterns)]
    if not joints:
        raise PolicyError(f"{where}.joint_names: {list(action.joint_names)} matches none of the joints")
    return joints


def _pattern(text: str, where: str) -> re.Pattern[str]:
    """A pattern of joint names; what takes for ever to compare is no such thing."""
    simple = len(re.findall(r"[*+?{]", text)) <= MOST_REPEATS and not re.search(r"\)[*+?{]|\\\d|\(\?", text)
    try:
        if simple and len(text) <= LONGEST_PATTERN:
            return re.compile(text)
        reason = "too involved"
    except (re.error, RecursionError, OverflowError) as error:
        reason = str(error)
    raise PolicyError(
        f"{where}.joint_names: '{text[:80]}' is no pattern of joint names ({reason}); expected one such as "
        "'.*_knee_joint' or 'left_(hip|knee).*'"
    )


def _commands(commands: dict[str, Any] | None, path: Path) -> Data:
    ranges: Any = commands or {}
    for key in ("base_velocity", "ranges"):
        ranges = ranges.get(key) or {}
        if not isinstance(ranges, dict):
            raise PolicyError(f"{path}: commands: {key}: expected keys and values, found {ranges!r}")
    return {
        key: ranges[key] for key in ("lin_vel_x", "lin_vel_y", "ang_vel_z") if ranges.get(key) is not None
    }


def _add_target_clip(data: Data, action: ActionConfig, path: Path) -> None:
    """The file clips processed actions per driven joint; joints that it does not drive stay free."""
    if action.clip is None:
        return
    driven = data["graphs"]["policy"]["action"]["joints"]
    if len(action.clip) != len(driven):
        raise PolicyError(f"{path}: actions: clip has {len(action.clip)} pairs for {len(driven)} joints")
    pairs = dict(zip(driven, action.clip, strict=True))
    ends = [pairs.get(joint, (-UNBOUNDED_RAD, UNBOUNDED_RAD)) for joint in data["joints"]]
    data["target_clip"] = {"lower": [low for low, _ in ends], "upper": [high for _, high in ends]}


def _add_motion(draft: Draft, path: Path, robot: RobotConfig) -> None:
    """The reference of a tracking policy: the one CSV beside deploy.yaml."""
    files = sorted(path.parent.glob("*.csv"))
    motion: Data = {
        "source": "file",
        "rate_hz": CSV_RATE_HZ,
        "joints": [joint.name for joint in robot.joints if joint.valid],
        "quat_order": "xyzw",
        "anchor": "torso",
        "align": "yaw",
    }
    draft.data["motion"] = motion
    draft.defaults.append(
        f"motion: not stated; CSV at {CSV_RATE_HZ:g} Hz, root quaternion x y z w, joints in SDK order, "
        "torso as anchor, aligned in yaw, as unitree_rl_lab's own runtime reads it"
    )
    if len(files) == 1:
        motion["file"] = str(files[0].relative_to(draft.folder))
        draft.defaults.append(f"motion.file: not stated; {motion['file']} is the only CSV beside deploy.yaml")
    else:
        draft.needs["motion.file"] = f"the reference, one of the {len(files)} CSV files beside deploy.yaml"
