"""A fitted network as a residual: the ONNX file, and what the slot must know about its inputs."""

from pathlib import Path

import onboard
from onboard.analysis.fit.fit import Fit
from onboard.analysis.fit.network import NetworkFit
from onboard.analysis.fit.onnx_file import INPUT, OUTPUT, write_network
from onboard.analysis.fit.report import simulator
from onboard.configs.robot import RobotConfig
from onboard.policies.inputs import Block, Input, Term
from onboard.policies.residual.contract import Network, Provenance, Residual
from onboard.policies.residual.files import write_residual
from onboard.policies.residual.network import CONTRACTION

BOUND = 1.25
"""The bound's share of the largest delta on the fitted data."""


def write_network_residual(fit: Fit, found: NetworkFit, robot: RobotConfig, path: Path) -> Residual:
    """Write a residual file and its network beside it.

    The mode is `invert` where a fixed point finds the inverse on the recorded data, else `add`, for
    simulators.

    Args:
        fit: whose data and joints.
        found: the network.
        robot: for the joints' names.
        path: of the residual file.

    Raises:
        OnboardError: a file can't be written.
    """
    residual = Residual(
        schema=1,
        name=path.stem,
        kind="onnx",
        mode="invert" if found.steepest(fit) < CONTRACTION else "add",
        unit="rad",
        joints=joint_names(fit, robot),
        network=write_part(fit, found, robot, path.with_suffix(".onnx")),
        bound_rad=BOUND * found.largest_rad(fit),
        provenance=Provenance(
            made_by=f"onboard fit {onboard.__version__}",
            logs=fit.data.files,
            heldout_logs=fit.data.held_out_files,
            simulator=simulator(fit),
            latency_s=found.latency_s,
            before_deg=found.fitted.before_deg,
            after_deg=found.fitted.after_deg,
            heldout_before_deg=found.held_out.before_deg,
            heldout_after_deg=found.held_out.after_deg,
        ),
    )
    write_residual(residual, path)
    return residual


def write_part(fit: Fit, found: NetworkFit, robot: RobotConfig, path: Path) -> Network:
    """Write the ONNX file alone; what a residual file in the same folder must say of it.

    Raises:
        PolicyError: the file can't be written.
    """
    joints = joint_names(fit, robot)
    about = {"joints": ",".join(joints), "simulator": simulator(fit), "frames": str(found.features.frames)}
    model = write_network(path, found.features, found.output, about)
    block = Block(
        terms=(Term("target_error", joints=joints), Term("joint_vel", joints=joints)),
        frames=found.features.frames,
        layout="frame_major",
        order="newest_first",
        current=True,
        fill="first_frame",
    )
    return Network(model=model.name, output=OUTPUT, inputs={INPUT: Input(blocks=(block,))})


def joint_names(fit: Fit, robot: RobotConfig) -> tuple[str, ...]:
    """Of the joints that a fit corrects."""
    return tuple(robot.joint_names[slot] for slot in fit.data.slots.tolist())
