"""The `experiment_config` of holosoma: its whole training configuration, where an exporter left it inside.

Only what a runtime needs is read; the rest of the configuration may say what it likes.
"""

import math
from typing import Annotated, Any

from msgspec import Meta, Struct

from onboard.configs.errors import PolicyError
from onboard.configs.loader import convert
from onboard.policies.loaders.blocks import Parts, scaled_terms
from onboard.policies.loaders.draft import Data
from onboard.policies.session import ModelInfo

GROUP = "actor_obs"
TIME_STEP = "time_step"
EMBEDDED = {"joint_pos": "joint_pos", "joint_vel": "joint_vel", "anchor_quat": "ref_quat_xyzw"}
ANCHORS = {"torso_link": "torso", "pelvis": "pelvis"}

_TERMS: dict[str, Parts] = {
    "actions": (("last_action", 0),),
    "base_ang_vel": (("gyro", 3),),
    "base_lin_vel": (("base_lin_vel", 3),),
    "command_ang_vel": (("velocity_yaw", 1),),
    "command_lin_vel": (("velocity_xy", 2),),
    "cos_phase": (("gait_cos", 2),),
    "dof_pos": (("joint_pos", 0),),
    "dof_vel": (("joint_vel", 0),),
    "motion_command": (("ref_joint_pos", 0), ("ref_joint_vel", 0)),
    "motion_ref_ori_b": (("anchor_orientation", 6),),
    "motion_ref_pos_b": (("anchor_position", 3),),
    "projected_gravity": (("gravity", 3),),
    "sin_phase": (("gait_sin", 2),),
}

_GAIT: Data = {
    "offsets_rad": [0.0, math.pi],
    "still": {"when": "slow", "below": 0.01, "angle_rad": math.pi, "restart": True},
}
"""Both feet at π while the command is almost zero; its period is not among the terms."""


class _Term(Struct, frozen=True):
    scale: float | tuple[float, ...] = 1.0
    clip: Any = None


class _Group(Struct, frozen=True):
    terms: dict[str, _Term]
    history_length: Annotated[int, Meta(ge=1)] = 1


class _Observation(Struct, frozen=True):
    groups: dict[str, _Group]
    clip_observations: float | None = None


class _Control(Struct, frozen=True):
    action_scale: float
    action_scales_by_effort_limit_over_p_gain: bool = False
    clip_actions: bool = False
    action_clip_value: float | None = None


class _Start(Struct, frozen=True):
    default_joint_angles: dict[str, float]


class _Robot(Struct, frozen=True):
    dof_names: tuple[str, ...]
    dof_effort_limit_list: tuple[float, ...]
    init_state: _Start
    control: _Control


class _Sim(Struct, frozen=True):
    fps: Annotated[float, Meta(gt=0)]
    control_decimation: Annotated[int, Meta(ge=1)]


class _SimConfig(Struct, frozen=True):
    sim: _Sim


class _Simulator(Struct, frozen=True):
    config: _SimConfig


class _Experiment(Struct, frozen=True):
    observation: _Observation
    robot: _Robot
    simulator: _Simulator
    command: dict[str, Any] | None = None


def experiment_data(config: Any, kp: dict[str, float], info: ModelInfo, where: str) -> Data:  # noqa: ANN401
    """Contract data that the configuration states.

    Args:
        config: the parsed value of `experiment_config`.
        kp: N·m/rad by joint, from the metadata.
        info: of the ONNX file.
        where: names the file in messages.

    Raises:
        ConfigError: a part that is read is missing or of another shape.
        PolicyError: a term or anchor without a counterpart.
    """
    where = f"{where}: metadata 'experiment_config'"
    experiment = convert(config, _Experiment, where)
    robot, sim = experiment.robot, experiment.simulator.config.sim
    angles = robot.init_state.default_joint_angles
    missing = [name for name in kp if name not in angles or name not in robot.dof_names]
    if missing:
        raise PolicyError(f"{where}: no default angle or effort limit for {', '.join(missing)}")
    data: Data = {
        "rate_hz": sim.fps / sim.control_decimation,
        "decimation": sim.control_decimation,
        "imu": "pelvis",
        "default_rad": [angles[name] for name in kp],
        "graphs": {
            "policy": {"action": _action(robot, kp, info), "inputs": _inputs(experiment, info, where)}
        },
    }
    if TIME_STEP in info.inputs:
        data["motion"] = _motion(experiment.command, where)
    return data


def gait_terms(data: Data) -> bool:
    """Some term of contract data reads a gait clock."""
    inputs = data["graphs"]["policy"]["inputs"].values()
    terms = [term for spec in inputs for block in spec.get("blocks", ()) for term in block["terms"]]
    return any(term["term"].startswith("gait_") for term in terms)


def gait_without_period() -> Data:
    """The two-footed clock of holosoma, whose `period_s` is still to be given."""
    return dict(_GAIT)


def _action(robot: _Robot, kp: dict[str, float], info: ModelInfo) -> Data:
    control = robot.control
    scale: float | list[float] = control.action_scale
    if control.action_scales_by_effort_limit_over_p_gain:
        effort = dict(zip(robot.dof_names, robot.dof_effort_limit_list, strict=True))
        scale = [control.action_scale * effort[name] / gain for name, gain in kp.items()]
    action: Data = {
        "output": next(name for name in ("actions", "action", *info.outputs) if name in info.outputs),
        "joints": list(kp),
        "base": "default",
        "scale": scale,
    }
    if control.clip_actions and control.action_clip_value is not None:
        action["clip_raw"] = [-control.action_clip_value, control.action_clip_value]
    return action


def _inputs(experiment: _Experiment, info: ModelInfo, where: str) -> Data:
    """Terms in alphabetical order of holosoma's names, each with its whole history."""
    group = experiment.observation.groups.get(GROUP)
    ports = [name for name in info.inputs if name != TIME_STEP]
    if group is None or len(ports) != 1:
        raise PolicyError(
            f"{where}: expected the group '{GROUP}' and one observation input, found the groups "
            f"{', '.join(experiment.observation.groups)} and the inputs {', '.join(info.inputs)}"
        )
    blocks = [_block(name, group, where) for name in sorted(group.terms)]
    limit = experiment.observation.clip_observations
    clip = {"clip": [-limit, limit]} if limit is not None else {}
    inputs: Data = {ports[0]: {"blocks": blocks} | clip}
    if TIME_STEP in info.inputs:
        inputs[TIME_STEP] = {"carries": "motion_index"}
    return inputs


def _block(name: str, group: _Group, where: str) -> Data:
    term = group.terms[name]
    at = f"{where}: observation '{name}'"
    if name not in _TERMS:
        raise PolicyError(
            f"{at} is unknown; there are: {', '.join(_TERMS)}; for others write a contract.yaml"
        )
    if term.clip is not None:
        raise PolicyError(f"{at} has a clip: before or after its scale can't be told; write a contract.yaml")
    terms = scaled_terms(at, _TERMS[name], term.scale, clip=None, clip_first=True)
    if group.history_length == 1:
        return {"terms": terms}
    layout = "frame_major" if len(terms) > 1 else "term_major"
    kept = {"layout": layout, "order": "oldest_first", "current": True, "fill": "zeros"}
    return {"terms": terms, "frames": group.history_length} | kept


def _motion(command: dict[str, Any] | None, where: str) -> Data:
    try:
        setup = (command or {})["setup_terms"]["motion_command"]["params"]["motion_config"]
        (body,) = setup["body_name_ref"]
        anchor = ANCHORS[body]
    except (KeyError, TypeError, ValueError) as error:
        raise PolicyError(
            f"{where}: command.setup_terms.motion_command…body_name_ref: expected one of "
            f"{', '.join(ANCHORS)}, found {error}"
        ) from error
    return {
        "source": "onnx",
        "quat_order": "xyzw",
        "anchor": anchor,
        "align": "yaw",
        "at_end": "hold",
        "embedded": {"graph": "policy", "index": TIME_STEP} | EMBEDDED,
    }
