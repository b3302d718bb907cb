"""A rollout with a contract that can be read, a pose from outside, and all that exporters look at."""

from pathlib import Path

import msgspec
import numpy as np

from onboard.configs.events import Mode
from onboard.configs.robot import load_robot
from onboard.configs.run import RunConfig
from onboard.logging.convert import convert
from onboard.logging.run_info import PolicyInfo, RunInfo, describe_run
from tests.logging.synthetic import PERIOD_S, WALK, journal, rows

ROBOT = load_robot("g1_29dof")
NAMES = ROBOT.joint_names
ORDER = tuple(np.random.default_rng(7).permutation(29).tolist())
"""SDK slots in the order of the made-up policy's action."""

KP = tuple(40.0 + k for k in range(29))
KD = tuple(1.0 + 0.1 * k for k in range(29))
PHASES = ((20, Mode.DAMP), (150, Mode.RAMP), (50, Mode.HOLD), (300, Mode.POLICY), (50, Mode.HOLD))
POLICY_START = 20 + 150 + 50
FADE_ROWS = 4
"""Of a fade of 0.1 s the fifth row is the policy's alone."""


def contract(joints: tuple[str, ...]) -> str:
    action = {"output": "action", "joints": joints, "base": "default", "scale": 0.25}
    data = {
        "schema": 1,
        "name": "walk",
        "rate_hz": 50.0,
        "joints": [NAMES[slot] for slot in ORDER],
        "kp": [KP[slot] for slot in ORDER],
        "kd": [KD[slot] for slot in ORDER],
        "default_rad": [0.0] * 29,
        "graphs": {"policy": {"model": "walk.onnx", "action": action}},
    }
    return msgspec.yaml.encode(data).decode()


def run_info(text: str | None = None, period_s: float = PERIOD_S) -> RunInfo:
    text = contract(tuple(NAMES[slot] for slot in ORDER)) if text is None else text
    config = {
        "run": msgspec.yaml.encode(RunConfig(policy="walk")).decode(),
        "robot": msgspec.yaml.encode(ROBOT).decode(),
    }
    return describe_run(ROBOT, [PolicyInfo(WALK, text)], period_s, config)


def data(pose: bool = True) -> np.ndarray:
    """Journal rows; the pose walks along x and turns about the vertical."""
    out = rows(3, PHASES)
    n = len(out)
    out["mode"][-50:] = Mode.HOLD
    for name, nominal in (("safety_flag", 0), ("safety_events", 0), ("tier", 0)):
        out[name] = nominal
    out["gateway_state"] = np.where(out["mode"] == Mode.DAMP, 2, 1)
    walking = out["mode"] == Mode.POLICY
    out["step"] = np.cumsum(walking) - 1
    out["episode"] = 0
    out["action_sent"][:300] = out["target"][:300]
    if pose:
        turn = 0.4 * np.arange(n) * PERIOD_S
        zeros = np.zeros(n)
        place = np.stack([0.5 * np.arange(n) * PERIOD_S, zeros, np.full(n, 0.78)], 1)
        out["external_pose"] = np.hstack(
            [place, np.stack([np.cos(turn / 2), zeros, zeros, np.sin(turn / 2)], 1)]
        )
        out["external_age_s"] = 0.006
        out["external_pose_ns"] = 1 + np.arange(n) * 20_000_000
    return out


def write(folder: Path, table: np.ndarray | None = None, info: RunInfo | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    table = data() if table is None else table
    return convert(journal(folder, table, run=info or run_info()))
