"""Rows of a made-up run: damp, ramp, hold, walk, hold, damp, with everything a real one has."""

from pathlib import Path

import msgspec
import numpy as np

from onboard.configs.events import Event, Mode, Tier
from onboard.configs.robot import load_robot
from onboard.logging.frames import Why
from onboard.logging.journal import Journal, create_journal
from onboard.logging.layout import PolicyShape, SafetyFlag, blank_record, journal_dtype, record_dtype
from onboard.logging.run_info import PolicyInfo, RunInfo, describe_run

WALK = PolicyShape("walk", 100, 29, (("pre_tanh", 29),))
PERIOD_S = 0.02
START_NS = 5_000_000_000_000
PHASES = (
    (25, Mode.DAMP),
    (150, Mode.RAMP),
    (50, Mode.HOLD),
    (250, Mode.POLICY),
    (50, Mode.HOLD),
    (50, Mode.DAMP),
)


def info(note: str = "a made-up run", contract: str = "terms: [gyro, gravity]\n") -> RunInfo:
    policy = PolicyInfo(WALK, contract, models={"walk.onnx": "ab" * 32})
    return describe_run(load_robot("g1_29dof"), [policy], PERIOD_S, {"run": "policy: walk\n"}, note=note)


def rows(seed: int = 0, phases: tuple[tuple[int, Mode], ...] = PHASES) -> np.ndarray:
    """Journal rows, one per control period, (n,)."""
    random = np.random.default_rng(seed)
    modes = np.repeat([mode for _, mode in phases], [count for count, _ in phases])
    n = len(modes)
    dtype = journal_dtype(record_dtype([WALK]))
    out = np.repeat(blank_record(dtype)[None], n)
    k = np.arange(n)
    walking = modes == Mode.POLICY
    out["tick"] = out["number"] = k + 1
    out["mode"], out["robot_tick"], out["state_new"] = modes, 1_000 + 20 * k, 1
    out["recv_ns"] = START_NS + 20_000_000 * k + random.integers(0, 2_000_000, n)
    out["source_time_ns"] = out["recv_ns"] + 1_700_000_000_000_000_000
    out["made_ns"] = out["recv_ns"] + 600_000 + random.integers(0, 200_000, n)
    out["send_ns"] = out["made_ns"] + 80_000
    out["gateway_state"] = np.where(modes == Mode.DAMP, 2, 1)
    out["state_age_s"] = random.uniform(0.0005, 0.0025, n)
    out["policy"] = np.where(walking, 0, -1)
    out["step"] = np.cumsum(walking)
    out["quat_wxyz"] = [1, 0, 0, 0]
    out["quat_wxyz"][:, 1] = 0.02 * np.sin(k * 0.15)
    swing = np.sin(k[:, None] * 0.25 + np.arange(29)) * np.where(walking, 0.3, 0.0)[:, None]
    out["target"] = swing
    out["action_sent"] = np.clip(swing, -0.28, 0.28)
    out["limit_mask"] = np.abs(swing) > 0.28
    out["q"] = np.roll(out["action_sent"], 2, axis=0) * 0.95
    out["dq"] = np.gradient(out["q"].astype(float), PERIOD_S, axis=0)
    out["tau_est"] = (out["action_sent"] - out["q"]) * 90 + random.normal(0, 0.5, (n, 29))
    out["kp_scale"] = np.select(
        [modes == Mode.DAMP, modes == Mode.RAMP], [0.0, np.clip((k - 25) / 150, 0, 1)], 1.0
    )
    out["command"][:, 0] = np.where(walking, 0.5, 0.0)
    out["base_velocity"] = np.stack([np.where(walking, 0.47, 0) + random.normal(0, 0.02, n)] * 3, 1) * [
        1,
        0.1,
        0.05,
    ]
    out["contact"] = np.stack([np.sin(k * 0.25) > 0, np.sin(k * 0.25) <= 0], 1)
    out["motor_temperature"] = 35
    out["obs"] = random.normal(0, 1, (n, WALK.obs)) * walking[:, None]
    for name in ("action_policy", "action_combined", "extras"):
        out[name] = random.normal(0, 1, (n, 29)) * walking[:, None]
    out["stage_ns"] = random.integers(5_000, 60_000, (n, 8))
    out["wake_late_ns"] = random.exponential(90_000, n)
    out["mark"] = k >= 300
    _end_with_an_emergency_stop(out)
    return out


def _end_with_an_emergency_stop(out: np.ndarray) -> None:
    ending = len(out) - np.arange(len(out)) <= PHASES[-1][0]
    out["safety_flag"] = np.where(ending, SafetyFlag.EMERGENCY_STOP, SafetyFlag.NORMAL)
    out["safety_events"] = np.where(ending, 1 << Event.EMERGENCY_STOP, 0)
    out["tier"] = np.where(ending, Tier.DAMP, Tier.NONE)


def journal(
    folder: Path,
    data: np.ndarray,
    *,
    run: RunInfo | None = None,
    finish: bool = True,
    lost: tuple[int, int] | None = None,
) -> Path:
    """A journal of `data`; `lost` (first, last) leaves those records out and counts them."""
    run = run or info()
    path = folder / f"{run.stem}.journal"
    create_journal(path, data.dtype, msgspec.to_builtins(run))
    writer = Journal(path)
    for seq, row in enumerate(data, 1):
        if lost and lost[0] <= seq <= lost[1]:
            if seq == lost[0]:
                writer.lose(*lost, Why.OVERWRITTEN)
            continue
        writer.append(seq, np.array(row))
    if finish:
        writer.finish({"end_reason": "emergency stop by the remote", "received": 14_000})
    else:
        writer.close()
    return path
