"""Golden vectors: states with the observations, raw actions and targets that another implementation got.

A file is an npz with one row a tick, from a reset on: `q, dq` (T, 29), `quat_wxyz`, `gyro` (pelvis IMU),
`command` (vx, vy, wz), `obs`, `raw_action`, `q_des` (T, 29); and where the policy needs them
`motion_index`, `base_linvel_w` (velocity of the pelvis in the world), `base_pos_w`. What a file may state
besides: `kp, kd` (29,), and `contract_json`, of which `clip` and `onnx_sha256` are read.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.configs.untrusted import read_npz
from onboard.policies.bundle import PolicyBundle
from onboard.policies.labels import action_labels, observation_labels
from onboard.policies.policy import Policy
from onboard.policies.rotations import rotate_inverse
from onboard.runtime.link import State

OBS_TOLERANCE = 1e-5
ACTION_TOLERANCE = 1e-4
TARGET_TOLERANCE = 1e-4
GAIN_TOLERANCE = 1e-3
UNREACHED = 100.0
"""How far apart two implementations may be: float32 rounding, which the network and its feedback enlarge;
gains are rounded to three decimals by some exporters. No policy's raw output comes near `UNREACHED`."""

_REQUIRED = ("q", "dq", "quat_wxyz", "gyro", "command", "obs", "raw_action", "q_des")

_WIDTHS = {"q": N_JOINTS, "dq": N_JOINTS, "quat_wxyz": 4, "gyro": 3, "q_des": N_JOINTS}

Vectors = dict[str, NDArray[Any]]


class _StatedContract(Struct, frozen=True):
    """What is read of the contract in a golden file."""

    clip: float | None = None
    onnx_sha256: str | None = None


@dataclass(frozen=True)
class GoldenReport:
    """Result of a comparison.

    Attributes:
        ticks: compared.
        obs_max_abs_diff, action_max_abs_diff, target_max_abs_diff: largest differences, the last in rad.
        ok: all within their tolerances.
        findings: for every kind of difference beyond its tolerance, where it is largest.
    """

    ticks: int
    obs_max_abs_diff: float
    action_max_abs_diff: float
    target_max_abs_diff: float
    ok: bool
    findings: tuple[str, ...]


def read_golden(path: Path) -> Vectors:
    """Read a golden file; no pickled object in it is ever loaded.

    Raises:
        PolicyError: missing, damaged, or without a required array.
    """
    try:
        vectors = read_npz(path)
    except (OSError, ValueError) as error:
        raise PolicyError(f"{path}: can't be read as golden vectors ({error}); expected an .npz") from error
    try:
        msgspec.json.decode(str(vectors.get("contract_json", "{}")), type=_StatedContract)
    except msgspec.DecodeError as error:
        raise PolicyError(f"{path}: its contract_json can't be read ({error})") from error
    missing = [name for name in _REQUIRED if name not in vectors]
    if missing:
        raise PolicyError(f"{path}: no {', '.join(missing)}; a golden file has {', '.join(_REQUIRED)}")
    rows = {vectors[name].shape[:1] for name in _REQUIRED}
    odd = [name for name in _REQUIRED if vectors[name].dtype.kind not in "fiu" or vectors[name].ndim != 2]
    if odd or len(rows) != 1 or (0,) in rows:
        raise PolicyError(
            f"{path}: {', '.join(odd or _REQUIRED)}: expected numbers, one row a tick, all of one length"
        )
    for name, width in _WIDTHS.items():
        if vectors[name].shape[1] != width:
            raise PolicyError(f"{path}: '{name}' is {vectors[name].shape[1]} wide, expected {width}")
    return vectors


def check_golden(bundle: PolicyBundle, robot: RobotConfig, path: Path) -> GoldenReport:
    """Feed the states tick by tick from a reset and compare what comes out.

    Raises:
        PolicyError: the file can't be read, or its arrays have other widths than the policy.
    """
    vectors = read_golden(path)
    policy = Policy(bundle, robot)
    for name, array in (("obs", policy.obs), ("raw_action", policy.raw)):
        if vectors[name].shape[1:] != array.shape:
            raise PolicyError(
                f"{path}: '{name}' is {vectors[name].shape[1]} wide, the policy's is {array.size}; "
                "these vectors are another policy's"
            )
    findings = _contract_findings(bundle, policy, vectors)
    obs, raw, target = replay(policy, vectors)
    kinds = (
        ("observation", obs - vectors["obs"], OBS_TOLERANCE, observation_labels(bundle)),
        ("raw action", raw - vectors["raw_action"], ACTION_TOLERANCE, action_labels(bundle)),
        ("target", target - vectors["q_des"], TARGET_TOLERANCE, list(robot.joint_names)),
    )
    largest = [float(np.abs(difference).max()) for _, difference, _, _ in kinds]
    findings += [_worst(*kind) for kind, value in zip(kinds, largest, strict=True) if not value <= kind[2]]
    return GoldenReport(
        ticks=len(obs),
        obs_max_abs_diff=largest[0],
        action_max_abs_diff=largest[1],
        target_max_abs_diff=largest[2],
        ok=not findings,
        findings=tuple(findings),
    )


def replay(policy: Policy, vectors: Vectors) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Observations (T, N), raw actions (T, A) and targets (T, 29) of a policy on recorded states."""
    state, command = State(), policy.neutral_command()
    rows = []
    for tick in range(len(vectors["q"])):
        state.q[:], state.dq[:] = vectors["q"][tick], vectors["dq"][tick]
        state.quat_wxyz[:], state.gyro_body[:] = vectors["quat_wxyz"][tick], vectors["gyro"][tick]
        command.set_velocity(*vectors["command"][tick])
        if tick == 0:
            policy.reset(state, int(vectors["motion_index"][0]) if "motion_index" in vectors else 0)
        _provide(policy, vectors, tick)
        obs = policy.observe(state, command, tick).copy()
        raw = policy.infer()
        rows.append((obs, raw.copy(), policy.target(raw).copy()))
        policy.commit(raw)
    obs, raw, target = (np.stack(column) for column in zip(*rows, strict=True))
    return obs, raw, target


def _contract_findings(bundle: PolicyBundle, policy: Policy, vectors: Vectors) -> list[str]:
    """What twenty ticks may not show and the file may state: gains, the raw action's bounds, the model."""
    findings = []
    for key, ours in (("kp", policy.kp), ("kd", policy.kd)):
        if key in vectors and not np.allclose(vectors[key], ours, rtol=GAIN_TOLERANCE):
            slot = int(np.abs(vectors[key] - ours).argmax())
            findings.append(
                f"{key}: {bundle.robot.joint_names[slot]} has {ours[slot]:g}, in the vectors "
                f"{vectors[key][slot]:g}: read in another order, or another policy's"
            )
    if "contract_json" not in vectors:
        return findings
    stated = msgspec.json.decode(str(vectors["contract_json"]), type=_StatedContract)
    actions = [graph.action for graph in bundle.contract.graphs.values() if graph.action is not None]
    narrow = min((min(map(abs, a.clip_raw)) for a in actions if a.clip_raw is not None), default=np.inf)
    if narrow < min(stated.clip or np.inf, UNREACHED):
        findings.append(f"clip_raw: cut at ±{narrow:g} here, at {stated.clip} by the vectors' contract")
    if stated.onnx_sha256 not in (None, *(model.digest for model in bundle.models.values())):
        findings.append("the vectors were made with another model file: its sha256 differs")
    return findings


def _provide(policy: Policy, vectors: Vectors, tick: int) -> None:
    """Stand in for the providers of privileged terms with the simulator's truth in the file."""
    if "base_linvel_w" in vectors:
        velocity = rotate_inverse(vectors["quat_wxyz"][tick], vectors["base_linvel_w"][tick])
        policy.provide_base_velocity(velocity)
    if "base_pos_w" in vectors:
        policy.provided["base_height"][:] = vectors["base_pos_w"][tick, 2]


def _worst(kind: str, difference: NDArray[Any], tolerance: float, labels: list[str]) -> str:
    """Where a difference begins: later ticks only show what the network made of it."""
    size = np.where(np.isfinite(difference), np.abs(difference), np.inf)
    tick = int(np.flatnonzero((size > tolerance).any(axis=1))[0])
    element = int(size[tick].argmax())
    bad = int((size[tick] > tolerance).sum())
    return (
        f"{kind}: differs from tick {tick} on, there in {bad} of {size.shape[1]} elements by more than "
        f"{tolerance:g}, most in element {element} ({labels[element]}): {size[tick, element]:.3g}"
    )
