"""A policy as it lies on disk, read, checked and ready to be built: contract, models, reference motion."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onboard.configs.errors import PolicyError
from onboard.configs.loader import apply_override, convert
from onboard.configs.robot import RobotConfig
from onboard.configs.untrusted import limited_memory
from onboard.policies.checks import check_contract
from onboard.policies.constant_files import read_constants
from onboard.policies.contract import Contract
from onboard.policies.layout import graph_sources
from onboard.policies.loaders import read_draft
from onboard.policies.loaders.draft import Draft
from onboard.policies.model import Model, file_sha256, read_model
from onboard.policies.motion import MotionFrames
from onboard.policies.motion_sources import load_frames
from onboard.policies.normaliser_files import find_normalisers, read_normalisers
from onboard.policies.session import OnnxSession
from onboard.policies.term_checks import unstated_ranges, with_provider

TRIAL_S = 5.0
"""Longest first inference; the thousandfold of what a tick has room for."""


@dataclass(frozen=True)
class PolicyBundle:
    """What `load_policy` returns.

    Attributes:
        name: as it appears in logs.
        robot: that the contract was checked against.
        contract: checked against the robot and the models.
        models: by graph.
        motion_frames: the reference at the control rate; None where there is none.
        folder: what paths in the contract are relative to.
        format: which loader read it.
        preset: name of the preset that filled in what the files do not say, or None.
        overrides: `key=value` as given on the command line.
        defaults: what no file said and how it was filled in, one sentence each.
        lent: privileged terms whose provider is the caller's, not the contract's.
    """

    name: str
    robot: RobotConfig
    contract: Contract
    models: dict[str, Model]
    motion_frames: MotionFrames | None
    folder: Path
    format: str
    preset: str | None
    overrides: tuple[str, ...]
    defaults: tuple[str, ...]
    lent: tuple[str, ...] = ()

    @property
    def motion_seconds(self) -> float | None:
        """Length of the reference motion; None where there is none."""
        if self.motion_frames is not None:
            return len(self.motion_frames) / self.contract.rate_hz
        return self.contract.motion.length_s if self.contract.motion is not None else None

    @property
    def model_paths(self) -> dict[str, str]:
        """Path to sha256 of every file that decides what the policy does: models, weights, what is beside."""
        files = {path: digest for model in self.models.values() for path, digest in model.sha256.items()}
        files |= {self.folder / name: file_sha256(self.folder / name) for name in self.data_files}
        return {str(path): digest for path, digest in files.items()}

    @property
    def data_files(self) -> list[str]:
        """Files beside the models that the contract names, relative to the folder."""
        inputs = [spec for graph in self.contract.graphs.values() for spec in graph.inputs.values()]
        named = [spec.normaliser.file for spec in inputs if spec.normaliser is not None]
        named += [constant.file for constant in self.contract.constants.values()]
        named += [self.contract.motion.file] if self.contract.motion is not None else []
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def start_rad(self) -> tuple[float, ...]:
        """Where the robot should be at the start, rad, in the order of the contract's joints."""
        contract, frames = self.contract, self.motion_frames
        if contract.start_rad is not None or frames is None:
            return contract.start_rad or contract.default_rad
        return tuple(float(frames.joint_pos[0, self.robot.slot(joint)]) for joint in contract.joints)

    @property
    def source_widths(self) -> dict[str, int]:
        """`graph.output` to its width, of every output that another graph reads."""
        return {
            f"{graph}.{output}": self.models[graph].info.outputs[output].size
            for graph, output in graph_sources(self.contract)
        }


def load_policy(
    path_or_name: str | Path,
    robot: RobotConfig,
    preset: str | None = None,
    overrides: Sequence[str] = (),
    provider: str | None = None,
    format_name: str | None = None,
) -> PolicyBundle:
    """Read and check a policy; nothing of it is executed but its ONNX graphs, on zeros.

    Args:
        path_or_name: folder, ONNX file, or a shipped name.
        robot: that it is to run on.
        preset: name of a preset, for files that do not say enough themselves.
        overrides: `key=value` with dotted keys into the contract.
        provider: what is at hand for privileged terms that the contract names no provider for, such as
            `simulator_truth` in a simulator; None refuses them.
        format_name: read it as this format; None: what the bundle contains decides.

    Raises:
        PolicyError: the bundle is incomplete, contradicts itself or does not fit the robot.
        ConfigError: a value is unknown, missing, of the wrong type or out of range.
    """
    draft = read_draft(path_or_name, robot, preset, format_name)
    draft.given = tuple(overrides)
    find_normalisers(draft)
    for override in overrides:
        apply_override(draft.data, override)
    read_normalisers(draft)
    read_constants(draft)
    defaults = draft.complete()
    where = draft.where + "".join(f" with {override}" for override in overrides)
    contract = convert(draft.data, Contract, where)
    defaults += unstated_ranges(contract)
    stated = contract.providers
    if provider is not None:
        contract, said = with_provider(contract, provider)
        defaults += said
    models = {
        name: read_model(draft.file(graph.model, f"graphs.{name}.model"))
        for name, graph in contract.graphs.items()
    }
    check_contract(contract, robot, {name: model.info for name, model in models.items()}, where)
    for model in models.values():
        _dry_run(model)
    return PolicyBundle(
        name=contract.name,
        robot=robot,
        contract=contract,
        models=models,
        motion_frames=load_frames(contract, models, _motion_file(draft, contract), robot),
        folder=draft.folder,
        format=draft.format,
        preset=draft.preset,
        overrides=tuple(overrides),
        defaults=tuple(defaults),
        lent=tuple(contract.providers.keys() - stated.keys()),
    )


def _motion_file(draft: Draft, contract: Contract) -> Path | None:
    named = contract.motion.file if contract.motion is not None else None
    return draft.file(named, "motion.file") if named is not None else None


def _dry_run(model: Model) -> None:
    """Refuse weights that are not finite: on zeros, they alone can make an output that is not.

    Also what needs more memory or time than any policy: a graph can loop for ever.
    """
    inputs = {name: np.zeros(port.size, port.dtype) for name, port in model.info.inputs.items()}
    with limited_memory():
        session = OnnxSession(model.path, inputs, tuple(model.info.outputs))
        session.run_within(TRIAL_S)
    for name, values in session.outputs.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise PolicyError(
                f"{model.path}: output '{name}' is not finite on an input of zeros, so its weights hold "
                "NaN or infinity; export it again from a good checkpoint"
            )
