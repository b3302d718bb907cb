"""ONNX metadata of BeyondMimic, mjlab and legged_control2: comma lists of joints and observations.

The three write the same keys and mean different things by some of them: joints are in Isaac order
(BeyondMimic) or in the robot's own (the others), which their names tell; `base_lin_vel` is the pelvis's
(Isaac, legged_control2) or the IMU site's (mjlab).
"""

from onboard.configs.errors import PolicyError
from onboard.configs.robot import RobotConfig
from onboard.policies.loaders.blocks import Parts
from onboard.policies.loaders.csv_values import CsvMetadata
from onboard.policies.loaders.draft import Data, Draft, refuse_preset
from onboard.policies.loaders.files import BundleFiles
from onboard.policies.loaders.metadata_terms import blocks_of
from onboard.policies.session import ModelInfo

NAME = "metadata"

RATE_HZ = 50.0
"""Control rate of all published policies of these projects; none of their files states it."""

TIME_STEP = "time_step"
EMBEDDED = ("joint_pos", "joint_vel", "body_quat_w")
ANCHORS = {"torso_link": "torso", "pelvis": "pelvis"}
VELOCITY_COMMANDS = ("twist", "base_velocity", "velocity")
MOTION_COMMANDS = ("motion",)

_NUMBERS = {"kp": "joint_stiffness", "kd": "joint_damping", "default_rad": "default_joint_pos"}


def recognise(files: BundleFiles) -> bool:
    """One ONNX file whose metadata names joints and observations."""
    return len(files.models) == 1 and {"joint_names", "observation_names"} <= files.model.info.metadata.keys()


def read(files: BundleFiles, robot: RobotConfig, preset: str | None) -> Draft:
    """Translate the metadata.

    Raises:
        PolicyError: it is damaged, contradicts the graph, or names a term without a counterpart.
    """
    refuse_preset(preset, "metadata")
    model = files.model
    metadata = CsvMetadata(model.info.metadata, str(model.path))
    joints = metadata.names("joint_names")
    draft = Draft({}, files.folder, str(model.path), NAME)
    draft.data = {
        "schema": 1,
        "name": files.name,
        "rate_hz": RATE_HZ,
        "imu": "pelvis",
        "joints": joints,
        "observed_joints": list(joints),
        "providers": {},
        "safety": {},
        "commands": {},
        "graphs": {
            "policy": {
                "model": str(model.path.relative_to(files.folder)),
                "inputs": _inputs(metadata, model.info, joints, robot),
                "action": _action(metadata, model.info, joints),
            }
        },
    }
    draft.defaults += [
        f"rate_hz: not stated, {RATE_HZ:g} taken, as all policies of these projects run",
        "imu: not stated, pelvis taken, the IMU of LowState",
    ]
    _add_numbers(draft, metadata)
    if "phase" in metadata.names("observation_names"):
        _add_gait(draft)
    if _follows_motion(metadata):
        _add_motion(draft, metadata, model.info)
    return draft


def _inputs(metadata: CsvMetadata, info: ModelInfo, joints: list[str], robot: RobotConfig) -> Data:
    ports = [name for name in info.inputs if name != TIME_STEP]
    if len(ports) != 1:
        raise PolicyError(
            f"{metadata.where}: the metadata describes one observation, but the inputs are "
            f"{', '.join(info.inputs)}; write a contract.yaml"
        )
    own = {"command": _command(metadata), "base_lin_vel": ((_velocity_term(info, joints, robot), 3),)}
    inputs: Data = {ports[0]: {"blocks": blocks_of(metadata, own)}}
    if TIME_STEP in info.inputs:
        inputs[TIME_STEP] = {"carries": "motion_index"}
    return inputs


def _command(metadata: CsvMetadata) -> Parts:
    """Meaning of the term `command`: that of the only command."""
    names = metadata.names("command_names")
    if len(names) == 1 and names[0] in VELOCITY_COMMANDS:
        return (("velocity", 3),)
    if len(names) == 1 and names[0] in MOTION_COMMANDS:
        return (("ref_joint_pos", 0), ("ref_joint_vel", 0))
    if "command" not in metadata.names("observation_names"):
        return ()
    raise PolicyError(
        f"{metadata.where}: observation 'command' with command_names '{','.join(names)}': expected one of "
        f"{', '.join((*VELOCITY_COMMANDS, *MOTION_COMMANDS))}; write a contract.yaml"
    )


def _velocity_term(info: ModelInfo, joints: list[str], robot: RobotConfig) -> str:
    """Of mjlab's files, known by run path and the robot's own order, the sensor's: at the pelvis IMU."""
    natural = joints == [name for name in robot.joint_names if name in joints]
    return "base_lin_vel_imu" if natural and "run_path" in info.metadata else "base_lin_vel"


def _action(metadata: CsvMetadata, info: ModelInfo, joints: list[str]) -> Data:
    outputs = list(info.outputs)
    action: Data = {
        "output": "actions" if "actions" in outputs else outputs[0],
        "joints": list(joints),
        "base": "default",
    }
    scale = metadata.numbers(["action_scale"])
    if scale is not None:
        action["scale"] = scale[0] if len(scale) == 1 else scale
    return action


def _add_numbers(draft: Draft, metadata: CsvMetadata) -> None:
    rounded = []
    for ours, theirs in _NUMBERS.items():
        numbers = metadata.numbers([theirs])
        if numbers is not None:
            draft.data[ours] = numbers
        draft.needs[ours] = f"the metadata has no '{theirs}'"
        rounded += [theirs] if metadata.rounded(theirs) else []
    draft.needs["graphs.policy.action.scale"] = (
        "the metadata has no 'action_scale', rad per unit of the raw output; with a wrong one the robot falls"
    )
    rounded += ["action_scale"] if metadata.rounded("action_scale") else []
    if rounded:
        draft.defaults.append(
            f"{', '.join(rounded)}: the exporter rounded them to three decimals; exact ones can be given "
            "with --set"
        )


def _add_gait(draft: Draft) -> None:
    draft.data["gait"] = {"offsets_rad": [0.0, 3.141592653589793]}
    draft.needs["gait.period_s"] = (
        "the term 'phase' reads a gait clock; its period, s per stride, is in no key"
    )
    draft.defaults.append(
        "phase: its layout is not stated; cosine of both feet, then sine, taken, left at 0 and right at π at "
        "the start, as legged_control2's G1 policy has it"
    )


def _follows_motion(metadata: CsvMetadata) -> bool:
    names = metadata.names("observation_names")
    motion = any(name in MOTION_COMMANDS for name in metadata.names("command_names"))
    return motion or any(name.startswith("motion_") for name in names)


def _add_motion(draft: Draft, metadata: CsvMetadata, info: ModelInfo) -> None:
    """The reference embedded in the graph, or else a file that must be named."""
    body = ",".join(metadata.names("anchor_body_name"))
    bodies = metadata.names("body_names")
    if body not in ANCHORS:
        raise PolicyError(
            f"{metadata.where}: anchor_body_name is '{body}', expected {' or '.join(ANCHORS)}; write a "
            "contract.yaml"
        )
    motion: Data = {"quat_order": "wxyz", "anchor": ANCHORS[body], "align": "yaw", "at_end": "hold"}
    motion["joints"] = list(draft.data["joints"])
    draft.data["motion"] = motion
    if TIME_STEP not in info.inputs or not set(EMBEDDED) <= info.outputs.keys():
        motion["source"] = "file"
        draft.needs["motion.file"] = "the reference is not in the graph"
        return
    if body not in bodies:
        raise PolicyError(f"{metadata.where}: body_names '{','.join(bodies)}' lacks the anchor '{body}'")
    joint_pos, joint_vel, quat = EMBEDDED
    motion["source"] = "onnx"
    motion["embedded"] = {
        "graph": "policy",
        "index": TIME_STEP,
        "joint_pos": joint_pos,
        "joint_vel": joint_vel,
        "anchor_quat": quat,
        "anchor_row": bodies.index(body),
    }
