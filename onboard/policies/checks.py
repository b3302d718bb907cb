"""Does a contract fit itself, its robot and its models? What can be refused is refused here, at load.

A message names the file, the key, what was found, what was expected and how to mend it.
"""

from collections.abc import Mapping

import numpy as np

from onboard.configs.errors import ConfigError, PolicyError
from onboard.configs.robot import RobotConfig
from onboard.configs.safety import load_safety, with_policy_overrides
from onboard.policies.contract import Contract, Graph
from onboard.policies.layout import Placed, place, terms_of
from onboard.policies.session import ModelInfo
from onboard.policies.term_checks import check_term


def check_contract(
    contract: Contract, robot: RobotConfig, models: Mapping[str, ModelInfo], where: str
) -> None:
    """Refuse what can't run.

    Args:
        contract: as read.
        robot: that it is to run on.
        models: per graph, what its ONNX file says.
        where: names the contract's source in messages.

    Raises:
        PolicyError: the first contradiction found.
    """
    _check_joints(contract, robot, where)
    _check_motion(contract, models, where)
    widths: dict[str, int] = {}
    for name, graph in contract.graphs.items():
        at = f"{where}: graphs.{name}"
        for term in terms_of(contract, name):
            check_term(contract, name, term, widths, at)
        _check_inputs(contract, name, models[name], widths, at)
        _check_outputs(graph, models[name], at)
        widths |= {f"{name}.{key}": port.size for key, port in models[name].outputs.items()}
    _check_providers(contract, where)
    try:
        with_policy_overrides(load_safety(), contract.safety, where)
    except ConfigError as error:
        raise PolicyError(str(error)) from error


def _check_joints(contract: Contract, robot: RobotConfig, where: str) -> None:
    named = {
        "joints": contract.joints,
        "observed_joints": contract.observed_joints,
        **{f"graphs.{n}.action.joints": g.action.joints for n, g in contract.graphs.items() if g.action},
    }
    if contract.motion and contract.motion.joints:
        named["motion.joints"] = contract.motion.joints
    for key, joints in named.items():
        for joint in joints:
            _check_joint(contract, robot, joint, f"{where}: {key}")
    without = [j.name for j in robot.joints if j.valid and j.name not in contract.joints]
    if without:
        raise PolicyError(
            f"{where}: no gains for {', '.join(without)}: every joint of {robot.name} must stand in 'joints' "
            "with a kp, a kd and a default_rad, driven by the policy or not"
        )


def _check_joint(contract: Contract, robot: RobotConfig, joint: str, where: str) -> None:
    try:
        robot.slot(joint)
    except ConfigError as error:
        raise PolicyError(f"{where}: {error}; a policy runs on the robot it was trained for") from error
    if joint not in contract.joints:
        raise PolicyError(f"{where}: '{joint}' is not in 'joints', so it has no gains and no default; add it")


def _check_providers(contract: Contract, where: str) -> None:
    read = {term.term for graph in contract.graphs for term in terms_of(contract, graph)}
    for name in contract.providers:
        if name not in read:
            raise PolicyError(f"{where}: providers.{name}: the policy reads no such term; leave it out")


def _check_motion(contract: Contract, models: Mapping[str, ModelInfo], where: str) -> None:
    motion = contract.motion
    if motion is None or motion.embedded is None:
        return
    embedded = motion.embedded
    if embedded.graph not in models:
        raise PolicyError(
            f"{where}: motion.embedded.graph: no graph '{embedded.graph}'; there are: {', '.join(models)}"
        )
    info = models[embedded.graph]
    _must_have(info.inputs, embedded.index, f"{where}: motion.embedded.index", "input")
    for key in ("joint_pos", "joint_vel", "anchor_quat"):
        _must_have(info.outputs, getattr(embedded, key), f"{where}: motion.embedded.{key}", "output")
    bodies = info.outputs[embedded.anchor_quat].size // 4
    if embedded.anchor_row >= bodies:
        raise PolicyError(
            f"{where}: motion.embedded.anchor_row is {embedded.anchor_row}, but '{embedded.anchor_quat}' "
            f"holds {bodies} bodies"
        )


def _check_inputs(
    contract: Contract, name: str, info: ModelInfo, widths: Mapping[str, int], where: str
) -> None:
    graph = contract.graphs[name]
    described = [*graph.inputs, *(pair.input for pair in graph.recurrent)]
    for key in described:
        _must_have(info.inputs, key, f"{where}.inputs", "input")
    for key, port in info.inputs.items():
        if key not in described:
            raise PolicyError(
                f"{where}: the ONNX input '{key}' {port.shape} is not described; add it to 'inputs' or, with "
                "the output that feeds it, to 'recurrent'"
            )
    placed = place(contract, name, widths)
    for key, spec in graph.inputs.items():
        port, at = info.inputs[key], f"{where}.inputs.{key}"
        if spec.carries != "terms":
            continue
        _check_width([item for item in placed if item.input == key], port.size, at)
        if np.dtype(port.dtype).kind != "f":
            raise PolicyError(f"{at}: terms need a float input, found {np.dtype(port.dtype)}")
        if spec.normaliser is not None and len(spec.normaliser.mean) != port.size:
            raise PolicyError(f"{at}.normaliser: {len(spec.normaliser.mean)} means for {port.size} numbers")


def _check_width(items: list[Placed], expected: int, where: str) -> None:
    found = max(item.stop for item in items)
    if found == expected:
        return
    sums: dict[str, int] = {}
    for item in items:
        sums[item.term.term] = sums.get(item.term.term, 0) + item.stop - item.start
    parts = ", ".join(f"{term} {width}" for term, width in sums.items())
    raise PolicyError(
        f"{where}: the terms add up to {found} numbers ({parts}), but the ONNX input is {expected} wide; "
        "the contract is not this model's"
    )


def _check_outputs(graph: Graph, info: ModelInfo, where: str) -> None:
    for key in graph.logged:
        _must_have(info.outputs, key, f"{where}.logged", "output")
    for pair in graph.recurrent:
        _must_have(info.outputs, pair.output, f"{where}.recurrent", "output")
        if info.inputs[pair.input].size != info.outputs[pair.output].size:
            raise PolicyError(f"{where}.recurrent: '{pair.input}' and '{pair.output}' differ in size")
    if graph.action is None:
        return
    _must_have(info.outputs, graph.action.output, f"{where}.action.output", "output")
    found, expected = info.outputs[graph.action.output].size, len(graph.action.joints)
    if found != expected:
        raise PolicyError(
            f"{where}.action: the ONNX output '{graph.action.output}' is {found} wide, but {expected} joints "
            "are named"
        )


def _must_have(ports: Mapping[str, object], key: str, where: str, what: str) -> None:
    if key not in ports:
        raise PolicyError(f"{where}: the ONNX file has no {what} '{key}'; it has: {', '.join(ports)}")
